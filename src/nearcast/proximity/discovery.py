"""The proximity discovery service: which proximities this device is in (STEAM 4.5).

The list depends on where the device is, not on what it subscribes to; the groups it is a member of follow from both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.proximity.announcement import Announcement, point_of
from nearcast.proximity.messages import Beacon, Stream

Key = tuple[str, str, bool]
"""Who announced it, its subject, and whether it is a consumer's: announcing again replaces it."""


@dataclass(frozen=True, slots=True)
class Relevant:
    """A proximity of another device that this one is in."""

    producer: str
    announcement: Announcement
    group: int
    place: Point
    """Where the other device was when it last spoke."""

    heard: Instant
    period: float
    relay: bool

    @property
    def key(self) -> Key:
        return self.producer, self.announcement.subject, self.announcement.wanted

    @property
    def stream(self) -> Stream:
        return self.producer, self.announcement.subject

    def covers(self, point: Point) -> bool:
        return self.announcement.reach(self.place).covers(point)


class Discovery:
    def __init__(self, identify: Callable[[str], int], forgotten_after: float) -> None:
        self._identify: Final = identify
        self._forgotten_after: Final = forgotten_after
        self._relevant: Final[dict[Key, Relevant]] = {}
        self._groups: Final[dict[int, dict[Key, Relevant]]] = {}
        self._wanted: Final[dict[str, dict[Key, Relevant]]] = {}

    def __len__(self) -> int:
        return len(self._relevant)

    def __iter__(self) -> Iterator[Relevant]:
        return iter(tuple(self._relevant.values()))

    def find(self, producer: str, subject: str, *, wanted: bool = False) -> Relevant | None:
        return self._relevant.get((producer, subject, wanted))

    def in_group(self, group: int) -> tuple[Relevant, ...]:
        return tuple(self._groups.get(group, {}).values())

    def wanting(self, subject: str) -> tuple[Relevant, ...]:
        """Proximities of consumers for that subject."""
        return tuple(self._wanted.get(subject, {}).values())

    def hear(self, beacon: Beacon, now: Instant, *, inside: bool) -> Relevant | None:
        """Inside: added or refreshed.  Outside, or withdrawn: removed, and ``None``."""
        announcement, place = beacon.announcement, point_of(beacon.place)
        known = self._relevant.get((beacon.producer, announcement.subject, announcement.wanted))
        if beacon.withdrawn or not inside:
            if known is not None:
                self.remove(known)
            return None
        same = known is not None and known.announcement == announcement
        group = known.group if known is not None and same else self._identify(announcement.description)
        if known is not None and not same:
            self.remove(known)
        found = Relevant(beacon.producer, announcement, group, place, now, beacon.period, beacon.relay)
        self._relevant[found.key] = found
        self._groups.setdefault(group, {})[found.key] = found
        if announcement.wanted:
            self._wanted.setdefault(announcement.subject, {})[found.key] = found
        return found

    def leave(self, now: Instant, here: Point | None) -> list[Relevant]:
        """Drop the stationary ones that this device has left, which are answered, and moving ones that have been silent for too long.

        One that moves is never judged by a place that may be old (STEAM 4.5.2); but whoever is left behind hears no beacon that
        would tell it so.
        """
        left = [each for each in self if not each.announcement.moves and here is not None and not each.covers(here)]
        silent = [each for each in self if each.announcement.moves and now - each.heard > self._longest_silence(each)]
        for each in (*left, *silent):
            self.remove(each)
        return left

    def _longest_silence(self, relevant: Relevant) -> float:
        return self._forgotten_after * relevant.period * MICROSECONDS

    def remove(self, relevant: Relevant) -> None:
        key = relevant.key
        del self._relevant[key]
        members = self._groups[relevant.group]
        del members[key]
        if not members:
            del self._groups[relevant.group]
        if relevant.announcement.wanted:
            wanting = self._wanted[relevant.announcement.subject]
            del wanting[key]
            if not wanting:
                del self._wanted[relevant.announcement.subject]
