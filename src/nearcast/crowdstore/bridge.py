"""A host that reaches an archive keeps it and its crowd alike: what is published or withdrawn on one side, is on the other.

The archive is a port; what stands behind it is handed in (``client.crowds``: a broker).  Names make it safe to do everything again: an
object's id in the archive follows from its key, and an event's name in the crowd from its id.  So restarts double nothing, and neither
do several bridges: of two that have brought the same event down, the one with the greater name takes it back.

Crowds do not tell subscribers of withdrawals; stores that are to be bridged do (``CrowdStore(notices=True)``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, Protocol

import msgspec

from nearcast.crowdstore.access import genuine_withdrawal
from nearcast.crowdstore.nucleus import Notified
from nearcast.crowdstore.objects import WITHDRAWN, Metadata, ObjectKey, Publication, SubscriptionKey, Withdrawal
from nearcast.crowdstore.service import PAUSE, CrowdStore
from nearcast.crowdstore.storage import Failure, Outcome
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable

ARCHIVED: Final = "crowd:archived"
"""The tag of what a bridge has brought into the crowd."""

_withdrawal: Final = msgspec.msgpack.Decoder(Withdrawal).decode


@dataclass(frozen=True, slots=True)
class Archived:
    """Something that the archive has."""

    tags: tuple[str, ...]
    content: bytes
    origin: ObjectKey | None
    """If it was an object of a crowd."""


Contents = Callable[[Mapping[str, Archived]], None]
"""All that the archive has now, by id."""


class Archive(Protocol):
    def open(self, contents: Contents) -> None:
        """From now on what it has is told again and again."""

    def close(self) -> None: ...

    def keep(self, identifier: str, publication: Publication) -> None:
        """Whatever it has under that id already is this."""

    def forget(self, identifier: str) -> None: ...


def identifier_of(key: ObjectKey) -> str:
    """Of an object in the archive."""
    return "crowd-" + blake2b(msgspec.msgpack.encode(key), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class BridgeStatistics:
    up: int
    """Objects that were given to the archive."""

    down: int
    """Events that were brought into the crowd, and are still there."""

    forgotten: int
    """Objects that were withdrawn in the crowd, and so in the archive."""

    failed: int
    """Downloads; tried again when the object is heard of after a restart."""


class Bridge(Component):
    """After the ``CrowdStore`` among the components of its host; ``formula`` says which objects go up."""

    def __init__(self, archive: Archive, formula: str, settling: float = 10.0) -> None:
        """``settling``: when it has heard nothing from before its start for so many seconds, it knows what the crowd has."""
        self._archive: Final = archive
        self._formula: Final = formula
        self._settling: Final = settling
        self._settled = False
        self._standing: Final[dict[str, SubscriptionKey]] = {}
        """By formula: subscriptions that the crowd has confirmed."""

        self._seen: Final[dict[str, None]] = {}
        """Ids of objects of this crowd."""

        self._gone: Final[dict[str, None]] = {}
        """Ids of those that were withdrawn."""

        self._down: Final[dict[str, str]] = {}
        """Ids of what was brought down, and by whom."""

        self._own: Final[dict[str, Metadata]] = {}
        """What this host has brought down, in this life or before."""

        self._found: Final[dict[str, Instant]] = {}
        """Since when it is known that the archive has an object of a crowd of which nobody has told this host."""

        self._up = self._failed = 0
        self._host: Host
        self._store: CrowdStore
        self._name: str
        self._since: Instant
        self._quiet: Cancellable | None = None
        """Runs while all subscriptions stand, and nothing is heard from before."""

    def start(self, host: Host) -> None:
        self._host, self._store, self._name, self._since = host, host.component(CrowdStore), host.name, host.now()
        for key, publication in self._store.nucleus.published.items():  # of an earlier life
            if ARCHIVED in publication.metadata.tags:
                self._down[key.name] = self._name
                self._own[key.name] = publication.metadata
        for formula, notified in self._interests.items():
            self._listen(formula, notified)
        self._archive.open(self._compare)

    def stop(self) -> None:
        self._archive.close()

    def statistics(self) -> BridgeStatistics:
        down = sum(owner == self._name for owner in self._down.values())
        return BridgeStatistics(self._up, down, len(self._gone), self._failed)

    # From the crowd

    @property
    def _interests(self) -> dict[str, Notified]:
        return {self._formula: self._heard, ARCHIVED: self._brought, WITHDRAWN: self._withdrawn}

    def _listen(self, formula: str, notified: Notified) -> None:
        """Until the crowd confirms it, this host does not know what is there; so it asks until it does."""

        def told(metadata: Metadata) -> None:
            notified(metadata)
            if metadata.published <= self._since:  # the past comes in batches
                self._host.timers.after(0.0, partial(self._store.more, key))
                self._wait_for_quiet()

        def confirmed(outcome: Outcome) -> None:
            if outcome.ok:
                self._standing[formula] = key
                self._wait_for_quiet()
            elif outcome.failure is not Failure.STOPPED:
                self._store.unsubscribe(key)
                self._host.timers.after(PAUSE, partial(self._listen, formula, notified))

        key = self._store.subscribe(formula, told, done=confirmed)

    def _wait_for_quiet(self) -> None:
        if len(self._standing) == len(self._interests) and not self._settled:
            if self._quiet is not None:
                self._quiet.cancel()
            self._quiet = self._host.timers.after(self._settling, self._settle)

    def _heard(self, metadata: Metadata) -> None:
        identifier = identifier_of(metadata.key)
        if ARCHIVED not in metadata.tags and identifier not in self._gone:
            self._seen[identifier] = None
            if self._down.get(identifier) == self._name:  # brought down because nobody here knew of it
                del self._down[identifier]
                self._take_back(identifier)
            self._store.download(metadata, partial(self._came, metadata), opened=False)

    def _came(self, metadata: Metadata, outcome: Outcome) -> None:
        identifier = identifier_of(metadata.key)
        if outcome.content is None:
            self._failed += 1
        elif identifier not in self._gone:
            self._up += 1
            self._archive.keep(identifier, Publication(metadata, outcome.content))

    def _withdrawn(self, metadata: Metadata) -> None:
        try:
            said = _withdrawal(metadata.summary)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # no notice
        if said.key.owner == metadata.key.owner and genuine_withdrawal(said):
            identifier = identifier_of(said.key)
            self._gone[identifier] = None
            self._archive.forget(identifier)

    def _brought(self, metadata: Metadata) -> None:
        name, other = metadata.key.name, metadata.key.owner
        if other == self._name:  # others have it of a life that this host has forgotten
            self._own.setdefault(name, metadata)
        mine = self._down.get(name) == self._name
        if mine and other < self._name:
            self._take_back(name)
        if not mine or other < self._name:
            self._down[name] = other

    # From the archive

    def _settle(self) -> None:
        self._settled = True

    def _compare(self, contents: Mapping[str, Archived]) -> None:
        if not self._settled:
            return
        for identifier, archived in contents.items():
            if not self._known(identifier, archived):
                self._down[identifier] = self._name
                tags = {*archived.tags, ARCHIVED}
                self._own[identifier] = self._store.publish(identifier, archived.content, tags)
        for identifier in [each for each in self._found if each not in contents or each in self._seen]:
            del self._found[identifier]
        for identifier in [name for name, owner in self._down.items() if owner == self._name and name not in contents]:
            del self._down[identifier]
            self._take_back(identifier)

    def _known(self, identifier: str, archived: Archived) -> bool:
        if identifier in self._seen or identifier in self._gone or identifier in self._down:
            return True
        if ObjectKey(self._name, identifier) in self._store.nucleus.withdrawn:
            return True
        # Another bridge may have been faster to hear of it: only what nobody tells of for a while was an object of another crowd.
        now = self._host.now()
        return (
            archived.origin is not None
            and now - self._found.setdefault(identifier, now) < self._settling * MICROSECONDS
        )

    def _take_back(self, identifier: str) -> None:
        metadata = self._own.pop(identifier, None)
        if metadata is not None:
            self._store.withdraw(metadata)
