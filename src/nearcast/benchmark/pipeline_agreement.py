"""Whether systems find the same pairs of event and client."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nearcast.benchmark.report import Measurement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Answers(NamedTuple):
    pairs: int
    checksum: int
    """Does not depend on their order."""


def exploded(found: DataFrame) -> DataFrame:
    """The pairs of a match of ours."""
    from pyspark.sql import functions as F

    return found.select("event", F.explode("receivers").alias("client"))


def answers(pairs: DataFrame) -> Answers:
    from pyspark.sql import functions as F

    mixed = F.xxhash64("event", "client").bitwiseAND(F.lit(0xFFFFFFFF))
    row = pairs.agg(F.count("*").alias("pairs"), F.sum(mixed).alias("checksum")).collect()[0]
    return Answers(row.pairs, row.checksum or 0)


def written(spark: SparkSession, tables: Iterable[Any], folder: Path) -> DataFrame:
    """Arrow tables of pairs that some other system has found, as a frame."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number:06}.parquet")
    return spark.read.schema("event bigint, client bigint").parquet(str(folder))


def different(ours: DataFrame, theirs: DataFrame) -> int:
    """Pairs that only one of both has found, or that one has found more often."""
    from pyspark.sql import functions as F

    sides = ours.withColumn("side", F.lit(1)).unionByName(theirs.withColumn("side", F.lit(-1)))
    return sides.groupBy("event", "client").agg(F.sum("side").alias("more")).where("more <> 0").count()


def with_agreement(row: Measurement, ours: int, theirs: int, **said: Any) -> Measurement:
    return replace(row, parameters={**row.parameters, "answers": theirs, "our_answers": ours, **said})
