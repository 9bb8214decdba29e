"""What it costs: how much is said and sent in every second, and under which filter scheme."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from nearcast.cli.demo.broker import BrokerStatus
from nearcast.cli.demo.crowd import CrowdStatistics
from nearcast.cli.demo.witness import WitnessStatistics

REGIONS: Final = "+regions"
"""Behind a scheme: that was it elsewhere."""

_WINDOW: Final = 3.0
"""Seconds over which rates are taken."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What has happened, since the beginning or during some time."""

    seconds: float = 0.0
    published: int = 0
    delivered: int = 0
    dropped: int = 0
    """Copies that the receivers' last check has dropped."""

    bytes_to: int = 0
    """From the broker to people, and ``bytes_from`` back: all of it, MQTT's own included."""

    bytes_from: int = 0
    context_messages: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) - getattr(other, each.name) for each in fields(self)))

    @property
    def precision(self) -> float:
        """The share of copies that were wanted."""
        copies = self.delivered + self.dropped
        return self.delivered / copies if copies else 1.0

    @property
    def bytes_per_delivery(self) -> float:
        return (self.bytes_to + self.bytes_from) / max(1, self.delivered)

    def per_second(self, count: float) -> float:
        return count / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A transition, as it was seen from outside."""

    at: float
    """Seconds since the beginning."""

    before: str
    after: str
    people: int


@dataclass(frozen=True, slots=True)
class Moment:
    """For the picture: how many there were, and what ran."""

    at: float
    people: int
    scheme: str


class Meter:
    """Fed about twice a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._began: Final = clock()
        self.status: BrokerStatus | None = None
        self.changes: Final[list[Change]] = []
        self.moments: Final[list[Moment]] = []
        self.by_scheme: Final[dict[str, Counts]] = {}
        self._first: Counts | None = None
        self._recent: Final[deque[Counts]] = deque()

    @property
    def seconds(self) -> float:
        return self._clock() - self._began

    @property
    def scheme(self) -> str:
        return "" if self.status is None else self.status.scheme

    @property
    def total(self) -> Counts:
        return self._recent[-1] - self._first if self._first is not None else Counts()

    @property
    def lately(self) -> Counts:
        """The last few seconds."""
        return self._recent[-1] - self._recent[0] if self._recent else Counts()

    def read(self, status: BrokerStatus, crowd: CrowdStatistics, witness: WitnessStatistics) -> Change | None:
        """Take the figures of this moment; the transition that happened since the last ones, if one did."""
        people, seconds = crowd.people, self.seconds
        now = Counts(
            seconds,
            witness.published,
            people.delivered,
            people.unwanted,
            status.bytes_out,
            status.bytes_in,
            people.context_messages,
        )
        change = None
        if self._first is None:
            self._first = now
        else:
            # What happened between two looks belongs to the scheme that ran at the first of them.
            assert self.status is not None
            ran = self.scheme + (REGIONS if self.status.regions else "")
            self.by_scheme[ran] = self.by_scheme.get(ran, Counts()) + (now - self._recent[-1])
            if status.scheme != self.scheme:
                change = Change(seconds, self.scheme, status.scheme, crowd.connected)
                self.changes.append(change)
        self._recent.append(now)
        while len(self._recent) > 2 and now.seconds - self._recent[1].seconds >= _WINDOW:
            self._recent.popleft()
        self.status = status
        self.moments.append(Moment(seconds, crowd.connected, status.scheme))
        return change
