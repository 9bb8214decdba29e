"""Areas against many points at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nearcast.matching.areas import covered
from nearcast.model.area import Area, Box, Circle, Outline, Polygon, Rectangle
from nearcast.model.geometry import HALF_CIRCUMFERENCE, Point, distance

SQUARE = ((-180.0, -10.0), (-170.0, -10.0), (-170.0, 10.0), (-180.0, 10.0), (-180.0, -10.0))
EASTERN = ((170.0, -10.0), (180.0, -10.0), (180.0, 10.0), (170.0, 10.0), (170.0, -10.0))
CENTER, EDGE = Point(3.0, 175.0), Point(5.0, -178.0)

AREAS: list[Area] = [
    Circle(distance(CENTER, EDGE), CENTER),
    Circle(math.nextafter(distance(CENTER, EDGE), 0), CENTER),
    Circle(0.0, EDGE),
    Circle(HALF_CIRCUMFERENCE, CENTER),
    Circle(HALF_CIRCUMFERENCE - 0.2, CENTER),
    Circle(1e300, CENTER),
    Rectangle(1e6, 2e6, CENTER),
    Outline(((-1e5, -1e5), (2e6, 0.0), (-1e5, 2e6), (-1e5, -1e5)), CENTER),
    Box(170, -20, -175, 20),
    Box(-180, -90, 180, 90),
    Box(100, -5, 180, 5),
    Polygon(((SQUARE,), (EASTERN,))),
    Polygon(((EASTERN,),)),
]


@pytest.mark.parametrize("area", AREAS, ids=lambda area: type(area).__name__)
def test_the_answers_are_those_of_covers(area: Area) -> None:
    rng = np.random.default_rng(3)
    special = [CENTER, EDGE, Point(90, 0), Point(-90, 0), Point(0, -180), Point(10, -180), Point(-3, -5), Point(5, 100)]
    points = special + [
        Point(lat, lon)
        for lat, lon in zip(rng.uniform(-90, 90, 150).tolist(), rng.uniform(-180, 180, 150).tolist(), strict=True)
    ]
    lat, lon = np.array([p.lat for p in points]), np.array([p.lon for p in points])
    assert covered(area, lat, lon).tolist() == [area.covers(point) for point in points]


@pytest.mark.parametrize("area", AREAS, ids=lambda area: type(area).__name__)
def test_nobody_knows_where_is_outside(area: Area) -> None:
    assert covered(area, np.array([np.nan, np.nan]), np.array([np.nan, np.nan])).tolist() == [False, False]
    assert covered(area, np.zeros(0), np.zeros(0)).tolist() == []
