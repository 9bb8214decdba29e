"""Cells as column expressions are those of the metrics; connected cells are found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F
from tests.pipeline.frames import frame

from nearcast.metrics.maps import Grid
from nearcast.model.geometry import Point
from nearcast.pipeline.metrics.maps import metres
from nearcast.pipeline.observation.cells import cell, components, place
from nearcast.runtime.simulation.plane import Plane

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

small = st.integers(-4, 4)


@pytest.mark.parametrize("origin", [Point(49.8728, 8.6512), Point(-17.0, 179.999), Point(89.9, 20.0)])
def test_places_lie_where_the_plane_of_the_metrics_has_them(spark: SparkSession, origin: Point) -> None:
    random = np.random.default_rng(1)
    plane, grid = Plane(origin), Grid(origin, 20.0)
    x, y = random.uniform(-3_000, 3_000, 500), random.uniform(-3_000, 3_000, 500)
    x[:2], y[:2] = 0.0, (0.0, 100.0)
    lat, lon = plane.degrees(x, y)
    there = metres(grid, F.col("lat"), F.col("lon"))
    back = place(grid, *there)
    columns = [*there, *cell(grid, F.col("lat"), F.col("lon")), *back]
    found: Any = np.array(frame(spark, {"lat": lat, "lon": lon}).select(*columns).collect()).T
    np.testing.assert_allclose(found[0], x, atol=1e-6)
    np.testing.assert_allclose(found[1], y, atol=1e-6)
    np.testing.assert_array_equal(found[2:4], grid.cells(lat, lon))
    np.testing.assert_allclose(found[4], lat, atol=1e-11)
    np.testing.assert_allclose(found[5], lon, atol=1e-9)


def test_what_has_no_place_has_no_cell(spark: SparkSession) -> None:
    grid = Grid(Point(49.8728, 8.6512), 20.0)
    nowhere = spark.sql("select cast(null as double) as lat, cast(null as double) as lon")
    assert nowhere.select(*cell(grid, F.col("lat"), F.col("lon"))).collect() == [(None, None)]


@given(st.sets(st.tuples(small, small), max_size=40))
def test_cells_that_touch_are_connected_and_no_others(cells: set[tuple[int, int]]) -> None:
    ordered = sorted(cells, key=lambda each: (hash(each), each))
    found = components([column for column, _ in ordered], [row for _, row in ordered])
    assert dict(zip(ordered, found.tolist(), strict=True)) == _flooded(cells)


def test_a_long_winding_chain_of_cells_is_one_group() -> None:
    turns = np.array([(step, 2 * row) for row in range(60) for step in range(60)])
    links = np.array([(59 if row % 2 == 0 else 0, 2 * row + 1) for row in range(59)])
    chain = np.concatenate([turns, links])
    assert set(components(chain[:, 0], chain[:, 1]).tolist()) == {0}
    assert set(components(turns[:, 0], turns[:, 1]).tolist()) == set(range(60))


def _flooded(cells: set[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """One group after the other, from the south and west on."""
    groups: dict[tuple[int, int], int] = {}
    for start in sorted(cells, key=lambda each: (each[1], each[0])):
        if start in groups:
            continue
        number, waiting = len(set(groups.values())), [start]
        while waiting:
            column, row = here = waiting.pop()
            if here in cells and here not in groups:
                groups[here] = number
                waiting += [(column + i, row + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return groups
