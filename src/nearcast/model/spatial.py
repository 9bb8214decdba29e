"""Spatial relations between a place and a geometry.

A position is a point.  Borders belong to the area, so ``s_within`` and ``s_intersects`` are the same for a
point; crossing and overlapping need an extent and are not offered.  A *coarse* position (an area) stands for
one point somewhere inside; ``possible`` asks whether some point inside meets the relation.
"""

from __future__ import annotations

from nearcast.model.area import Area, Circle
from nearcast.model.geometry import Point


def relation(op: str, point: Point, geometry: Point | Area) -> bool:
    """Whether ``point`` stands in relation ``op`` to ``geometry``."""
    geometry = _simplest(geometry)
    if isinstance(geometry, Point):
        equal = point == geometry
        return not equal if op == "s_disjoint" else equal and op != "s_touches"
    if op in ("s_within", "s_intersects"):
        return geometry.covers(point)
    if op == "s_disjoint":
        return not geometry.covers(point)
    if op == "s_touches":
        from nearcast.model import shapes

        return shapes.on_border(point, geometry)
    return False  # a point neither contains nor equals an area


def possible(op: str, area: Area, geometry: Point | Area, *, negated: bool) -> bool:
    """Whether some point of ``area`` stands (``negated``: does not stand) in relation ``op`` to ``geometry``."""
    from nearcast.model import shapes  # only here, as it brings shapely: see area.py

    place, geometry = _simplest(area), _simplest(geometry)
    if isinstance(place, Point):
        return relation(op, place, geometry) is not negated
    if op == "s_disjoint":
        op, negated = "s_intersects", not negated
    if isinstance(geometry, Point):
        if op == "s_touches":
            return negated
        return not shapes.is_only(area, geometry) if negated else area.covers(geometry)
    if op in ("s_within", "s_intersects"):
        return not shapes.covers(geometry, area) if negated else shapes.intersects(area, geometry)
    if op == "s_touches":
        return negated or shapes.meets_border(area, geometry)
    return negated


def _simplest(geometry: Point | Area) -> Point | Area:
    """A circle without radius is its centre."""
    return geometry.fixed_center() if isinstance(geometry, Circle) and geometry.radius == 0 else geometry
