"""Bronze: the record tables as they were recorded, in the broker's lake or in a recording of the simulator.

Files are never changed once they are closed: those of a recording when it is complete, those of the lake when the broker says so
(``LAKE/_exported``, the offset below which all files are there).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nearcast.errors import InvalidRecord
from nearcast.journal.lake import EXPORTED
from nearcast.pipeline.schemas import spark_schema
from nearcast.pipeline.tables.store import address
from nearcast.records.summary import SUMMARY_FILE, UNFINISHED, read_summary
from nearcast.records.tables import TABLES, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OFFSETS: Final = re.compile(r"\d{20}-(\d{20})")


@dataclass(frozen=True, slots=True, order=True)
class BronzeFile:
    name: str
    """Below the lake, of a recording also what it holds: this is remembered of a file that was taken."""

    path: Path
    date: str | None
    """The day of all its rows; none if that is not known."""


def bronze_files(lake: Path, name: str) -> list[BronzeFile]:
    """The closed files of a record table, in the order of their names."""
    folder = lake / table(name).name
    if _is_recording(lake):
        recorded = read_summary(lake).tables.get(name)
        if recorded is None or not recorded.rows:
            return []
        # Another recording in the same place is not to be taken for this one.
        content = recorded.sha256[:12]
        return [
            BronzeFile(f"{_below(lake, path)}#{content}", path, None) for path in sorted(folder.glob("part-*.parquet"))
        ]
    closed = _exported(lake)
    found = (
        BronzeFile(_below(lake, path), path, path.parent.name.removeprefix("date="))
        for path in folder.glob("date=*/*.parquet")
        if _is_closed(path, closed)
    )
    return sorted(found)


def read_bronze(spark: SparkSession, name: str, files: Iterable[BronzeFile]) -> DataFrame:
    """The rows of these files; columns that an older file does not have are null."""
    paths = [address(file.path) for file in files]
    schema = spark_schema(name)
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def read_lake(spark: SparkSession, lake: Path) -> dict[str, DataFrame]:
    """All record tables as they were recorded; those that nothing was recorded of are empty."""
    check_lake(lake)
    return {each.name: read_bronze(spark, each.name, bronze_files(lake, each.name)) for each in TABLES}


def about(lake: Path) -> dict[str, str | int | float]:
    """What a recording says of itself: title, scenario and seed; of a broker's lake nothing."""
    return read_summary(lake).about if _is_recording(lake) else {}


def check_lake(lake: Path) -> None:
    """Refuse a folder in which no record table can be found."""
    if not lake.is_dir():
        raise InvalidRecord(
            f"there is no lake at {lake}; name the broker's lake, or the folder of a recording: --lake DIR"
        )
    if (lake / UNFINISHED).exists() and not (lake / SUMMARY_FILE).exists():
        raise InvalidRecord(
            f"the recording in {lake} was never finished: its run is still going on, or was interrupted"
        )
    if _is_recording(lake):
        read_summary(lake)  # complains about a version that this nearcast does not know
    elif not (lake / EXPORTED).exists() and not any((lake / each.name).is_dir() for each in TABLES):
        raise InvalidRecord(
            f"{lake} holds no record tables; name the broker's lake (by default nearcast-data/lake), or the folder of a recording"
        )


def _is_recording(lake: Path) -> bool:
    return (lake / SUMMARY_FILE).exists()


def _below(lake: Path, path: Path) -> str:
    return path.relative_to(lake).as_posix()


def _exported(lake: Path) -> int:
    try:
        return int((lake / EXPORTED).read_text())
    except FileNotFoundError:
        return 0
    except (OSError, ValueError) as error:
        raise InvalidRecord(f"{lake / EXPORTED} cannot be read: {error}") from None


def _is_closed(path: Path, exported: int) -> bool:
    """Files without offsets in their names come from elsewhere (``ingest``), which moves them here when they are complete."""
    offsets = _OFFSETS.fullmatch(path.stem)
    return offsets is None or int(offsets[1]) < exported
