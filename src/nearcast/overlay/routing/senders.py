"""Who may address whom, and how much of it: which sender which area, so many messages and so much area in a second.

Asked by the router where a message begins its way, and, as to areas, once more by the one that would hand it over.  As with the rules of a
broker (``broker.access``), without any rule everything is allowed; as soon as there is one, a message is allowed if one
rule allows all of it, each alternative of its addressing included.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from nearcast.errors import Denied, InvalidSettings, QuotaExceeded
from nearcast.model.area import Area
from nearcast.model.containment import surely_within
from nearcast.model.event import Event
from nearcast.model.geometry import EARTH_RADIUS, Point
from nearcast.model.history import POSITION
from nearcast.model.normal_form import Conjunct
from nearcast.model.predicate import Spatial
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.wire import addressing
from nearcast.runtime.buckets import Bucket, bucket

EVERYWHERE: Final = 4 * math.pi * EARTH_RADIUS**2 / 1e6
"""Square kilometres."""

_INSIDE: Final = ("s_within", "s_intersects", "s_equals")


@dataclass(frozen=True, slots=True, kw_only=True)
class SenderRule:
    """For whoever has one of these names (``*``, ``shop-*``); nothing that is left out is a limit."""

    senders: tuple[str, ...]
    within: Area | None = None
    """Whom they address must be in there."""

    messages_per_second: float = 0.0
    square_kilometres_per_second: float = 0.0
    """Of the areas that they address; whoever names none addresses the whole earth."""

    burst: float = 10.0
    """After a rest, as much at once as otherwise in so many seconds."""

    def __post_init__(self) -> None:
        if self.within is not None and self.within.is_relative:
            raise InvalidSettings("an area that somebody may address lies somewhere; give it a centre")
        if not self.senders or min(self.messages_per_second, self.square_kilometres_per_second) < 0 or self.burst <= 0:
            raise InvalidSettings("a rule is for some senders, and its rates and its burst are not negative")

    def is_for(self, sender: str) -> bool:
        return any(fnmatchcase(sender, form) for form in self.senders)


@dataclass(frozen=True, slots=True)
class SenderStatistics:
    denied: int
    too_fast: int
    remembered: int
    """Senders whose last messages still count."""


class _Spent:
    """Of one sender, under one rule."""

    __slots__ = ("area", "messages")

    def __init__(self, rule: SenderRule) -> None:
        burst = round(rule.burst * MICROSECONDS)
        self.messages: Final = bucket(rule.messages_per_second, burst)
        self.area: Final = bucket(rule.square_kilometres_per_second, burst)

    def buckets(self) -> list[Bucket]:
        return [each for each in (self.messages, self.area) if each is not None]


class Senders:
    """The rules of one router, which should be those of all."""

    def __init__(self, rules: Sequence[SenderRule] = ()) -> None:
        self._rules: Final = tuple(rules)
        self._spent: Final[OrderedDict[tuple[int, str], _Spent]] = OrderedDict()
        self._denied = self._too_fast = 0

    def statistics(self) -> SenderStatistics:
        return SenderStatistics(self._denied, self._too_fast, len(self._spent))

    def may_address(self, sender: str, event: Event) -> bool:
        """Whether some rule lets that sender address whom the message is for."""
        return not self._rules or bool(self._allowing(sender, event))

    def admit(self, sender: str, event: Event, now: Instant) -> None:
        """Take it from what the sender has left; ``Denied`` or ``QuotaExceeded`` if it is not to be sent."""
        if not self._rules:
            return
        self._forget_some(now)
        allowing = self._allowing(sender, event)
        if not allowing:
            self._denied += 1
            raise Denied(
                f"no rule lets {sender!r} address whom event {event.id!r} is for; name an area that is permitted"
            )
        if not any(self._takes(number, sender, event, now) for number in allowing):
            self._too_fast += 1
            raise QuotaExceeded(f"{sender!r} sends too much; wait a moment, or address a smaller area")

    def _allowing(self, sender: str, event: Event) -> list[int]:
        return [
            number
            for number, rule in enumerate(self._rules)
            if rule.is_for(sender)
            and (rule.within is None or all(_lies_in(rule.within, conjunct) for conjunct in addressing(event)))
        ]

    def _takes(self, number: int, sender: str, event: Event, now: Instant) -> bool:
        key = number, sender
        spent = self._spent.setdefault(key, _Spent(self._rules[number]))
        size = math.fsum(map(_square_kilometres, addressing(event)))
        # First the area: whoever asks for too much of it has not spent a message.
        if spent.area is not None and not spent.area.take(now, size):
            return False
        return spent.messages is None or spent.messages.take(now)

    def _forget_some(self, now: Instant) -> None:
        """Two for each message, which adds one at most under each rule."""
        for _ in range(min(1 + len(self._rules), len(self._spent))):
            key, spent = self._spent.popitem(last=False)
            if not all(each.is_full(now) for each in spent.buckets()):
                self._spent[key] = spent  # to the end: looked at again when all others were


def _places(conjunct: Conjunct) -> list[Point | Area]:
    """Where its constraints put whom it is for; all of them must hold, so each alone is a bound."""
    return [
        literal.geometry
        for literal in conjunct
        if isinstance(literal, Spatial) and literal.property == POSITION and literal.op in _INSIDE
    ]


def _lies_in(permitted: Area, conjunct: Conjunct) -> bool:
    return any(surely_within(permitted, place) for place in _places(conjunct))


def _square_kilometres(conjunct: Conjunct) -> float:
    """Of a circle around the smallest area that it names."""
    radii = [0.0 if isinstance(place, Point) else place.bounding_radius() for place in _places(conjunct)]
    return min(EVERYWHERE, math.pi * min(radii) ** 2 / 1e6) if radii else EVERYWHERE
