"""The source under its name."""

# ruff: noqa: N802 - Spark has named these methods

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from nearcast.errors import InvalidSettings
from nearcast.pipeline.kafka.options import KafkaOptions, checked
from nearcast.pipeline.kafka.reader import BatchReader, StreamReader
from nearcast.pipeline.kafka.stretch import COLUMNS
from nearcast.pipeline.kafka.writer import BatchWriter, StreamWriter, check_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class KafkaSource(DataSource):
    """``spark.read.format("nearcast-kafka").option("kafka.bootstrap.servers", "HOST:9092").option("topic", NAME)``."""

    @classmethod
    def name(cls) -> str:
        return "nearcast-kafka"

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> BatchReader:  # noqa: ARG002 - there is one only
        return BatchReader(checked(self.options))

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: ARG002
        return StreamReader(checked(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(self._writing(schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(self._writing(schema, overwrite=overwrite))

    def _writing(self, schema: StructType, *, overwrite: bool) -> KafkaOptions:
        options = checked(self.options)
        if overwrite:
            raise InvalidSettings("a topic cannot be overwritten; use the mode append")
        check_columns(schema)
        return options


def register(spark: SparkSession) -> None:
    """Make the source known to a session."""
    spark.dataSource.register(KafkaSource)
