"""The tables as Delta tables, beside what they are: the same files in the same folders, with a log that readers of Delta know.

The version of the warehouse goes first; the log follows it, and catches up at the next run if one was killed in between.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from nearcast.errors import SetupError
from nearcast.pipeline.tables.gold import GOLD, gold_schema
from nearcast.pipeline.tables.silver import PARTS, part_schema
from nearcast.pipeline.tables.store import NO_DATE, DataFile, Warehouse

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PACKAGE: Final = "tables.format = 'delta' needs the package that writes Delta logs: pip install deltalake"


def check_delta() -> None:
    """Say what is missing, before anything is done."""
    try:
        import deltalake  # noqa: F401 - whether it is there is the question
    except ImportError:
        raise SetupError(_PACKAGE) from None


def follow(warehouse: Warehouse) -> dict[str, int]:
    """Bring all Delta logs up to date; gives the number of files of each table."""
    check_delta()
    done = {}
    names = {gold.name: gold_schema(gold) for gold in GOLD}
    for name in warehouse.tables():
        for part, files in warehouse.current(name).parts.items():
            kind, _, table = part.partition("/")
            schema = part_schema(kind, table) if kind in PARTS else names[table]
            _follow(warehouse, part, files, schema)
            done[part] = len(files)
    return done


def _follow(warehouse: Warehouse, part: str, files: tuple[DataFile, ...], schema: StructType) -> None:
    from deltalake import DeltaTable, Schema
    from deltalake.transaction import RemoveAction, create_table_with_add_actions
    from pyspark.sql.pandas.types import to_arrow_schema

    folder = warehouse.folder / part
    written = Schema.from_arrow(to_arrow_schema(schema, timezone="UTC"))
    partitions: list[str] = ["date"] if part.startswith("gold/") else ["date", "cell"]
    wanted = {file.path.removeprefix(f"{part}/"): file for file in files}
    if not DeltaTable.is_deltatable(str(folder)):
        if wanted:
            adds = [_add(warehouse, path, file, partitions) for path, file in wanted.items()]
            create_table_with_add_actions(str(folder), written, adds, mode="append", partition_by=partitions)
        return
    table, now = DeltaTable(str(folder)), time.time_ns() // 1_000_000
    known = {str(action["path"]): action for action in _rows(table.get_add_actions(flatten=False))}
    actions: list[Any] = [_add(warehouse, path, file, partitions) for path, file in wanted.items() if path not in known]
    actions += [
        RemoveAction(path, data_change=True, deletion_timestamp=now, size=action["size_bytes"], partition_values=None)
        for path, action in known.items()
        if path not in wanted
    ]
    if actions:
        table.create_write_transaction(actions, "append", written, partitions)


def _add(warehouse: Warehouse, path: str, file: DataFile, partitions: list[str]) -> Any:
    from deltalake.transaction import AddAction

    values = {name: file.partition(name) for name in partitions}
    changed = (warehouse.folder / file.path).stat().st_mtime_ns // 1_000_000
    return AddAction(
        path,
        file.bytes,
        {name: None if value == NO_DATE else value for name, value in values.items()},
        changed,
        data_change=True,
        stats=f'{{"numRecords": {file.rows}}}',
    )


def _rows(batch: Any) -> list[dict[str, Any]]:
    import pyarrow as pa

    rows: list[dict[str, Any]] = pa.table(batch).to_pylist()
    return rows
