"""Silver: bronze without copies, bad rows and what was taken back.  A run takes the files of bronze that are new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StringType, StructType

from nearcast.errors import InvalidRecord, TableFailed
from nearcast.model.time import Instant
from nearcast.pipeline.schemas import spark_schema
from nearcast.pipeline.tables.bronze import BronzeFile, bronze_files, check_lake, read_bronze
from nearcast.pipeline.tables.store import DataFile, Version, Warehouse
from nearcast.pipeline.tables.verdicts import (
    ASIDE,
    DUPLICATE,
    EVENT_KEY,
    SILVER,
    UNPUBLISHED,
    agreeing,
    gone_from,
    judged,
    key_of,
    reason_column,
)
from nearcast.records.tables import TABLES, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER: Final = ("unpublished", *(each.name for each in TABLES if each.name != "unpublished"))
"""What was taken back must be known before events are."""

PARTS: Final = (SILVER, ASIDE, DUPLICATE)


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a run did to a table, and what there is now: ``bronze = silver + aside + duplicates + unpublished + expired``."""

    table: str
    files: int
    """Of bronze that were new."""

    bronze: int
    silver: int
    aside: int
    duplicates: int
    unpublished: int
    expired: int
    """Deleted by retention."""

    def to_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "table"}


def part_schema(verdict: str, name: str) -> StructType:
    """As recorded, with the reason of bad rows, and with the columns of the partitions."""
    schema = spark_schema(name)
    if verdict == ASIDE:
        schema = schema.add(reason_column(table(name)), StringType())
    return schema.add("date", DateType()).add("cell", StringType())


def read_silver(spark: SparkSession, warehouse: Warehouse, name: str) -> DataFrame:
    return _read(spark, warehouse, SILVER, name)


def read_aside(spark: SparkSession, warehouse: Warehouse, name: str) -> DataFrame:
    """The bad rows, each with its reason."""
    return _read(spark, warehouse, ASIDE, name)


def read_duplicates(spark: SparkSession, warehouse: Warehouse, name: str) -> DataFrame:
    """The rows that agree with an earlier one of silver."""
    return _read(spark, warehouse, DUPLICATE, name)


def _read(spark: SparkSession, warehouse: Warehouse, verdict: str, name: str) -> DataFrame:
    part = f"{verdict}/{table(name).name}"
    return warehouse.read(spark, part, part_schema(verdict, name), warehouse.current(name).files(part))


def refine_all(spark: SparkSession, warehouse: Warehouse, lake: Path, latest: Instant) -> list[Refinement]:
    """Bring all tables of silver up to date with bronze; ``latest``: what is later has not happened yet."""
    check_lake(lake)
    return [refine(spark, warehouse, lake, name, latest) for name in ORDER]


def refine(spark: SparkSession, warehouse: Warehouse, lake: Path, name: str, latest: Instant) -> Refinement:
    """Bring one table of silver up to date.  Running it twice, or after it was killed, changes nothing that is done."""
    before = warehouse.current(name)
    taken = set(before.taken)
    new = [file for file in bronze_files(lake, name) if file.name not in taken]
    _check_same(lake, warehouse, before, new)
    version, returned = _withdrawn(spark, warehouse, before) if name == "events" else (before, None)
    if new or returned is not None:
        version = _with_new(spark, warehouse, version, name, new, returned, latest)
    if version is not before:
        version = warehouse.publish(name, version)
    return _refinement(name, version, len(new))


def _with_new(
    spark: SparkSession,
    warehouse: Warehouse,
    version: Version,
    name: str,
    new: Sequence[BronzeFile],
    returned: DataFrame | None,
    latest: Instant,
) -> Version:
    rows = read_bronze(spark, name, new)
    judgement = judged(
        rows if returned is None else rows.unionByName(returned),
        table(name),
        latest,
        known=_known(spark, warehouse, version, name, new),
        unpublished=_unpublished(spark, warehouse) if name == "events" else None,
    )
    # One file for each partition of a run, but for those that are large.
    staged = warehouse.stage(judgement.hint("rebalance", "verdict", "date", "cell"), "verdict", "date", "cell")
    counts = version.counts
    came = staged.rows() - (0 if returned is None else returned.count())
    gone = staged.rows(f"verdict={UNPUBLISHED}")
    added = msgspec.structs.replace(
        version,
        taken=(*version.taken, *(file.name for file in new)),
        counts=msgspec.structs.replace(counts, bronze=counts.bronze + came, unpublished=counts.unpublished + gone),
    )
    for verdict in PARTS:
        part = f"{verdict}/{name}"
        added = added.with_files(part, staged.move(part, f"verdict={verdict}"))
    staged.discard()
    return added


def _check_same(lake: Path, warehouse: Warehouse, version: Version, new: Sequence[BronzeFile]) -> None:
    """Refuse a recording in place of the one that was taken: their rows would be mixed."""
    taken = {name.partition("#")[0] for name in version.taken}
    if any(file.name.partition("#")[0] in taken for file in new):
        raise InvalidRecord(
            f"{lake} holds another recording than the one in {warehouse.folder}; delete that folder, or choose another: --warehouse DIR"
        )


