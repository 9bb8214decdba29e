"""From elsewhere into a lake: rows of the record tables as bronze, bad rows beside them.

::

    LAKE/reports/date=2026-11-16/4f0c....parquet    one file for each day, named for what it was made of
    LAKE/_aside/4f0c..../                           what could not be read, with the reason

The name is a hash of the source: the same source again replaces its own files and adds nothing.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.errors import InvalidTrace, UnknownName
from nearcast.journal.lake import EXPORTED
from nearcast.model.time import Instant
from nearcast.pipeline.external.comma_separated import COLUMNS, read_csv
from nearcast.pipeline.external.gpx import read_gpx
from nearcast.pipeline.external.gtfs_realtime import read_gtfs_realtime
from nearcast.pipeline.external.moving_features import read_moving_features
from nearcast.pipeline.external.moving_features_csv import read_moving_features_csv
from nearcast.pipeline.external.parsing import External
from nearcast.pipeline.external.tweets import read_tweets
from nearcast.pipeline.tables.store import address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Reader = Callable[["SparkSession", Sequence[str], Instant], External]

FORMATS: Final[Mapping[str, Reader]] = {
    "csv": read_csv,
    "gpx": read_gpx,
    "moving-features": read_moving_features,
    "moving-features-csv": read_moving_features_csv,
    "gtfs-realtime": read_gtfs_realtime,
    "tweets": read_tweets,
}
_ENDINGS: Final = {
    ".csv": "csv",
    ".mfcsv": "moving-features-csv",
    ".gpx": "gpx",
    ".json": "moving-features",
    ".mfjson": "moving-features",
    ".geojson": "moving-features",
    ".pb": "gtfs-realtime",
    ".jsonl": "tweets",
    ".ndjson": "tweets",
}


@dataclass(frozen=True, slots=True)
class Ingestion:
    table: str
    rows: int
    aside: int
    reasons: Mapping[str, int]
    """How many rows were kept aside for each reason."""


def format_of(files: Sequence[Path]) -> str:
    """The format that the names end with; two of them share an ending."""
    found = {_ENDINGS.get(file.suffix.lower(), file.suffix) for file in files}
    if found == {"csv"} and all(_begins_with_at(file) for file in files):
        return "moving-features-csv"
    if len(found) == 1 and found <= set(FORMATS):
        return found.pop()
    raise InvalidTrace(
        f"files that end with {', '.join(sorted(found)) or 'nothing'} are of no single known format; say which: --format {'|'.join(FORMATS)}"
    )


def _begins_with_at(file: Path) -> bool:
    try:
        with file.open("rb") as source:
            return source.read(1) == b"@"
    except OSError:
        return False  # whoever reads it will say what is wrong


def ingest(
    spark: SparkSession,
    files: Sequence[Path],
    lake: Path,
    latest: Instant,
    *,
    source_format: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> Ingestion:
    """Read files and put their rows into a lake of its own: that of a broker belongs to the broker."""
    missing = [file for file in files if not file.is_file()]
    if missing or not files:
        raise InvalidTrace(f"there is no file {missing[0]}" if missing else "there is nothing to read; name a file")
    if (lake / EXPORTED).exists():
        raise InvalidTrace(
            f"{lake} is the lake of a broker; give what comes from elsewhere a lake of its own: --lake DIR"
        )
    name = source_format or format_of(files)
    if name not in FORMATS:
        raise UnknownName(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    paths = [address(file) for file in files]
    mapping = {**COLUMNS, **(columns or {})}
    found = read_csv(spark, paths, latest, mapping) if name == "csv" else FORMATS[name](spark, paths, latest)
    return _written(found, lake, _digest(files, name, mapping))


def _written(found: External, lake: Path, digest: str) -> Ingestion:
    corner = lake / f"_ingesting-{digest}"
    shutil.rmtree(corner, ignore_errors=True)
    # One file for each day, so that its name needs no number.
    dated = found.rows.withColumn("date", F.to_date("time")).repartition("date")
    dated.write.partitionBy("date").parquet(address(corner / "rows"))
    found.aside.coalesce(1).write.parquet(address(corner / "aside"))
    rows = sum(_moved(part, lake / found.table, digest) for part in sorted((corner / "rows").glob("date=*/*.parquet")))
    reasons = _reasons(corner / "aside")
    kept = lake / "_aside" / digest
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    (corner / "aside").rename(kept)
    shutil.rmtree(corner)
    return Ingestion(found.table, rows, sum(reasons.values()), reasons)


def _moved(part: Path, table: Path, digest: str) -> int:
    import pyarrow.parquet as pq

    rows: int = pq.read_metadata(part).num_rows
    target = table / part.parent.name / f"{digest}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    part.replace(target)
    return rows


def _reasons(aside: Path) -> dict[str, int]:
    import pyarrow.dataset as ds

    found = ds.dataset(aside, format="parquet").to_table(columns=["reason"])
    counts = found.group_by("reason").aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    return {row["reason"]: row["count_all"] for row in counts.to_pylist()}


def _digest(files: Sequence[Path], name: str, columns: Mapping[str, str]) -> str:
    made = hashlib.sha256(f"{name} {sorted(columns.items())}".encode())
    for file in sorted(files):
        with file.open("rb") as source:
            made.update(hashlib.file_digest(source, "sha256").digest())
    return made.hexdigest()[:32]
