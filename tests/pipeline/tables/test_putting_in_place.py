"""What was found before is there until what is found now is complete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nearcast.pipeline.tables.store import put_in_place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "observed" / "places"

    def found() -> list[int]:
        return sorted(row["id"] for row in spark.read.parquet(str(folder)).collect())

    put_in_place(spark.range(3), folder)
    put_in_place(spark.range(5, 7), folder)
    assert found() == [5, 6]
    failing = spark.range(2).selectExpr("if(id = 1, raise_error('no more'), id) AS id")
    with pytest.raises(Exception, match="no more"):
        put_in_place(failing, folder)
    assert found() == [5, 6]
    assert list(folder.parent.iterdir()) == [folder]
