"""Ways through areas: where somebody who reports positions now and then enters an area, leaves it, or crosses it.

Between two reports one after the other a client is taken to move straight and at constant speed, *in the plane in which the area is drawn*:
the azimuthal equidistant plane around the centre of circles, rectangles and outlines, longitude and latitude for boxes and polygons (the
shorter way round the earth).  So what counts is the whole way and not only its ends, and it can be computed exactly; which plane it is
makes a difference of some centimetres for a way through a town.

A *visit* is a longest stretch of the way that the area covers.  Its borders belong to the area, also here: who only touches it has been there.
At both ends ``Area.covers`` decides, whatever rounding says in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from nearcast.model.area import Area, Circle, Rectangle
from nearcast.model.geometry import Point, offset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shapely.geometry.base import BaseGeometry

Visit = tuple[float, float]
"""Shares of the way, from 0 to 1, between which the area covers it."""

AT_ONCE: Final = math.ulp(0.0)
_IN_THE_END: Final = math.nextafter(1.0, 0.0)

_NOTHING: Final = 1e-12
"""Degrees or metres: of so short a way shapely finds no parts."""


class Passing(StrEnum):
    """What may happen between somebody who moves and an area."""

    ENTER = "enter"
    LEAVE = "leave"
    CROSS = "cross"
    """Entered and left again between two reports: it was at neither of them in the area."""


@dataclass(frozen=True, slots=True)
class Passage:
    """Something that happened on the way, in the order of which ``passages`` tells of them."""

    kind: Passing
    share: float
    """How much of the way lies behind when it happens."""


def visits(area: Area, start: Point, end: Point) -> tuple[Visit, ...]:
    """All visits of an absolute area on the way from one report to the next, in their order."""
    inside_first, inside_last = area.covers(start), area.covers(end)
    if start == end:
        return ((0.0, 1.0),) if inside_first else ()
    match area:
        case Circle():
            found = _in_circle(area, start, end)
        case Rectangle():
            found = _in_rectangle(area, start, end)
        case _:
            found = _in_shape(area, start, end)
    return with_ends(found, first=inside_first, last=inside_last)


def passages(area: Area, start: Point, end: Point) -> tuple[Passage, ...]:
    """What happens on the way from one report to the next; to stay inside, or outside, is nothing."""
    return tuple(passage for visit in visits(area, start, end) for passage in passages_of(visit))


def passages_of(visit: Visit) -> Iterable[Passage]:
    entered, left = visit
    if entered > 0.0:
        yield Passage(Passing.ENTER, entered)
    if left < 1.0:
        yield Passage(Passing.LEAVE, left)
        if entered > 0.0:
            yield Passage(Passing.CROSS, left)


def with_ends(found: Iterable[Visit], *, first: bool, last: bool) -> tuple[Visit, ...]:
    """The visits, but at both ends as ``Area.covers`` says it is there."""
    merged: list[Visit] = [(0.0, 0.0)] if first else []
    for entered, left in sorted([*found, (1.0, 1.0)] if last else found):
        if merged and entered <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(left, merged[-1][1])
        else:
            merged.append((entered, left))
    if merged and not first and merged[0][0] == 0.0:  # outside at the start itself, and inside at once
        merged[0] = AT_ONCE, max(AT_ONCE, merged[0][1])
    if merged and not last and merged[-1][1] == 1.0:
        merged[-1] = min(merged[-1][0], _IN_THE_END), _IN_THE_END
    return tuple(merged)


def _in_circle(circle: Circle, start: Point, end: Point) -> list[Visit]:
    center = circle.fixed_center()
    entered, left = chord(*offset(center, start), *offset(center, end), circle.radius)
    return [(entered, left)] if entered <= left else []


def chord(x0: float, y0: float, x1: float, y1: float, radius: float) -> Visit:
    """The part of a straight way within ``radius`` of the origin; of one that is nowhere, the first share is above the second."""
    dx, dy = x1 - x0, y1 - y0
    square = dx * dx + dy * dy
    if square == 0.0:
        return (0.0, 1.0) if x0 * x0 + y0 * y0 <= radius * radius else (1.0, 0.0)
    middle = -(x0 * dx + y0 * dy) / square  # where the line is nearest to the origin
    apart = x0 * dy - y0 * dx  # times the length: how far that is
    half = radius * radius * square - apart * apart
    if half < 0.0:
        return 1.0, 0.0
    half = math.sqrt(half) / square
    return max(0.0, middle - half), min(1.0, middle + half)


def clipped(x0: float, y0: float, x1: float, y1: float, half_width: float, half_height: float) -> Visit:
    """The part of a straight way within a rectangle around the origin; of one that is nowhere, the first share is above the second."""
    entered, left = 0.0, 1.0
    for axis in range(2):
        at, step, half = (x0, x1 - x0, half_width) if axis == 0 else (y0, y1 - y0, half_height)
        if step == 0.0:
            if abs(at) > half:
                return 1.0, 0.0
        else:
            one, other = (-half - at) / step, (half - at) / step
            entered, left = max(entered, min(one, other)), min(left, max(one, other))
    return entered, left


def _in_rectangle(rectangle: Rectangle, start: Point, end: Point) -> list[Visit]:
    center = rectangle.fixed_center()
    half = rectangle.width / 2, rectangle.height / 2
    entered, left = clipped(*offset(center, start), *offset(center, end), *half)
    return [(entered, left)] if entered <= left else []


def _in_shape(area: Area, start: Point, end: Point) -> list[Visit]:
    """Areas that are drawn by shapely: outlines in their plane, boxes and polygons in longitude and latitude."""
    shape: BaseGeometry = area.shape  # type: ignore[attr-defined]
    from nearcast.model.area import Outline

    if isinstance(area, Outline):
        center = area.fixed_center()
        return _along(shape, offset(center, start), offset(center, end))
    turn = math.copysign(360.0, start.lon - end.lon) if abs(end.lon - start.lon) > 180.0 else 0.0
    found: list[Visit] = []
    # A way across the antimeridian goes beyond 180 degrees: look at it from both sides.
    for shift in {0.0, -turn, 360.0 if start.lon == -180.0 or end.lon == -180.0 else 0.0}:
        found += _along(shape, (start.lon + shift, start.lat), (end.lon + turn + shift, end.lat))
    return found


def _along(shape: BaseGeometry, start: tuple[float, float], end: tuple[float, float]) -> list[Visit]:
    import shapely

    if max(abs(end[0] - start[0]), abs(end[1] - start[1])) < _NOTHING:
        return [(0.0, 1.0)] if shapely.covers(shape, shapely.points(*start)) else []
    axis = 0 if abs(end[0] - start[0]) >= abs(end[1] - start[1]) else 1
    length = end[axis] - start[axis]

    def share(position: tuple[float, ...]) -> float:
        return min(1.0, max(0.0, float((position[axis] - start[axis]) / length)))

    met = shapely.intersection(shape, shapely.linestrings([start, end]))
    found = []
    for part in shapely.get_parts(met):
        shares = [share(position) for position in shapely.get_coordinates(part)]
        if shares:
            found.append((min(shares), max(shares)))
    return found
