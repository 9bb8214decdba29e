"""The warehouse: immutable files, and small documents that say which of them make up a table.

::

    WAREHOUSE/silver/events/date=2026-11-16/cell=n49.8e8.6/4f0c...-0.parquet
    WAREHOUSE/_versions/events/00000007.json       the newest says which files are in the table, and what was taken from bronze
    WAREHOUSE/_staging/4f0c.../                    files in the making

A new version appears at once, when its document does; whoever reads sees one version or the next, never half of one.  A run that
is killed leaves files that no document names; ``upkeep.clean`` deletes them later.  Of two runs at the same time one
fails, when it publishes what the other has published before.

The folder must be the same for driver and executors: a local disk, or one that all of them share.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from nearcast.errors import TableFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

VERSIONS: Final = "_versions"
STAGING: Final = "_staging"
NO_DATE: Final = "__HIVE_DEFAULT_PARTITION__"
"""As Spark names the folder of rows that have none."""


class DataFile(msgspec.Struct, frozen=True):
    path: str
    """Below the warehouse: ``silver/events/date=.../cell=.../...parquet``."""

    rows: int
    bytes: int

    def partition(self, name: str) -> str:
        """The value of ``date`` or ``cell`` in its path."""
        return next(
            (part.removeprefix(f"{name}=") for part in self.path.split("/") if part.startswith(f"{name}=")), NO_DATE
        )


class Counts(msgspec.Struct, frozen=True):
    """How many rows of bronze came, and how many of them are no longer here."""

    bronze: int = 0
    unpublished: int = 0
    expired: int = 0


class Version(msgspec.Struct, frozen=True, kw_only=True):
    number: int = 0
    parts: dict[str, tuple[DataFile, ...]] = msgspec.field(default_factory=dict)
    """By folder, such as ``silver/events``."""

    taken: tuple[str, ...] = ()
    """Names of the files of bronze whose rows are in it."""

    counts: Counts = Counts()
    applied: tuple[str, ...] = ()
    """Files of unpublished events that were removed."""

    basis: dict[str, str] = msgspec.field(default_factory=dict)
    """Of gold: a fingerprint of what each date was computed from."""

    def files(self, part: str) -> tuple[DataFile, ...]:
        return self.parts.get(part, ())

    def rows(self, part: str) -> int:
        return sum(file.rows for file in self.files(part))

    def with_files(self, part: str, added: Iterable[DataFile], removed: Iterable[DataFile] = ()) -> Version:
        gone = {file.path for file in removed}
        kept = [file for file in self.files(part) if file.path not in gone]
        return msgspec.structs.replace(self, parts={**self.parts, part: (*kept, *added)})


class Warehouse:
    """The tables in one folder; without state of its own."""

    def __init__(self, folder: Path | str) -> None:
        self.folder: Final = Path(folder).absolute()

    def check(self) -> None:
        """Refuse a folder that is no warehouse."""
        if not self.tables():
            raise TableFailed(f"{self.folder} holds no tables yet; nearcast pipeline tables makes them")

    def tables(self) -> list[str]:
        """The names of all that has a version."""
        return sorted(path.name for path in (self.folder / VERSIONS).glob("*") if any(path.glob("*.json")))

    def current(self, name: str) -> Version:
        """The newest version; one without files, and number 0, if there is none yet."""
        newest = max((self.folder / VERSIONS / name).glob("*.json"), default=None)
        if newest is None:
            return Version()
        return self._read(newest)

    def versions(self, name: str) -> list[tuple[Path, Version]]:
        """All that are kept, oldest first."""
        return [(path, self._read(path)) for path in sorted((self.folder / VERSIONS / name).glob("*.json"))]

    def publish(self, name: str, version: Version) -> Version:
        """Make this the newest version.

        Raises:
            TableFailed: another run was faster; nothing of this one is seen.

        """
        folder = self.folder / VERSIONS / name
        folder.mkdir(parents=True, exist_ok=True)
        numbered = msgspec.structs.replace(version, number=version.number + 1)
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as draft:
            draft.write(msgspec.json.format(msgspec.json.encode(numbered), indent=1))
            draft.flush()
            os.fsync(draft.fileno())
        try:
            # Unlike a rename, a link fails if the name is taken.
            os.link(draft.name, folder / f"{numbered.number:08}.json")
        except FileExistsError:
            raise TableFailed(
                f"another run has changed the table {name} in {self.folder} meanwhile; run this one again"
            ) from None
        finally:
            Path(draft.name).unlink()
        return numbered

    def stage(self, frame: DataFrame, *partitions: str, rows_in_file: int = 0) -> Staged:
        """Write a frame into a corner; nobody sees it there."""
        name = uuid.uuid4().hex
        folder = self.folder / STAGING / name
        writer = frame.write.partitionBy(*partitions)
        if rows_in_file:
            writer = writer.option("maxRecordsPerFile", rows_in_file)
        writer.parquet(address(folder))
        return Staged(self.folder, folder, name)

    def read(self, spark: SparkSession, part: str, schema: StructType, files: Iterable[DataFile]) -> DataFrame:
        """The rows of these files of a part, with their ``date`` and ``cell``."""
        paths = [address(self.folder / file.path) for file in files]
        if not paths:
            return spark.createDataFrame([], schema)
        base = address(self.folder / part)
        return spark.read.schema(schema).option("basePath", base).parquet(*paths)

    def _read(self, path: Path) -> Version:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Version)
        except (OSError, msgspec.MsgspecError) as error:
            raise TableFailed(f"{path} cannot be read: {error}; put a backup in its place, or delete it") from None


class Staged:
    """Files that were written, but are in no table yet."""

    def __init__(self, warehouse: Path, folder: Path, name: str) -> None:
        self._warehouse = warehouse
        self._folder = folder
        self._name = name

    def rows(self, below: str = "") -> int:
        return sum(rows for _, rows in self._files(below))

    def move(self, part: str, below: str = "") -> list[DataFile]:
        """Give the files their places in the part; a folder ``below``, if given, is not among them."""
        moved = []
        source = self._folder / below
        for number, (path, rows) in enumerate(self._files(below)):
            place = path.parent.relative_to(source)
            target = Path(part) / place / f"{self._name}-{number}.parquet"
            (self._warehouse / target).parent.mkdir(parents=True, exist_ok=True)
            path.replace(self._warehouse / target)
            moved.append(DataFile(target.as_posix(), rows, (self._warehouse / target).stat().st_size))
        return moved

    def discard(self) -> None:
        """Delete what was not moved."""
        shutil.rmtree(self._folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            self._folder.parent.rmdir()

    def _files(self, below: str) -> list[tuple[Path, int]]:
        """The files that have rows, and how many: as their own footers say, which is what readers will find."""
        import pyarrow.parquet as pq

        found = ((path, pq.read_metadata(path).num_rows) for path in sorted((self._folder / below).rglob("*.parquet")))
        return [(path, rows) for path, rows in found if rows]


def address(path: Path) -> str:
    """The path as Spark reads it, whatever file system is the usual one of a cluster; unlike in a URI, nothing is escaped."""
    return f"file://{path.absolute()}"


def put_in_place(frame: DataFrame, folder: Path) -> None:
    """Write it as Parquet, in place of what is in that folder: whoever reads sees the old until the new is complete."""
    draft, old = (folder.with_name(f".{folder.name}.{uuid.uuid4().hex}") for _ in range(2))
    try:
        frame.write.parquet(address(draft))
        if folder.exists():
            folder.rename(old)
        draft.rename(folder)
    finally:
        for path in (draft, old):
            shutil.rmtree(path, ignore_errors=True)


def by_partition(files: Iterable[DataFile], *names: str) -> Mapping[tuple[str, ...], list[DataFile]]:
    """The files of each date, or of each date and cell."""
    groups: dict[tuple[str, ...], list[DataFile]] = {}
    for file in files:
        groups.setdefault(tuple(file.partition(name) for name in names), []).append(file)
    return groups
