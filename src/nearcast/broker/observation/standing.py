"""Where clients stand, to be asked who is around somebody who moves: columns, and a glance at all of them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from nearcast.matching.grid import Floats
from nearcast.matching.growing import grown
from nearcast.model.geometry import EARTH_RADIUS, Point, computed_point, distance
from nearcast.model.presence import Way

LONGEST: Final = 100_000.0
"""Metres: on a longer way planes differ too much for one circle around it, and everybody is looked at."""

_DEGREE: Final = math.radians(EARTH_RADIUS)
_MORE: Final = 1.01
"""What straight means in another plane, and rounding."""


class Standing:
    def __init__(self) -> None:
        self._number: Final[dict[str, int]] = {}
        self._clients: list[str] = []
        self._lat: Floats = np.empty(0)
        self._lon: Floats = np.empty(0)

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, client: object) -> bool:
        return client in self._number

    def put(self, client: str, point: Point) -> None:
        number = self._number.get(client)
        if number is None:
            number = self._number[client] = len(self._clients)
            self._clients.append(client)
            self._lat, self._lon = grown(self._lat, number + 1), grown(self._lon, number + 1)
        self._lat[number], self._lon[number] = point.lat, point.lon

    def remove(self, client: str) -> None:
        number = self._number.pop(client, None)
        if number is None:
            return
        last, moved = len(self._clients) - 1, self._clients.pop()
        if number != last:
            self._clients[number], self._number[moved] = moved, number
            self._lat[number], self._lon[number] = self._lat[last], self._lon[last]

    def point(self, client: str) -> Point:
        number = self._number[client]
        return computed_point(float(self._lat[number]), float(self._lon[number]))

    def along(self, way: Way, metres: float) -> list[str]:
        """Those who may be within so many metres of a way; and some who are not."""
        many = len(self._clients)
        half = 0.0
        if way.before is not None and way.after is not None:
            half = distance(way.before, way.after) / 2
        if half > LONGEST:
            return list(self._clients)
        middle, reach = way.place(0.5), _MORE * (half + metres) + 1.0
        lat, lon = self._lat[:many], self._lon[:many]
        beside = np.flatnonzero(np.abs(lat - middle.lat) <= reach / _DEGREE)
        if not len(beside):
            return []
        half_lat, half_lon = np.radians(lat[beside] - middle.lat) / 2, np.radians(lon[beside] - middle.lon) / 2
        cosines = math.cos(math.radians(middle.lat)) * np.cos(np.radians(lat[beside]))
        chord = np.sin(half_lat) ** 2 + cosines * np.sin(half_lon) ** 2
        near = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, chord))) <= reach
        return [self._clients[number] for number in beside[near].tolist()]
