"""What all sources share: texts become instants and numbers, and rows that cannot be are kept aside as they came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType

from nearcast.model.time import Instant
from nearcast.pipeline.schemas import spark_schema
from nearcast.pipeline.tables.cleaning import reason
from nearcast.records.tables import table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RAW: Final = "raw"
FILE: Final = "file"
_ZONED: Final = r"(?i)(z|[+-]\d\d:?\d\d)$"


@dataclass(frozen=True, slots=True)
class External:
    """Rows of a record table from elsewhere, and those that cannot be: ``file, raw, reason``."""

    table: str
    rows: DataFrame
    aside: DataFrame


def external(
    found: DataFrame, name: str, columns: Mapping[str, Column], texts: Mapping[str, Column], latest: Instant
) -> External:
    """Judge what was found: ``columns`` are those of the table, ``texts`` what some of them were read from.

    The frame has the columns ``raw`` and ``file``; ``problem``, if it has that too, says why a row could not be read at all.
    """
    schema = spark_schema(name)
    made = found.select(
        *(
            columns.get(field.name, F.lit(None)).cast(_castable(field.dataType)).alias(field.name)
            for field in schema.fields
        ),
        F.col(FILE).alias("_file"),
        F.col(RAW).alias("_raw"),
        (F.col("problem") if "problem" in found.columns else F.lit(None).cast("string")).alias("_problem"),
        *(_filled(text).alias(f"_text_{column}") for column, text in texts.items()),
    )
    unreadable = [
        F.when(
            F.col(f"_text_{column}").isNotNull() & F.col(column).isNull(),
            F.concat(F.lit(f"{column} '"), F.substring(f"_text_{column}", 1, 40), F.lit("' cannot be read")),
        )
        for column in texts
    ]
    said = F.concat_ws("; ", *unreadable)
    why = F.coalesce("_problem", F.when(said != "", said), reason(table(name), latest))
    judged = made.withColumn("_reason", why)
    rows = judged.where(F.col("_reason").isNull()).select(*schema.names)
    bad = judged.where(F.col("_reason").isNotNull())
    return External(
        name,
        rows,
        bad.select(F.col("_file").alias("file"), F.col("_raw").alias("raw"), F.col("_reason").alias("reason")),
    )


def file_name() -> Column:
    """The file of a row, as readers of files know it."""
    return F.col("_metadata.file_name").alias(FILE)


def stem(file: Column) -> Column:
    """Its name without the ending: who has no name of its own is called after its file."""
    return F.regexp_replace(file, r"\.[^.]*$", "")


def real(text: Column) -> Column:
    """The number that a text says; null if it says none."""
    return F.trim(text).try_cast("double")


def rfc3339(text: Column) -> Column:
    """The instant that a text says; null if it says none, or leaves the time zone open."""
    written = F.trim(text)
    return F.when(written.rlike(_ZONED), F.try_to_timestamp(written))


def seconds_or_rfc3339(text: Column) -> Column:
    """Seconds since 1970, with a fraction if there is one, or an instant."""
    # Not through doubles: microseconds of today need all their digits.
    micros = (F.trim(text).try_cast("decimal(20,6)") * 1_000_000).try_cast("long")
    return F.coalesce(F.timestamp_micros(micros), rfc3339(text))


def _castable(kind: DataType) -> DataType:
    """Spark casts no list in which null might be to one in which it cannot be."""
    return ArrayType(kind.elementType) if isinstance(kind, ArrayType) else kind


def _filled(text: Column) -> Column:
    """Null where nothing is written."""
    return F.when(F.trim(text) != "", text)
