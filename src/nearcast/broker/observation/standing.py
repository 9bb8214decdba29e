"""Where clients stand and how they came there, to be asked who is around somebody who moves: columns, and a glance at all of them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.matching.grid import Floats, Int64s
from nearcast.model.geometry import EARTH_RADIUS, Point, computed_point, distance
from nearcast.model.presence import Way, Whereabouts
from nearcast.model.time import Instant

Bools = npt.NDArray[np.bool_]

LONGEST: Final = 100_000.0
"""Metres: on a longer way planes differ too much for one circle around it, and everybody is looked at."""

WAYS: Final = 16
"""So many of the newest ways of each client are remembered: as long as somebody else reports once for so many reports of it, nothing is missed."""

_DEGREE: Final = math.radians(EARTH_RADIUS)
_MORE: Final = 1.01
"""What straight means in another plane, and rounding."""

_NEVER: Final = -1


class Standing:
    def __init__(self) -> None:
        self._number: Final[dict[str, int]] = {}
        self._clients: list[str] = []
        # A column for each client: where it was after its newest way, after the one before, and so on; and when it came there, on how many metres.
        self._lat, self._lon, self._length = (np.empty((WAYS + 1, 0)) for _ in range(3))
        self._came: Int64s = np.empty((WAYS + 1, 0), np.int64)

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, client: object) -> bool:
        return client in self._number

    def put(self, client: str, way: Way) -> None:
        """It is at the end of the way now.  If it was not known to be at its beginning, nothing is known of how it came there."""
        point = way.after
        assert point is not None
        number = self._number.get(client)
        if number is not None and self._at(number, 0) == way.before:
            for each in (self._lat, self._lon, self._came, self._length):
                each[1:, number] = each[:-1, number]
            self._came[1, number], self._length[0, number] = way.left, distance(way.before, point)
        elif number is None or self._at(number, 0) != point:
            number = self._added(client) if number is None else number
            self._came[:, number], self._length[:, number] = _NEVER, 0.0
        else:
            return
        self._lat[0, number], self._lon[0, number], self._came[0, number] = point.lat, point.lon, way.came

    def _added(self, client: str) -> int:
        number = self._number[client] = len(self._clients)
        self._clients.append(client)
        if number >= self._came.shape[1]:
            more = ((0, 0), (0, number // 2 + 16))
            self._lat, self._lon, self._length = (np.pad(each, more) for each in (self._lat, self._lon, self._length))
            self._came = np.pad(self._came, more)
        return number

    def remove(self, client: str) -> None:
        number = self._number.pop(client, None)
        if number is None:
            return
        last, moved = len(self._clients) - 1, self._clients.pop()
        if number != last:
            self._clients[number], self._number[moved] = moved, number
            for each in (self._lat, self._lon, self._came, self._length):
                each[:, number] = each[:, last]

    def whereabouts(self, client: str, since: Instant) -> Whereabouts:
        """Where it is, and on which ways it was after that moment."""
        number = self._number[client]
        came = self._came[:, number].tolist()
        ways: list[Way] = []
        for newest in range(WAYS):
            if came[newest] <= since or came[newest + 1] == _NEVER:
                break
            ways.append(Way(self._at(number, newest + 1), came[newest + 1], self._at(number, newest), came[newest]))
        return Whereabouts(self._at(number, 0), tuple(reversed(ways)))

    def _at(self, number: int, newest: int) -> Point:
        return computed_point(float(self._lat[newest, number]), float(self._lon[newest, number]))

    def along(self, way: Way, metres: float) -> list[str]:
        """Those who may have been within so many metres of somebody on that way; and some who were not."""
        many, half = len(self._clients), 0.0
        if way.before is not None and way.after is not None:
            half = distance(way.before, way.after) / 2
        if half > LONGEST:
            return list(self._clients)
        middle, reach = way.place(0.5), _MORE * (half + metres) + 1.0
        found = [self._around(0, middle, reach, None)]
        for newest in range(WAYS if way.before is not None and way.after is not None else 0):
            moving = (self._came[newest, :many] > way.left) & (self._came[newest + 1, :many] != _NEVER)
            if not moving.any():
                break
            # Who has moved meanwhile was there only if one end of its way is not farther off than that is long.
            found.append(self._around(newest, middle, reach + _MORE * self._length[newest, :many], moving))
        numbers = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        return [self._clients[number] for number in numbers.tolist()]

    def _around(self, newest: int, middle: Point, reach: Floats | float, among: Bools | None) -> Int64s:
        """The numbers of those who were not farther off than that, after that way."""
        many = len(self._clients)
        lat = self._lat[newest, :many]
        beside = np.abs(lat - middle.lat) <= reach / _DEGREE
        numbers = np.flatnonzero(beside if among is None else beside & among)
        lat, lon = lat[numbers], self._lon[newest, numbers]
        half_lat, half_lon = np.radians(lat - middle.lat) / 2, np.radians(lon - middle.lon) / 2
        cosines = math.cos(math.radians(middle.lat)) * np.cos(np.radians(lat))
        chord = np.sin(half_lat) ** 2 + cosines * np.sin(half_lon) ** 2
        metres = 2 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, chord)))
        near: Bools = metres <= (reach if isinstance(reach, float) else reach[numbers])
        return numbers[near]
