"""What was asked for, what came of it, and what had to come of it.

A notification is *due* for a subscription and an object if both were asked for by hosts that were up, the object's tags and time are what
the subscription asks for, the object was not withdrawn before the subscription was made, and the subscription had not ended when the object
was published.  Pairs for which it depends on a few seconds which came first (``MARGIN``) are not judged, nor is whom nothing can reach any
more: a subscriber that is down when the run ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.crowdstore.storage import Outcome
from nearcast.model.time import MICROSECONDS, Instant

MARGIN: Final = 5 * MICROSECONDS
OPERATIONS: Final = ("publish", "unpublish", "subscribe", "unsubscribe", "download")


@dataclass(slots=True)
class Wish:
    host: str
    tag: str
    since: Instant | None
    made: Instant
    ended: Instant | None = None
    heard: dict[ObjectKey, Instant] = field(default_factory=dict)


@dataclass(slots=True)
class Thing:
    metadata: Metadata
    withdrawn: Instant | None = None


@dataclass(slots=True)
class Asked:
    host: str
    kind: str
    at: Instant
    ended: Instant | None = None
    ok: bool = False
    interrupted: bool = False
    """Whoever asked went down before there was an answer; it does not count."""


class Book:
    """Of one run."""

    def __init__(self) -> None:
        self.wishes: Final[list[Wish]] = []
        self.things: Final[dict[ObjectKey, Thing]] = {}
        self.asked: Final[list[Asked]] = []
        self._away: Final[dict[str, list[tuple[Instant, Instant | None]]]] = {}

    def begin(self, host: str, kind: str, now: Instant) -> Asked:
        entry = Asked(host, kind, now)
        self.asked.append(entry)
        return entry

    def goes(self, host: str, now: Instant) -> None:
        """It is off from now on; what it has asked for does not count any more."""
        self._away.setdefault(host, []).append((now, None))
        for entry in self.asked:
            if entry.host == host and entry.ended is None:
                entry.interrupted = True

    def returns(self, host: str, now: Instant) -> None:
        times = self._away.get(host)
        if times and times[-1][1] is None:
            times[-1] = times[-1][0], now

    def _reachable(self, host: str, at: Instant) -> Instant:
        """When the host can be told something at the earliest: its own absence is nobody's latency."""
        for left, back in self._away.get(host, ()):
            if left <= at and (back is None or at < back):
                return at if back is None else back
        return at

    def numbers(self, up: Iterable[str]) -> dict[str, float]:
        """Success and latency by operation; ``up`` are the hosts that are up at the end."""
        found: dict[str, float] = {}
        for kind in OPERATIONS:
            judged = [entry for entry in self.asked if entry.kind == kind and not entry.interrupted]
            found[f"{kind} asked"] = len(judged)
            if judged:
                found[f"{kind} success"] = sum(entry.ok for entry in judged) / len(judged)
            found |= _latency(
                kind, [entry.ended - entry.at for entry in judged if entry.ended is not None and entry.ok]
            )
        return found | self._notifications(frozenset(up))

    def _notifications(self, up: frozenset[str]) -> dict[str, float]:
        due = heard = extra = 0
        latencies: list[int] = []
        by_tag: dict[str, list[Thing]] = {}
        for thing in self.things.values():
            for tag in thing.metadata.tags:
                by_tag.setdefault(tag, []).append(thing)
        for wish in self.wishes:
            certain, possible = _judged(wish, by_tag.get(wish.tag, ()))
            extra += sum(key not in possible for key in wish.heard)
            latencies += [
                at - min(at, self._reachable(wish.host, possible[key]))
                for key, at in wish.heard.items()
                if key in possible
            ]
            if wish.host in up:
                due += len(certain)
                heard += sum(key in wish.heard for key in certain)
        found = {"notification due": float(due), "notification extra": float(extra)}
        if due:
            found["notification success"] = heard / due
        return found | _latency("notification", latencies)


def _judged(wish: Wish, things: Iterable[Thing]) -> tuple[set[ObjectKey], dict[ObjectKey, Instant]]:
    """What is due for sure, and what may be told, with when it could be at the earliest."""
    certain: set[ObjectKey] = set()
    possible: dict[ObjectKey, Instant] = {}
    for thing in things:
        published, key = thing.metadata.published, thing.metadata.key
        if wish.since is not None and published < wish.since:
            continue
        margins = [it for it in (
            None if thing.withdrawn is None else thing.withdrawn - wish.made,
            None if wish.ended is None else wish.ended - published,
        ) if it is not None]  # fmt: skip
        if all(margin > -MARGIN for margin in margins):
            possible[key] = max(published, wish.made)
        if all(margin > MARGIN for margin in margins):
            certain.add(key)
    return certain, possible


def _latency(kind: str, microseconds: list[int]) -> dict[str, float]:
    if not microseconds:
        return {}
    return {
        f"{kind} latency": sum(microseconds) / len(microseconds) / MICROSECONDS,
        f"{kind} latency max": max(microseconds) / MICROSECONDS,
    }


def ends(entry: Asked, now: Instant, outcome: Outcome) -> None:
    entry.ended, entry.ok = now, outcome.ok
