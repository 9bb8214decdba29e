"""What belongs to one host, whatever mechanism keeps the crowd's things: it stays when mechanisms are exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from nearcast.crowdstore.access import Identity, genuine
from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.objects import (
    CrowdSubscription,
    Metadata,
    ObjectKey,
    Publication,
    SubscriptionKey,
    Withdrawal,
)
from nearcast.model.time import Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Link

Notified = Callable[[Metadata], None]


@dataclass(slots=True)
class Tally:
    """What came of notifications; it outlives mechanisms."""

    notified: int = 0
    duplicates: int = 0
    late: int = 0
    """For subscriptions that are no more."""

    foreign: int = 0
    """Of what the subscription does not ask for, or of what is known to be withdrawn."""

    forged: int = 0
    """Of what its owner never said."""


@dataclass(slots=True)
class _Wanted:
    subscription: CrowdSubscription
    notified: Notified
    made: Instant
    told: dict[ObjectKey, None]
    """A dictionary as an ordered set."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What outlives the components of a host: a device that was off still has its data (THYME 6.4.2)."""

    published: dict[ObjectKey, Publication] = field(default_factory=dict)
    """What this host has published and not withdrawn; what it publishes for others who may be gone is among it."""

    withdrawn: dict[ObjectKey, Metadata] = field(default_factory=dict)
    """What this host has withdrawn; never published again, because objects do not change."""

    words: dict[ObjectKey, Withdrawal] = field(default_factory=dict)
    """Of these, by which their owners withdrew them: of objects that this host had published for others."""

    held: dict[ObjectKey, Publication] = field(default_factory=dict)
    """Objects of others of which this host has a copy: because it downloaded them, or keeps them for others."""

    entrusted: dict[ObjectKey, None] = field(default_factory=dict)
    """Those of them that it has for others only: they go when they are withdrawn, whatever mechanism runs then."""

    spread: dict[ObjectKey, dict[tuple[CellGrid, Cell], None]] = field(default_factory=dict)
    """Of what this host has published: all cells whose members were given a copy, so that they hear of it when it is withdrawn."""

    wanted: dict[SubscriptionKey, _Wanted] = field(default_factory=dict)
    """Own subscriptions, with whom to tell and what they were told of."""

    tally: Tally = field(default_factory=Tally)


class Nucleus:
    """Own publications and subscriptions, copies of others' objects, and the last check of every notification."""

    def __init__(
        self, host: Host, interface: str, memory: Memory | None = None, identity: Identity | None = None
    ) -> None:
        memory = memory or Memory()
        self.host: Final = host
        self.link: Final[Link] = host.link(interface)
        self.published: Final = memory.published
        self.withdrawn: Final = memory.withdrawn
        self.words: Final = memory.words
        self.held: Final = memory.held
        self.entrusted: Final = memory.entrusted
        self.spread: Final = memory.spread
        self.tally: Final = memory.tally
        self._wanted: Final = memory.wanted
        self._identity: Final = identity

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def subscriptions(self) -> tuple[CrowdSubscription, ...]:
        """Of this host, in the order in which they were made."""
        return tuple(wanted.subscription for wanted in self._wanted.values())

    def subscription(self, key: SubscriptionKey) -> CrowdSubscription | None:
        wanted = self._wanted.get(key)
        return wanted.subscription if wanted else None

    def made(self, key: SubscriptionKey) -> Instant | None:
        """When; what was published before is its past, of which its application is told in batches, and all since unasked."""
        wanted = self._wanted.get(key)
        return wanted.made if wanted else None

    def told(self, key: SubscriptionKey) -> int:
        """How many objects its application was told of; none, if there is no such subscription."""
        wanted = self._wanted.get(key)
        return len(wanted.told) if wanted else 0

    def wants(self, subscription: CrowdSubscription, notified: Notified) -> None:
        self._wanted[subscription.key] = _Wanted(subscription, notified, self.host.now(), {})

    def wants_no_more(self, key: SubscriptionKey) -> CrowdSubscription | None:
        wanted = self._wanted.pop(key, None)
        return wanted.subscription if wanted else None

    def content_of(self, key: ObjectKey) -> Publication | None:
        """The object, if this host has it."""
        return self.published.get(key) or self.held.get(key)

    def withdrawal(self, metadata: Metadata) -> Withdrawal:
        """What to tell others when an object of this host, or that it published for its owner, is withdrawn."""
        word, identity = self.words.get(metadata.key), self._identity
        if word is not None:
            return word
        return identity.withdrawal(metadata) if identity else Withdrawal(metadata.key, metadata.published)

    def notify(self, key: SubscriptionKey, metadata: Metadata) -> bool:
        """Somebody says that an object matches; the application hears of it once.  False if it does not.

        The check is made again here: whoever said so may know an older subscription, or be wrong.
        """
        wanted = self._wanted.get(key)
        if wanted is None:
            self.tally.late += 1
            return False
        if metadata.key in self.withdrawn or not wanted.subscription.accepts(metadata):
            self.tally.foreign += 1
            return False
        if metadata.key in wanted.told:
            self.tally.duplicates += 1
            return False
        if not genuine(metadata):
            self.tally.forged += 1
            return False
        wanted.told[metadata.key] = None
        self.tally.notified += 1
        wanted.notified(metadata)
        return True
