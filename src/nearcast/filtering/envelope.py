"""The space-time envelope of the scheme STE: where a moving client is interested now and will be soon (BYPASS.KOM 4.2.4).

The thesis unites the circle with a cone along the movement vector that widens by 15 degrees and is ``alpha`` * 60 * speed
metres long: the way of ``alpha`` minutes.  It leaves open where the cone starts and whether 15 degrees are per side.  Ours is
a trapezoid that starts at the client as wide as the circle and widens by ``angle`` on each side, drawn in the plane of
``geometry.offset``, in which distance and direction from the client are true.

The circle is decided by the comparison of ``model.Circle``, so that without movement, or with ``alpha`` 0, STE is RADIAL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from nearcast.errors import InvalidPosition, InvalidScheme
from nearcast.model.geometry import Point, checked_metres, distance, offset

ANGLE: Final = 15.0
"""Degrees by which the trapezoid widens, on each side."""

_SLACK: Final = 1.0 + 1e-9  # the bounding circle may be a little too large but never too small


@dataclass(frozen=True, slots=True)
class Envelope:
    """A circle of ``radius`` metres and what lies ahead of it; heading in degrees clockwise from north, speed in m/s."""

    position: Point
    radius: float
    heading: float | None
    speed: float
    alpha: float
    angle: float = ANGLE
    east: float = field(init=False, repr=False, compare=False)
    """With ``north``: the unit vector of the movement."""
    north: float = field(init=False, repr=False, compare=False)
    length: float = field(init=False, repr=False, compare=False)
    """Of the trapezoid, in metres; 0 if there is none."""
    bounding_radius: float = field(init=False, repr=False, compare=False)
    """Of a circle around the position that surely encloses the envelope."""
    _slope: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        radius = checked_metres(self.radius, "the radius of an envelope")
        slope = slope_of(self.angle)
        if not 0.0 <= self.alpha < math.inf:
            raise InvalidScheme(f"alpha is the number of minutes that an envelope looks ahead, not {self.alpha!r}")
        if not 0.0 <= self.speed < math.inf:
            raise InvalidPosition(f"a speed must be finite and not negative, not {self.speed!r}")
        if self.heading is not None and not math.isfinite(self.heading):
            raise InvalidPosition(f"a heading must be a finite number of degrees, or none, not {self.heading!r}")
        turn = math.radians(self.heading or 0.0)
        length = 0.0 if self.heading is None else self.alpha * 60.0 * self.speed
        corner = math.hypot(length, radius + length * slope) * _SLACK if length else radius
        for name, value in (
            ("radius", radius),
            ("east", math.sin(turn)),
            ("north", math.cos(turn)),
            ("length", length),
            ("bounding_radius", corner),
            ("_slope", slope),
        ):
            object.__setattr__(self, name, value)

    def covers(self, point: Point) -> bool:
        if distance(self.position, point) <= self.radius:
            return True
        if self.length == 0.0:  # not even its first line, which may differ from the circle by a rounding
            return False
        x, y = offset(self.position, point)
        ahead, aside = x * self.east + y * self.north, abs(x * self.north - y * self.east)
        return 0.0 <= ahead <= self.length and aside <= self.radius + ahead * self._slope


def slope_of(angle: Any) -> float:
    """By how much a side of the trapezoid recedes per metre ahead."""
    if isinstance(angle, bool) or not isinstance(angle, (int, float)) or not 0.0 <= angle < 90.0:
        raise InvalidScheme(f"an envelope widens by an angle of at least 0 and less than 90 degrees, not {angle!r}")
    return math.tan(math.radians(angle))
