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

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidPosition, InvalidScheme
from nearcast.model.geometry import (
    EARTH_RADIUS,
    HALF_CIRCUMFERENCE,
    Point,
    checked_metres,
    computed_point,
    distance,
    offset,
)

Column = npt.NDArray[np.float64]

ANGLE: Final = 15.0
"""Degrees by which the trapezoid widens, on each side."""

_SLACK: Final = 1.0 + 1e-9  # the bounding circle may be a little too large but never too small
_MARGIN: Final = 1e-9
_MARGIN_METRES: Final = 1e-6


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
        return _covers(point, self.position, self.radius, self.east, self.north, self.length, self._slope)


def covers_many(
    point: Point,
    lat: Column,
    lon: Column,
    radius: Column,
    east: Column,
    north: Column,
    length: Column,
    angle: float = ANGLE,
) -> npt.NDArray[np.bool_]:
    """Which of many envelopes, given as columns, cover the point: the answers of ``Envelope.covers``.

    The columns are clearly inside or outside by numpy's functions, which round differently; what is neither is asked once
    more, one by one.
    """
    slope = slope_of(angle)
    phi, other, turn = np.radians(lat), math.radians(point.lat), np.radians(point.lon - lon)
    haversine = np.sin((other - phi) / 2) ** 2 + np.cos(phi) * math.cos(other) * np.sin(turn / 2) ** 2
    away = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, haversine)))
    x = math.cos(other) * np.sin(turn)
    y = np.cos(phi) * math.sin(other) - np.sin(phi) * math.cos(other) * np.cos(turn)
    norm = np.hypot(x, y)
    metres = away / np.where(norm == 0.0, 1.0, norm)
    x, y = x * metres, y * metres
    ahead, aside = x * east + y * north, np.abs(x * north - y * east)

    margin = (_MARGIN_METRES + _MARGIN * (away + radius + length)) * (1.0 + slope)
    in_circle = radius - away
    # How far inside the nearest border of the trapezoid; what has no length has no inside.
    in_trapezoid = np.where(
        length > 0.0, np.minimum(np.minimum(ahead, length - ahead), radius + ahead * slope - aside), -np.inf
    )
    inside = np.maximum(in_circle, in_trapezoid)
    covered: npt.NDArray[np.bool_] = inside > 0.0
    # Directions are lost at the client's own position, and near its antipode.
    unclear = (np.abs(inside) <= margin) | (norm < 1e-12) | (away > 0.9 * HALF_CIRCUMFERENCE)
    for i in np.flatnonzero(unclear).tolist():
        position = computed_point(float(lat[i]), float(lon[i]))
        covered[i] = _covers(
            point, position, float(radius[i]), float(east[i]), float(north[i]), float(length[i]), slope
        )
    return covered


def slope_of(angle: Any) -> float:
    """By how much a side of the trapezoid recedes per metre ahead."""
    if isinstance(angle, bool) or not isinstance(angle, (int, float)) or not 0.0 <= angle < 90.0:
        raise InvalidScheme(f"an envelope widens by an angle of at least 0 and less than 90 degrees, not {angle!r}")
    return math.tan(math.radians(angle))


def _covers(
    point: Point, position: Point, radius: float, east: float, north: float, length: float, slope: float
) -> bool:
    if distance(position, point) <= radius:
        return True
    if length == 0.0:  # not even its first line, which may differ from the circle by a rounding
        return False
    x, y = offset(position, point)
    ahead = x * east + y * north
    return 0.0 <= ahead <= length and abs(x * north - y * east) <= radius + ahead * slope
