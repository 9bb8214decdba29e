"""Spark sees the record tables as the records say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nearcast.errors import UnknownName
from nearcast.pipeline.schemas import spark_schema
from nearcast.records import TABLES, RecordWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_schemas_are_those_that_spark_finds_in_a_recording(spark: SparkSession, tmp_path: Path) -> None:
    with RecordWriter(tmp_path):
        pass
    for table in TABLES:
        schema = spark_schema(table.name)
        assert schema.names == list(table.column_names)
        assert [field.nullable for field in schema] == [column.nullable for column in table.columns]
        assert [field.metadata["comment"] for field in schema] == [column.description for column in table.columns]
        found = spark.read.parquet(str(tmp_path / table.name))
        assert found.dtypes == [(field.name, field.dataType.simpleString()) for field in schema]


def test_a_recording_without_the_later_columns_reads_with_nulls(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    with RecordWriter(tmp_path) as recording:
        recording.append("clients", 0, "ada", "joined")
    part = tmp_path / "clients" / "part-0000.parquet"
    pq.write_table(pq.read_table(part).drop_columns(["offset"]), part)
    [row] = spark.read.schema(spark_schema("clients")).parquet(str(tmp_path / "clients")).collect()
    assert (row.client, row.offset) == ("ada", None)


def test_one_caller_cannot_change_the_schema_of_another() -> None:
    changed = spark_schema("clients").add("mine", "string")
    assert len(changed) == len(spark_schema("clients")) + 1


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(UnknownName, match="there is no record table 'evnts'"):
        spark_schema("evnts")
