"""Square cells of a local plane, as column expressions: the cells of ``metrics.maps.Grid``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F

from nearcast.model.geometry import EARTH_RADIUS
from nearcast.pipeline.metrics.maps import metres

if TYPE_CHECKING:
    from pyspark.sql import Column

    from nearcast.metrics.maps import Grid


def cell(grid: Grid, lat: Column, lon: Column) -> tuple[Column, Column]:
    """Column (to the east) and row (to the north) of the cell; cells are half-open."""
    east, north = metres(grid, lat, lon)
    return F.floor(east / F.lit(grid.size)), F.floor(north / F.lit(grid.size))


def place(grid: Grid, east: Column, north: Column) -> tuple[Column, Column]:
    """Degrees of a place that is given in metres: the inverse of ``metrics.maps.metres`` (``Plane.degrees``)."""
    lat0 = math.radians(grid.origin.lat)
    sine0, cosine0 = F.lit(math.sin(lat0)), F.lit(math.cos(lat0))
    angle = F.hypot(east, north) / F.lit(EARTH_RADIUS)
    ratio = F.when(angle > 0, F.sin(angle) / angle).otherwise(1.0) / F.lit(EARTH_RADIUS)
    sine = sine0 * F.cos(angle) + cosine0 * north * ratio
    to_east, to_north = east * ratio, cosine0 * F.cos(angle) - sine0 * north * ratio
    lon = F.lit(grid.origin.lon) + F.degrees(F.atan2(to_east, to_north))
    lon = F.when(lon >= 180.0, lon - 360.0).when(lon < -180.0, lon + 360.0).otherwise(lon)
    return F.degrees(F.atan2(sine, F.hypot(to_east, to_north))), lon


def middle(grid: Grid, column: Column, row: Column) -> tuple[Column, Column]:
    """Degrees of the middle of a cell."""
    return place(grid, (column + 0.5) * F.lit(grid.size), (row + 0.5) * F.lit(grid.size))


def components(column: Any, row: Any) -> Any:
    """For each of these distinct cells the number of its connected group; cells that touch, also by a corner, are connected.

    The numbers are 0, 1, ... in the order of the first cell of each group, by row and column.
    """
    columns, rows = np.asarray(column, np.int64), np.asarray(row, np.int64)
    if not len(columns):
        return np.zeros(0, np.int64)
    # A gap of one column between two rows: the last cell of a row has no neighbour in the next.
    width = columns.max() - columns.min() + 2
    key = (rows - rows.min()) * width + (columns - columns.min())
    order = np.argsort(key)
    ordered = key[order]
    pairs = [_touching(ordered, step) for step in (1, width - 1, width, width + 1)]
    first, second = (np.concatenate(side) for side in zip(*pairs, strict=True))
    label = np.arange(len(ordered))
    while True:
        lower = np.minimum(label[first], label[second])
        smaller = label.copy()
        # Both cells, and the cells after which they are called: so names travel along whole groups, not cell by cell.
        for those in (first, second, label[first], label[second]):
            np.minimum.at(smaller, those, lower)
        smaller = smaller[smaller]
        if np.array_equal(smaller, label):
            break
        label = smaller
    numbers = np.empty(len(ordered), np.int64)
    numbers[order] = np.unique(label, return_inverse=True)[1].reshape(-1)
    return numbers


def _touching(ordered: Any, step: int) -> tuple[Any, Any]:
    """Positions of all keys that have a key ``step`` further, and of these."""
    found = np.searchsorted(ordered, ordered + step)
    inside = np.flatnonzero(found < len(ordered))
    hit = inside[ordered[found[inside]] == ordered[inside] + step]
    return hit, found[hit]
