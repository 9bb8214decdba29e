"""Reading a finished recording: the same tables, whole or piece by piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearcast.errors import InvalidRecord
from nearcast.records.arrow import VERSION_KEY, arrow_schema
from nearcast.records.summary import check_version, read_summary
from nearcast.records.tables import table


def read(folder: Path | str, name: str) -> Any:
    """The whole table, as a ``pyarrow.Table``."""
    return dataset(folder, name).to_table()


def dataset(folder: Path | str, name: str) -> Any:
    """The table as a ``pyarrow.dataset.Dataset``, of which only what is asked for is read."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    wanted = table(name)
    if name not in read_summary(folder).tables:  # it is older than the table
        return ds.dataset(arrow_schema(wanted).empty_table())
    parts = sorted((Path(folder) / name).glob("part-*.parquet"))
    if not parts:
        raise InvalidRecord(f"the recording in {folder} has lost its table {name}: there is no {Path(folder) / name}")
    try:
        for part in parts:
            found = pq.read_schema(part)
            check_version(part, int((found.metadata or {}).get(VERSION_KEY, b"0")))
            missing = [
                column.name for column in wanted.columns if not column.nullable and column.name not in found.names
            ]
            if missing:
                raise InvalidRecord(f"{part} lacks columns that {name} has: {', '.join(missing)}")
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidRecord(f"{part} cannot be read: {error}") from None
    return ds.dataset([str(part) for part in parts], schema=arrow_schema(wanted), format="parquet")
