"""The source under its name."""

# ruff: noqa: N802 - Spark has named these methods

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from nearcast.errors import InvalidSettings
from nearcast.pipeline.schemas import spark_schema
from nearcast.pipeline.source import options as settings
from nearcast.pipeline.source.reader import BatchReader, StreamReader
from nearcast.pipeline.source.writer import BatchWriter, StreamWriter, check_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class NearcastSource(DataSource):
    """``spark.read.format("nearcast").option("table", "events").option("lake", DIR).option("broker", URL)``."""

    @classmethod
    def name(cls) -> str:
        return "nearcast"

    def schema(self) -> StructType:
        return spark_schema(settings.reading(self.options).table)

    def reader(self, schema: StructType) -> BatchReader:
        return BatchReader(self._reading(schema), schema)

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(self._reading(schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(self._writing(schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(self._writing(schema, overwrite=overwrite))

    def _writing(self, schema: StructType, *, overwrite: bool) -> settings.SourceOptions:
        options = settings.writing(self.options)
        if overwrite:
            raise InvalidSettings("what a broker has delivered cannot be overwritten; use the mode append")
        check_columns(options.table, schema)
        return options

    def _reading(self, schema: StructType) -> settings.SourceOptions:
        """Whoever wants few columns says so with ``.schema(...)``: nothing else is then read from the files."""
        options = settings.reading(self.options)
        known = {field.name: field.dataType for field in spark_schema(options.table)}
        wrong = [field.simpleString() for field in schema if known.get(field.name) != field.dataType]
        if wrong:
            raise InvalidSettings(
                f"{options.table} has no columns {', '.join(wrong)}; it has {spark_schema(options.table).simpleString()}"
            )
        return options


def register(spark: SparkSession) -> None:
    """Make the source known to a session; Spark then also hands it the bounds of ``time`` that a query has."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(NearcastSource)
