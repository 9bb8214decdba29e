"""How many people a sender's messages go to: ``people_per_hour`` of a rule.

Every copy for somebody else counts, also if the same person gets several: what the quota is against, people being flooded with messages of one
sender, does not become less when it hits the same ones, and nobody needs to be remembered by name for it.  Counted by the minute, and a minute is forgotten
when all of it lies more than an hour back: so within *any* hour no more than the quota goes out, where a window that begins anew each hour would let through twice as
much around its beginning.  A message counts before it is delivered, as a whole or not at all, and what was counted is written with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from nearcast.broker.access.grants import Grant
from nearcast.errors import QuotaExceeded
from nearcast.journal import Journal, Put
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant

PEOPLE: Final = "people addressed"
"""The table of what was counted, by rule and virtual identity."""

_MINUTE: Final = 60 * MICROSECONDS
_HOUR: Final = 60


@dataclass(frozen=True, slots=True)
class PeopleStatistics:
    senders: int
    """Rules and users of whom something is counted."""

    counted: int
    refused: int
    """Messages."""


class Sender(Protocol):
    @property
    def user(self) -> str | None: ...

    def allowing(self, event: Event) -> tuple[Grant, ...]: ...


class People:
    """One for each broker."""

    def __init__(self, journal: Journal, identity: Callable[[str], str], now: Callable[[], Instant]) -> None:
        self._now: Final = now
        self._identity: Final = identity
        self._minutes: Final[dict[str, dict[int, int]]] = {}
        self.counted = self.refused = 0
        for key, row in journal.load(PEOPLE).items():
            self._minutes[key] = msgspec.msgpack.decode(row, type=dict[int, int])

    def statistics(self) -> PeopleStatistics:
        return PeopleStatistics(len(self._minutes), self.counted, self.refused)

    def meter(self, sender: Sender, event: Event) -> Meter | None:
        """What counts the receivers of that event; nothing if a rule without a quota allows it.  ``Denied`` if none does."""
        allowing = sender.allowing(event)
        limits = [
            (grant.counted_as or grant.rule, grant.rule, grant.people_per_hour)
            for grant in allowing
            if grant.people_per_hour is not None
        ]
        if len(limits) < len(allowing) or not limits:
            return None
        # Anonymous senders share one count: they could call themselves anything.
        who = "" if sender.user is None else self._identity(sender.user)
        return Meter(self, tuple((f"{counted}\0{who}", rule, limit) for counted, rule, limit in limits))

    def left(self, key: str, limit: int) -> int:
        oldest = self._now() // _MINUTE - _HOUR
        minutes = self._minutes.get(key)
        if minutes is None:
            return limit
        for minute in [minute for minute in minutes if minute < oldest]:
            del minutes[minute]
        return limit - sum(minutes.values())

    def add(self, key: str, people: int) -> Put:
        minutes = self._minutes.setdefault(key, {})
        minute = self._now() // _MINUTE
        minutes[minute] = minutes.get(minute, 0) + people
        self.counted += people
        return Put(PEOPLE, key, msgspec.msgpack.encode(minutes))


class Meter:
    """Counts the receivers of one message."""

    __slots__ = ("_limits", "_people")

    def __init__(self, people: People, limits: tuple[tuple[str, str, int], ...]) -> None:
        self._people: Final = people
        self._limits: Final = limits

    def count(self, receivers: int) -> Sequence[Put]:
        """So many are to get it: what is to be written with it; ``QuotaExceeded``, and nothing is counted, if that is too many."""
        if not receivers:
            return ()
        refusals = []
        for key, rule, limit in self._limits:
            left = self._people.left(key, limit)
            if receivers <= left:
                return (self._people.add(key, receivers),)
            refusals.append(
                # Not how many it would go to: whoever has nothing left could count people anywhere, and nobody would notice.
                f"{rule}: the message would go to more people than the {left} of {limit} that are left this hour"
            )
        self._people.refused += 1
        raise QuotaExceeded(f"{' | '.join(refusals)} (people_per_hour); nobody got it")
