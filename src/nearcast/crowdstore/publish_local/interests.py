"""All subscriptions of the crowd, as one host knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec

from nearcast.crowdstore.formula import Formula
from nearcast.crowdstore.objects import CrowdSubscription, SubscriptionKey
from nearcast.crowdstore.publish_local.messages import DIGEST, KNOWN, Interest
from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant, TimeFrame

MOST: Final = 65_536
"""Subscriptions that a host keeps: those beyond it does not know."""


@dataclass(slots=True)
class Kept:
    subscription: CrowdSubscription
    interest: Interest
    seen: Instant
    """When this host last heard of it anew, or found a way to its owner again: what it had published by then is its past."""

    met: Instant | None
    """The same, but from its owner, who was there then; none: so far only others have told of it."""


class Learned(NamedTuple):
    kept: Kept
    before: Instant | None
    """When its owner was there before: it was told of what was published here by then, and may have been away since; none: it never was."""


class Interests:
    """By key; those that were ended are remembered for a while, so that nobody brings them back who has not heard of it."""

    def __init__(self, remembered: float, forgotten: Callable[[SubscriptionKey], None]) -> None:
        self._remembered: Final = round(remembered * MICROSECONDS)
        self._forgotten: Final = forgotten
        """Told of those that are no longer kept."""

        self._kept: Final[dict[SubscriptionKey, Kept]] = {}
        self._ended: Final[dict[SubscriptionKey, Instant]] = {}
        """With the time, in its order."""

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(tuple(self._kept.values()))

    @property
    def ended(self) -> int:
        """How many of those are remembered."""
        return len(self._ended)

    def get(self, key: SubscriptionKey) -> Kept | None:
        return self._kept.get(key)

    def has_ended(self, key: SubscriptionKey) -> bool:
        return key in self._ended

    def add(self, interest: Interest, now: Instant, *, of_others: bool = False) -> Learned | None:
        """What is to be told now: if the subscription is new here, and one at all, or if its owner has told of it anew.

        ``of_others``: not its owner has told of it, who may be away.
        """
        self._forget(now)
        key = interest.key
        kept = self._kept.get(key)
        if kept is not None:
            if not kept.interest.made < interest.made <= self._latest(now):
                return None
            kept.interest = msgspec.structs.replace(kept.interest, made=interest.made)
            before, kept.seen = kept.met, now
            kept.met = kept.met if of_others else now
            return Learned(kept, before)
        if key in self._ended or len(self._kept) >= MOST or self._over(interest, now):
            return None
        formula = _formula(interest.formula)
        if formula is None:
            return None
        try:
            frame = TimeFrame(interest.since, interest.until)
        except InvalidInput:
            return None
        # Else nothing that its owner says later would count, and it would never be over.
        interest = msgspec.structs.replace(interest, made=min(interest.made, self._latest(now)))
        kept = self._kept[key] = Kept(CrowdSubscription(key, formula, frame), interest, now, None if of_others else now)
        return Learned(kept, None)

    def _latest(self, now: Instant) -> Instant:
        """Clocks differ; but nobody makes others wait for what is told in the far future."""
        return now + self._remembered // 2

    def end(self, key: SubscriptionKey, now: Instant) -> None:
        self._forget(now)
        self._drop(key)
        self._ended.pop(key, None)
        self._ended[key] = now
        if len(self._ended) > MOST:
            del self._ended[next(iter(self._ended))]

    def known(self) -> bytes:
        """Digests of as many as may be named."""
        return b"".join(digest(key) for key in list(self._kept)[:KNOWN])

    def others(self, known: bytes, now: Instant) -> list[Interest]:
        """Those that are not among the named ones."""
        named = frozenset(known[at : at + DIGEST] for at in range(0, len(known), DIGEST))
        self.purge(now)
        return [kept.interest for kept in self._kept.values() if digest(kept.interest.key) not in named]

    def purge(self, now: Instant) -> None:
        """Forget those whose time is over: a host that was away may still come back with what they ask for, but not for ever."""
        over: Iterable[SubscriptionKey] = [key for key, kept in self._kept.items() if self._over(kept.interest, now)]
        for key in over:
            self._drop(key)

    def _drop(self, key: SubscriptionKey) -> None:
        if self._kept.pop(key, None) is not None:
            self._forgotten(key)

    def _over(self, interest: Interest, now: Instant) -> bool:
        return interest.until is not None and max(interest.until, interest.made) < now - self._remembered

    def _forget(self, now: Instant) -> None:
        while self._ended and next(iter(self._ended.values())) < now - self._remembered:
            del self._ended[next(iter(self._ended))]


@lru_cache(maxsize=4_096)
def _formula(text: str) -> Formula | None:
    """None: it is none.  Every host reads every formula, and those that cost most to read are none."""
    try:
        return Formula.parse(text)
    except InvalidInput:
        return None


@lru_cache(maxsize=4_096)
def digest(key: SubscriptionKey) -> bytes:
    return blake2b(f"{len(key.owner)} {key}".encode(), digest_size=DIGEST).digest()
