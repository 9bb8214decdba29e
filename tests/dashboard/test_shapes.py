"""Areas as they are drawn."""

from __future__ import annotations

import math

import pytest

from nearcast.dashboard.shapes import MOST_CORNERS, area_shape
from nearcast.model.area import Polygon

Ring = tuple[tuple[float, float], ...]


def ring(corners: int, lon: float) -> Ring:
    angles = [2 * math.pi * corner / corners for corner in range(corners)]
    open_ring = [(lon + math.cos(angle), 49.0 + math.sin(angle)) for angle in angles]
    return (*open_ring, open_ring[0])


@pytest.mark.parametrize("corners", [4, MOST_CORNERS - 1, MOST_CORNERS, MOST_CORNERS + 1, 5_000])
def test_a_polygon_is_drawn_with_few_corners_and_stays_closed(corners: int) -> None:
    rings = [ring(corners, lon) for lon in (8.0, 12.0)]
    one, several = Polygon(((rings[0],),)), Polygon(tuple((each,) for each in rings))
    for area, polygons in ((one, 1), (several, 2)):
        shape = area_shape(area, None)
        assert shape is not None
        drawn = [shape["coordinates"]] if polygons == 1 else shape["coordinates"]
        for (found,), whole in zip(drawn, rings, strict=False):
            assert set(found) <= set(whole)
            assert found[0] == found[-1] == whole[0]
            assert min(corners, MOST_CORNERS // 2) <= len(found) <= MOST_CORNERS + 1
            assert corners >= MOST_CORNERS or len(found) == corners + 1
