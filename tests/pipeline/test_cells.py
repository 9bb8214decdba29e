"""Coarse cells: one name for each tenth of a degree, the same in Spark and in Python."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from nearcast.errors import InvalidPosition
from nearcast.pipeline.cells import cells_within, coarse_cell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def names(spark: SparkSession, places: list[tuple[float | None, float | None]]) -> list[str]:
    frame = spark.createDataFrame(places, "lat double, lon double")
    return [row[0] for row in frame.select(coarse_cell(frame["lat"], frame["lon"])).collect()]


def test_a_cell_is_named_for_its_south_western_corner(spark: SparkSession) -> None:
    infinite = float("inf")
    shown: dict[tuple[float | None, float | None], str] = {
        (49.87, 8.65): "n49.8e8.6",
        (0.0, -0.05): "n0.0w0.1",
        (-33.85, 151.21): "s33.9e151.2",
        (90.0, 180.0): "n90.0e180.0",
        (-90.0, -180.0): "s90.0w180.0",
        (None, 8.65): "none",
        (49.87, None): "none",
        (float("nan"), 8.65): "none",
        (-infinite, infinite): "none",
        (90.1, 0.0): "none",
    }
    assert names(spark, list(shown)) == list(shown.values())


def test_every_place_of_a_box_lies_in_one_of_its_cells(spark: SparkSession) -> None:
    draw = random.Random(1)
    corners = [(round(draw.uniform(-2, 2), 1), round(draw.uniform(-2, 2), 1)) for _ in range(200)]
    assert set(names(spark, [*corners])) <= set(cells_within(-2, -2, 2, 2))
    assert cells_within(49.87, 8.65, 49.87, 8.65) == ["n49.8e8.6"]
    assert cells_within(0.05, 179.95, 0.05, -179.95) == ["n0.0e179.9", "n0.0e180.0", "n0.0w180.0"]


@pytest.mark.parametrize("box", [(1, 0, 0, 1), (0, 0, 91, 1), (0, -181, 1, 1), (-90, -180, 90, 180)])
def test_what_is_no_box_or_too_large_is_refused(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(InvalidPosition):
        cells_within(*box)
