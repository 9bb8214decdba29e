"""Where everybody is, as bytes: made once in a period, from the matcher's own columns, for all viewers.

Little endian: u8 version, u8 flags (bit 0: everybody; else only who has changed), u16 reserved, u32 count, i64 microseconds; then for each client
u32 index, f32 degrees east and f32 degrees north of the origin (not a number: not known any more), u8 number of its scheme, u8 number of its role,
u16 degrees clockwise from north (0xffff: it has not moved).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.matching import Matcher
from nearcast.model.geometry import Point
from nearcast.model.time import Instant

VERSION: Final = 1
FULL: Final = 1
HEADER: Final = struct.Struct("<BBHIq")
RECORD: Final = np.dtype(
    [
        ("index", "<u4"),
        ("dx", "<f4"),
        ("dy", "<f4"),
        ("scheme", "u1"),
        ("role", "u1"),
        ("heading", "<u2"),
    ]
)
NO_HEADING: Final = 0xFFFF
MOST: Final = 100_000
"""Clients that are shown; nobody tells more of them apart, and a browser draws no more."""

Floats = npt.NDArray[np.float64]


class Positions:
    """What the viewers have been told, and what is new."""

    def __init__(self, matcher: Matcher, origin: Point) -> None:
        self._matcher: Final = matcher
        self.origin: Final = origin
        self._lat: Floats = np.empty(0)
        self._lon: Floats = np.empty(0)
        self._heading = np.empty(0, np.uint16)
        self._marked = np.empty(0, np.bool_)
        self.schemes = np.empty(0, np.uint8)
        self.roles = np.empty(0, np.uint8)
        self._at: Instant = 0
        self._full: bytes | None = None

    @property
    def located(self) -> int:
        return int(np.count_nonzero(~np.isnan(self._lat)))

    def mark(self, number: int, scheme: int, role: int) -> None:
        """What kind of client that is."""
        if number < len(self.schemes) and (self.schemes[number] != scheme or self.roles[number] != role):
            self.schemes[number], self.roles[number] = scheme, role
            self._marked[number] = True

    def renumber(self, column: npt.NDArray[np.uint8], old: int, new: int) -> None:
        """Of schemes or of roles, one has another number."""
        concerned = column == old
        column[concerned] = new
        self._marked |= concerned

    def show_again(self, numbers: Sequence[int]) -> None:
        """Tell of them at the next look, even if nothing has changed by then."""
        self._marked[[number for number in numbers if number < len(self._marked)]] = True

    def look(self, now: Instant) -> bytes | None:
        """Who has changed since the last look; none if nobody has."""
        lat, lon = self._matcher.positions
        lat, lon = lat[:MOST].copy(), lon[:MOST].copy()
        self._grow(len(lat))
        known, before = ~np.isnan(lat), ~np.isnan(self._lat)
        moved = (known != before) | (known & ((lat != self._lat) | (lon != self._lon)))
        went = np.flatnonzero(moved & known & before)
        if len(went):
            east = (lon[went] - self._lon[went]) * np.cos(np.radians(lat[went]))
            north = lat[went] - self._lat[went]
            self._heading[went] = np.degrees(np.arctan2(east, north)).round().astype(np.int64) % 360
        self._heading[moved & ~(known & before)] = NO_HEADING
        changed = np.flatnonzero(moved | (self._marked & known))
        self._lat, self._lon, self._at = lat, lon, now
        self._marked[:] = False
        if not len(changed):
            return None
        self._full = None
        return self._encoded(changed, 0)

    def full(self) -> bytes:
        """Everybody whose position is known, as of the last look."""
        if self._full is None:
            self._full = self._encoded(np.flatnonzero(~np.isnan(self._lat)), FULL)
        return self._full

    def positions(self) -> tuple[Floats, Floats]:
        """Of those who are known, as of the last look."""
        known = ~np.isnan(self._lat)
        return self._lat[known], self._lon[known]

    def _encoded(self, numbers: npt.NDArray[np.intp], flags: int) -> bytes:
        rows = np.empty(len(numbers), RECORD)
        rows["index"] = numbers
        rows["dx"] = self._lon[numbers] - self.origin.lon
        rows["dy"] = self._lat[numbers] - self.origin.lat
        rows["scheme"] = self.schemes[numbers]
        rows["role"] = self.roles[numbers]
        rows["heading"] = self._heading[numbers]
        return HEADER.pack(VERSION, flags, 0, len(numbers), self._at) + rows.tobytes()

    def _grow(self, size: int) -> None:
        more = size - len(self._lat)
        if more > 0:
            unknown = np.full(more, np.nan)
            self._lat, self._lon = np.concatenate([self._lat, unknown]), np.concatenate([self._lon, unknown])
            self._heading = np.concatenate([self._heading, np.full(more, NO_HEADING, np.uint16)])
            self._marked = np.concatenate([self._marked, np.zeros(more, np.bool_)])
            self.schemes = np.concatenate([self.schemes, np.zeros(more, np.uint8)])
            self.roles = np.concatenate([self.roles, np.zeros(more, np.uint8)])
