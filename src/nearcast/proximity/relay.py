"""Passing messages on inside a proximity that is larger than a radio's range: everybody once (STEAM 4.3), or by gossip (5.4)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from random import Random
from typing import Final

from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.proximity.settings import ProximitySettings
from nearcast.runtime.ports import Clock, Timers

REMEMBERED: Final = 30 * MICROSECONDS
"""For so long at least, and twice as long at most, a message is recognised."""


class Relay:
    def __init__(self, clock: Clock, timers: Timers, random: Random, settings: ProximitySettings) -> None:
        self._clock: Final = clock
        self._timers: Final = timers
        self._random: Final = random
        self._settings: Final = settings
        self._recent: set[Hashable] = set()
        self._older: set[Hashable] = set()
        self._turn: Instant = 0
        self.forwarded = 0

    def knows(self, message: Hashable) -> bool:
        """Whether this device has heard it before."""
        return message in self._recent or message in self._older

    def remember(self, message: Hashable) -> None:
        if self._clock.now() >= self._turn:
            self._turn = self._clock.now() + REMEMBERED
            self._recent, self._older = set(), self._recent
        self._recent.add(message)

    def forward(self, say: Callable[[], None], here: Point, origin: Point | None = None) -> None:
        """Pass it on, after a moment.  With an ``origin``, whoever is out of its reach does so only with some probability."""
        settings = self._settings
        if not settings.forwards:
            return
        beyond = origin is not None and distance(here, origin) > settings.transmission_range
        if beyond and settings.gossip < 1.0 and self._random.random() >= settings.gossip:
            return
        self.forwarded += 1
        self._timers.after(self._random.random() * settings.jitter, say)
