"""The record tables as Spark sees them; every reader and job takes its schemas from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nearcast.records import Kind, table

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def spark_schema(name: str) -> StructType:
    """The schema of that table, each column with its description; what simulations leave null stays nullable.

    A new one for every caller: Spark's schemas can be changed, and `add` does it in place.
    """
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(column.name, _spark_type(column.kind), column.nullable, {"comment": column.description})
            for column in table(name).columns
        ]
    )


def _spark_type(kind: Kind) -> DataType:
    from pyspark.sql.types import ArrayType, BinaryType, DoubleType, LongType, StringType, TimestampType

    match kind:
        case Kind.INSTANT:
            return TimestampType()
        case Kind.WHOLE:
            return LongType()
        case Kind.REAL:
            return DoubleType()
        case Kind.TEXT | Kind.NAME:
            return StringType()
        case Kind.TEXTS:
            return ArrayType(StringType(), containsNull=False)
        case Kind.BYTES:
            return BinaryType()