def _known(
    spark: SparkSession, warehouse: Warehouse, version: Version, name: str, new: Sequence[BronzeFile]
) -> DataFrame | None:
    """The rows of silver with which new ones may agree; equal states have equal times, so they are of the same day."""
    key = key_of(table(name))
    files = version.files(f"{SILVER}/{name}")
    dates = {file.date for file in new}
    if name != "events" and None not in dates:
        files = tuple(file for file in files if file.partition("date") in dates)
    if key is None or not files:
        return None
    return warehouse.read(spark, f"{SILVER}/{name}", part_schema(SILVER, name), files).select(*key)


def _unpublished(spark: SparkSession, warehouse: Warehouse) -> DataFrame | None:
    files = warehouse.current("unpublished").files("silver/unpublished")
    return read_silver(spark, warehouse, "unpublished") if files else None


def _withdrawn(spark: SparkSession, warehouse: Warehouse, version: Version) -> tuple[Version, DataFrame | None]:
    """The events without those that were taken back since they came, from all parts.

    Also the copies of those that are gone from silver: each is an event of its own that was not taken back, and only hidden by
    an earlier one; so they are judged anew, together with what is new.
    """
    there = warehouse.current("unpublished").files("silver/unpublished")
    applied = set(version.applied)
    pending = [file for file in there if file.path not in applied]
    if not pending:
        return version, None
    version = msgspec.structs.replace(version, applied=tuple(file.path for file in there))
    taken_back = warehouse.read(spark, "silver/unpublished", part_schema(SILVER, "unpublished"), pending)
    files = {verdict: version.files(f"{verdict}/events") for verdict in PARTS}
    marked = gone_from(_rows(spark, warehouse, files), taken_back)
    hits = marked.where("gone").select("verdict", "file", "event", "publisher").distinct().collect()
    if not hits:
        return version, None
    keys = sorted({(row["event"], row["publisher"]) for row in hits if row["verdict"] == SILVER}, key=str)
    lost = spark.createDataFrame(keys, "event string, publisher string")
    places = {(row["verdict"], row["file"]) for row in hits}
    if keys and files[DUPLICATE]:
        copies = agreeing(_rows(spark, warehouse, {DUPLICATE: files[DUPLICATE]}), lost, EVENT_KEY)
        places |= {(DUPLICATE, row["file"]) for row in copies.where("known").select("file").distinct().collect()}
    concerned = {
        verdict: tuple(file for file in some if (verdict, file.path.rpartition("/")[2]) in places)
        for verdict, some in files.items()
    }
    return _rewritten(spark, warehouse, version, concerned, taken_back, lost)


def _rewritten(
    spark: SparkSession,
    warehouse: Warehouse,
    version: Version,
    concerned: Mapping[str, Sequence[DataFile]],
    taken_back: DataFrame,
    lost: DataFrame,
) -> tuple[Version, DataFrame | None]:
    """The version with new files in place of those concerned, and the copies of what silver has lost."""
    rows = agreeing(gone_from(_rows(spark, warehouse, concerned), taken_back), lost, EVENT_KEY)
    is_copy = F.col("known") & (F.col("verdict") == DUPLICATE)
    kept = rows.where(~F.col("gone") & ~is_copy).drop("gone", "known", "file")
    returned = rows.where(~F.col("gone") & is_copy).select(*table("events").column_names)
    staged = warehouse.stage(kept.hint("rebalance", "verdict", "date", "cell"), "verdict", "date", "cell")
    copies = returned.count() if concerned[DUPLICATE] else 0
    gone = sum(file.rows for some in concerned.values() for file in some) - staged.rows() - copies
    for verdict, some in concerned.items():
        part = f"{verdict}/events"
        version = version.with_files(part, staged.move(part, f"verdict={verdict}"), some)
    staged.discard()
    counts = msgspec.structs.replace(version.counts, unpublished=version.counts.unpublished + gone)
    return msgspec.structs.replace(version, counts=counts), returned if copies else None


def _rows(spark: SparkSession, warehouse: Warehouse, files: Mapping[str, Sequence[DataFile]]) -> DataFrame:
    """The events of all these files, with the part and the file that they are in."""
    frames = [
        warehouse.read(spark, f"{verdict}/events", part_schema(verdict, "events"), some).select(
            "*", F.lit(verdict).alias("verdict"), F.col("_metadata.file_name").alias("file")
        )
        for verdict, some in files.items()
        if some
    ]
    if not frames:
        return spark.createDataFrame(
            [], part_schema(ASIDE, "events").add("verdict", StringType()).add("file", StringType())
        )
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _refinement(name: str, version: Version, files: int) -> Refinement:
    counts = version.counts
    silver, aside, duplicates = (version.rows(f"{verdict}/{name}") for verdict in PARTS)
    found = Refinement(name, files, counts.bronze, silver, aside, duplicates, counts.unpublished, counts.expired)
    if found.bronze != silver + aside + duplicates + found.unpublished + found.expired:
        raise TableFailed(f"the rows of {name} do not add up: {found}; delete its folder in _versions to build it anew")
    return found
