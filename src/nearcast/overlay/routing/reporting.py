"""What of a local context the network is told (4.3, 4.5.1).

Whoever registers and whoever goes is reported in any case: entering and leaving an access network are updates in all approaches.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from nearcast.errors import InvalidSettings
from nearcast.model.area import Area, Box
from nearcast.model.geometry import Point, distance
from nearcast.model.history import POSITION, Context
from nearcast.model.values import same


class Reporting(ABC):
    """How exactly, and how often."""

    coarse: bool = False
    """Whether contexts become coarse by it, so that tables must ask what is possible."""

    @abstractmethod
    def reported(self, context: Context, last: Context | None) -> Context:
        """What the network is to know; if that is what was reported ``last``, nothing is sent."""


@dataclass(frozen=True, slots=True)
class Exact(Reporting):
    """Everything, at once."""

    def reported(self, context: Context, last: Context | None) -> Context:  # noqa: ARG002 - whatever was said
        return context


@dataclass(frozen=True, slots=True)
class ServiceArea(Reporting):
    """The area of the access network instead of a position in it (Alg. 4.1); what is coarse already stays.

    A position outside of the area, of a client that hears the node all the same, stays exact: the area would not stand for it.
    """

    area: Area
    coarse = True

    def __post_init__(self) -> None:
        if self.area.is_relative:
            raise InvalidSettings("a service area lies somewhere; give it a centre")

    def reported(self, context: Context, last: Context | None) -> Context:  # noqa: ARG002 - whatever was said
        position = context.get(POSITION)
        if not isinstance(position, Point) or not self.area.covers(position):
            return context
        return {**context, POSITION: self.area}


@dataclass(frozen=True, slots=True)
class Cells(Reporting):
    """The cell of a grid instead of a position in it: nobody is missed, and who moves within a cell is not reported."""

    degrees: float
    """Of a cell's edge."""

    coarse = True

    def __post_init__(self) -> None:
        if not 0 < self.degrees <= 90:
            raise InvalidSettings(f"cells of {self.degrees} degrees cannot be; give up to 90")

    def reported(self, context: Context, last: Context | None) -> Context:  # noqa: ARG002 - whatever was said
        position = context.get(POSITION)
        if not isinstance(position, Point):
            return context
        west, east = _cell(position.lon, self.degrees, 180.0)
        south, north = _cell(position.lat, self.degrees, 90.0)
        return {**context, POSITION: Box(west, south, east, north)}


@dataclass(frozen=True, slots=True)
class ByDistance(Reporting):
    """A new position only when the last one that was reported is too far away (DBn): routers are wrong by ``metres`` at most.

    They take it for the exact one, so whoever stands just outside of an area by their knowledge, and inside in truth, is missed.
    """

    metres: float

    def __post_init__(self) -> None:
        if not self.metres >= 0:
            raise InvalidSettings(f"positions cannot be reported every {self.metres} m")

    def reported(self, context: Context, last: Context | None) -> Context:
        position, before = context.get(POSITION), None if last is None else last.get(POSITION)
        if not isinstance(position, Point) or not isinstance(before, Point) or distance(position, before) > self.metres:
            return context
        unmoved = {**context, POSITION: before}
        # Where something else has changed, an update goes out anyway; it may as well say where.
        return unmoved if alike(unmoved, last) else context


def alike(one: Context, other: Context | None) -> bool:
    """Whether no filter could tell them apart."""
    if other is None or one.keys() != other.keys():
        return False
    return all(same(value, other[name]) for name, value in one.items())


def _cell(degrees: float, size: float, limit: float) -> tuple[float, float]:
    """The cell's borders; the last ones end at the pole or the date line."""
    lower = math.floor(degrees / size) * size
    if lower > degrees:  # the quotient was rounded up to the next whole number
        lower -= size
    return max(-limit, lower), min(limit, max(degrees, lower + size))
