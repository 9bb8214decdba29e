"""The same for files of Parquet: those of the lake, and what jobs have made of them.

Not by tables but by values: an identity is drawn from 2**128, so wherever it stands it means this person.  A row that names
it goes, and so does a row about one of its events; from a list of receivers only its entry goes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from nearcast.errors import InvalidRecord
from nearcast.files import to_disk
from nearcast.journal.erasure.journal import Erased, Step
from nearcast.journal.erasure.subject import Subject

_PUBLISHED: Final = "published_offset"
_OFFSETS: Final = frozenset({"offset", _PUBLISHED})
"""Columns that say where in the journal an event stands."""

_EVENT: Final = "event"
"""The column of an event's id."""

_PUBLISHERS: Final = frozenset({"publisher", "offset", _PUBLISHED})
"""Where one of these says of which event it is, its id does not count: others may have given the same."""

_DRAFT: Final = ".erasing-"


def files_below(folder: Path) -> list[Path]:
    """All files of Parquet, also those in the making and those that are hidden."""
    return sorted(path for path in folder.rglob("*.parquet") if path.is_file()) if folder.is_dir() else []


def clear_drafts(folder: Path) -> None:
    """What an erasure that was interrupted has left."""
    for draft in folder.rglob(f"{_DRAFT}*") if folder.is_dir() else ():
        draft.unlink(missing_ok=True)


def learn(lake: Path, subject: Subject, step: Step) -> None:
    """Look through the lake for events of the subject that the journal no longer has."""
    found = files_below(lake / "events")
    for number, path in enumerate(found):
        step(number, len(found))
        for batch in _batches(path, ["event", "publisher", "offset"]):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for event, publisher, offset in rows:
                if subject.is_one(publisher):
                    subject.ids.add(event)
                    if offset is not None:
                        subject.offsets.add(offset)


def erase(paths: Iterable[Path], subject: Subject, step: Step, *, dry: bool = False) -> Erased:
    """Rewrite the files that name the subject, each at once; ``dry``: only count what would go."""
    erased, found = Erased(), list(paths)
    for number, path in enumerate(found):
        step(number, len(found))
        with contextlib.suppress(FileNotFoundError):  # somebody tidied up
            erased += erase_from(path, path, subject, dry=dry)
    step(len(found), len(found))
    return erased


def erase_from(path: Path, target: Path, subject: Subject, *, dry: bool = False) -> Erased:
    """Write what is left of a file to another place, or to its own, if anything in it is of the subject."""
    erased = Erased()
    for batch in _batches(path):
        erased += _left(batch, subject)[1]
    if dry or erased == Erased():
        return erased
    draft = target.with_name(f"{_DRAFT}{secrets.token_hex(8)}")
    try:
        _write(path, draft, subject)
        to_disk(draft)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    # Hadoop's checksum of the file as it was; without one it is not compared.
    target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
    to_disk(target.parent)
    return erased


def _write(path: Path, draft: Path, subject: Subject) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from nearcast.records.arrow import TABLE_KEY, encoded
    from nearcast.records.storage import table_writer
    from nearcast.records.tables import table

    schema = pq.read_schema(path)
    name = (schema.metadata or {}).get(TABLE_KEY)
    ours = None if name is None else table(name.decode())
    if ours is not None and list(ours.column_names) != schema.names:
        ours = None  # of an earlier version, which had fewer columns
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, path.stat().st_mode & 0o777))
    with pa.OSFile(str(draft), "wb") as sink:
        writer = (
            pq.ParquetWriter(sink, _plain(schema), compression="zstd") if ours is None else table_writer(sink, ours)
        )
        try:
            for batch in _batches(path):
                left, _ = _left(batch, subject)
                writer.write_batch(left if ours is None else encoded(left, ours))
        finally:
            writer.close()


def _left(batch: Any, subject: Subject) -> tuple[Any, Erased]:
    """What is left of a batch of plain columns."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    keep = pa.array([True] * batch.num_rows)
    columns, shortened = list(batch.columns), pa.array([False] * batch.num_rows)
    names = set(batch.schema.names)
    for number, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
        if types.is_string(field.type):
            gone = _mine(column, subject)
            if field.name == _EVENT and not names & _PUBLISHERS and subject.ids:
                gone = pc.or_(gone, _among(column, sorted(subject.ids)))
            keep = pc.and_not(keep, gone)
        elif types.is_integer(field.type) and field.name in _OFFSETS and subject.offsets:
            keep = pc.and_not(keep, _among(column, sorted(subject.offsets)))
        elif types.is_list(field.type) and types.is_string(field.type.value_type):
            columns[number], changed = _shortened(column, subject)
            shortened = pc.or_(shortened, changed)
    if (
        _PUBLISHED in names and "receivers" in names
    ):  # a later delivery, to nobody else: it says that somebody was there
        lengths = pc.list_value_length(columns[batch.schema.names.index("receivers")])
        keep = pc.and_not(keep, pc.and_(shortened, pc.fill_null(pc.equal(lengths, 0), False)))
    kept = pc.and_(keep, shortened)
    erased = Erased(batch.num_rows - (keep.true_count or 0), kept.true_count or 0)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema).filter(keep), erased


def _mine(column: Any, subject: Subject) -> Any:
    return _among(column, [each for each in column.unique().to_pylist() if subject.is_one(each)])


def _among(column: Any, values: list[Any]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.fill_null(pc.is_in(column, value_set=pa.array(values, column.type)), False)


def _shortened(column: Any, subject: Subject) -> tuple[Any, Any]:
    """The lists without the subject, and which of them are shorter."""
    import pyarrow as pa

    named = {each for each in column.flatten().unique().to_pylist() if subject.is_one(each)}
    if not named:
        return column, pa.array([False] * len(column))
    lists = column.to_pylist()
    without = [None if each is None else [name for name in each if name not in named] for each in lists]
    changed = [each is not None and len(each) != len(left or ()) for each, left in zip(lists, without, strict=True)]
    return pa.array(without, column.type), pa.array(changed)


def _batches(path: Path, columns: list[str] | None = None) -> Iterator[Any]:
    """With plain columns: a dictionary would keep the names of those who have gone."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from nearcast.records.content import ROWS

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS, columns=columns):
                yield batch.cast(_plain(batch.schema))
    except pa.ArrowInvalid as error:
        raise InvalidRecord(
            f"{path} cannot be read, so nobody can be erased from it: {error}; delete it, or mend it"
        ) from None


def _plain(schema: Any) -> Any:
    import pyarrow as pa

    from nearcast.records.content import decoded_type

    return pa.schema([field.with_type(decoded_type(field.type)) for field in schema], schema.metadata)
