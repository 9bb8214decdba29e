"""A host that reaches an archive keeps it and its crowd alike: what is published or withdrawn on one side, is on the other.

The archive is a port; what stands behind it is handed in (``client.crowds``: a broker).  Names make it safe to do everything again, and
for several bridges to do the same: an object's id in the archive follows from its key, and from the archive it comes back as the object
that it was, signed and sealed by its owner.  What was published at the archive itself belongs to a name that all bridges of a venue share
(``ARCHIVE``, or that of an identity which they are all given); its key follows from its id.  So whoever brings it brings the same
object, and crowds tell subscribers of an object once.

Crowds do not tell subscribers of withdrawals; stores that are to be bridged do (``CrowdStore(notices=True)``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final, Protocol

import msgspec

from nearcast.crowdstore.access import Identity, genuine_withdrawal
from nearcast.crowdstore.nucleus import Notified
from nearcast.crowdstore.objects import (
    WITHDRAWN,
    Metadata,
    ObjectKey,
    Publication,
    SubscriptionKey,
    Withdrawal,
    digest_of,
)
from nearcast.crowdstore.service import PAUSE, CrowdStore
from nearcast.crowdstore.storage import Failure, Outcome
from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable

ARCHIVE: Final = "crowd:archive"
"""Whose objects those are that were published at the archive, unless bridges have an identity.  As with any name that proves
nothing, a member of the crowd may use it, too."""

ARCHIVED: Final = "crowd:archived"
"""The tag of these objects: no bridge takes them up."""

SPREAD: Final = 2.0
"""Seconds within which bridges go up with what they all have heard of, each at its own moment: the others then see that it is there."""

LONGEST_PAUSE: Final = 3_600.0
"""Seconds between two attempts to download an object."""


@dataclass(frozen=True, slots=True)
class Archived:
    """Something that the archive has."""

    published: Instant
    """At the archive."""

    tags: tuple[str, ...]
    content: bytes
    metadata: Metadata | None
    """If it was an object of a crowd: all that its owner said of it."""


Contents = Callable[[Mapping[str, Archived], Mapping[str, Withdrawal | None]], None]
"""What is new in the archive since this was called last, and what was taken back, by id; by which word of its owner, if that is known."""


class Archive(Protocol):
    def open(self, contents: Contents) -> None:
        """From now on what it has is told again and again; at first all of it."""

    def close(self) -> None: ...

    def expect(self, identifier: str, published: Instant) -> None:
        """It had that, published then: tell if it was taken back."""

    def keep(self, identifier: str, publication: Publication) -> None:
        """Whatever it has under that id already is this."""

    def forget(self, identifier: str, word: Withdrawal) -> None:
        """Its owner has withdrawn it; whoever keeps it from now on is late."""


def identifier_of(said: Metadata | Withdrawal) -> str:
    """Of an object in the archive; an owner that has forgotten what it had published may use a name again, for another object."""
    return "crowd-" + blake2b(msgspec.msgpack.encode((said.key, said.published)), digest_size=16).hexdigest()


_withdrawal: Final = msgspec.msgpack.Decoder(Withdrawal).decode


def withdrawal_in(data: bytes) -> Withdrawal | None:
    """The genuine withdrawal that somebody says this is."""
    try:
        said = _withdrawal(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return said if genuine_withdrawal(said) else None


@dataclass(frozen=True, slots=True)
class BridgeStatistics:
    up: int
    """Objects that were given to the archive."""

    down: int
    """Of the archive, that this host publishes in the crowd."""

    forgotten: int
    """Objects that were withdrawn in the crowd, and so in the archive."""

    failed: int
    """Downloads that failed; each is tried again, after longer and longer pauses."""

    unusable: int
    """What the archive has and no object of a crowd can be: with too many tags, or damaged."""


class Bridge(Component):
    """After the ``CrowdStore`` among the components of its host; ``formula`` says which objects go up."""

    def __init__(
        self, archive: Archive, formula: str, settling: float = 10.0, *, identity: Identity | None = None
    ) -> None:
        """``settling``: when it has heard nothing from before its start for so many seconds, it knows what the crowd has.

        With an identity, the same for all bridges of a venue, what comes from the archive is signed, so that nobody else can say, or
        withdraw, anything in its name.
        """
        self._archive: Final = archive
        self._formula: Final = formula
        self._settling: Final = settling
        self._identity: Final = identity
        self._owner: Final = identity.name if identity else ARCHIVE
        self._settled: Instant | None = None
        self._looked = False
        """The archive has told all that it has."""

        self._standing: Final[dict[str, SubscriptionKey]] = {}
        """By formula: subscriptions that the crowd has confirmed."""

        self._seen: Final[dict[str, None]] = {}
        """Ids of objects of this crowd."""

        self._gone: Final[dict[str, Withdrawal]] = {}
        """Ids of those that were withdrawn."""

        self._there: Final[dict[str, None]] = {}
        """Ids of what the archive has, or is about to have."""

        self._unsaved: Final[dict[str, Metadata]] = {}
        """Objects of this crowd that may have to go up."""

        self._pauses: Final[dict[str, float]] = {}
        """Before the next attempt to get them."""

        self._waiting: Final[dict[str, tuple[Publication, Instant]]] = {}
        """What may have to come down, and since when it waits."""

        self._down: Final[dict[str, Metadata]] = {}
        """What this host publishes for its owners, now or in an earlier life."""

        self._brought: Final[dict[str, Metadata]] = {}
        """What the crowd has from the archive, by whatever bridge."""

        self._forgotten: Final[dict[str, None]] = {}
        """Ids of objects that the archive was told to forget."""

        self._up = self._failed = self._unusable = 0
        self._host: Host
        self._store: CrowdStore
        self._since: Instant
        self._quiet: Cancellable | None = None
        """Runs while all subscriptions stand, and nothing is heard from before."""

    def start(self, host: Host) -> None:
        self._host, self._store, self._since = host, host.component(CrowdStore), host.now()
        self._archive.open(self._compare)
        for key, publication in self._store.nucleus.published.items():  # of an earlier life
            if key.owner == self._owner:
                self._down[key.name] = publication.metadata
                self._archive.expect(key.name, publication.metadata.published)
            elif key.owner != host.name:
                self._down[identifier_of(publication.metadata)] = publication.metadata
        for formula, notified in self._interests.items():
            self._listen(formula, notified)

    def stop(self) -> None:
        self._archive.close()

    def statistics(self) -> BridgeStatistics:
        return BridgeStatistics(self._up, len(self._down), len(self._forgotten), self._failed, self._unusable)

    # From the crowd

    @property
    def _interests(self) -> dict[str, Notified]:
        return {self._formula: self._heard, ARCHIVED: self._came_down, WITHDRAWN: self._withdrawn}

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
        if len(self._standing) == len(self._interests) and self._settled is None:
            if self._quiet is not None:
                self._quiet.cancel()
            self._quiet = self._host.timers.after(self._settling, self._settle)

    def _heard(self, metadata: Metadata) -> None:
        identifier = identifier_of(metadata)
        if ARCHIVED in metadata.tags or identifier in self._gone:
            return
        self._seen[identifier] = None
        self._waiting.pop(identifier, None)
        if identifier not in self._down:
            self._unsaved[identifier] = metadata
            if self._looked:  # else it remains to be seen what the archive has
                self._save_soon(identifier)

    def _save_soon(self, identifier: str) -> None:
        self._host.timers.after(SPREAD * _share(self._host.name, identifier), partial(self._save, identifier))

    def _save(self, identifier: str) -> None:
        metadata = self._unsaved.get(identifier)
        if identifier in self._there or identifier in self._gone:
            self._unsaved.pop(identifier, None)
        elif metadata is not None:
            self._store.download(metadata, partial(self._came, metadata), opened=False)

    def _came(self, metadata: Metadata, outcome: Outcome) -> None:
        identifier = identifier_of(metadata)
        if outcome.failure is Failure.STOPPED:
            return
        if outcome.content is None:
            self._failed += 1
            pause = self._pauses[identifier] = min(2 * self._pauses.get(identifier, PAUSE), LONGEST_PAUSE)
            self._host.timers.after(pause, partial(self._save, identifier))
            return
        self._pauses.pop(identifier, None)
        if self._unsaved.pop(identifier, None) is not None and identifier not in self._there:
            self._up += 1
            self._there[identifier] = None
            self._archive.keep(identifier, Publication(metadata, outcome.content))

    def _withdrawn(self, metadata: Metadata) -> None:
        said = withdrawal_in(metadata.summary)
        if said is None or said.key.owner != metadata.key.owner:
            return  # no notice
        identifier = identifier_of(said)
        self._gone[identifier] = said
        self._unsaved.pop(identifier, None)
        self._waiting.pop(identifier, None)
        self._take_back(identifier, said)
        if identifier in self._there:
            self._forget(identifier)

    def _came_down(self, metadata: Metadata) -> None:
        """By whatever bridge, also by this one in a life that it has forgotten."""
        identifier = metadata.key.name
        if metadata.key.owner == self._owner and identifier not in self._down:
            self._brought[identifier] = metadata
            self._archive.expect(identifier, metadata.published)

    # From the archive

    def _settle(self) -> None:
        self._settled = self._host.now()
        self._bring()

    def _compare(self, news: Mapping[str, Archived], gone: Mapping[str, Withdrawal | None]) -> None:
        for identifier, archived in news.items():
            self._there[identifier] = None
            if identifier in self._gone:
                self._forget(identifier)
            elif identifier not in self._seen and identifier not in self._down:
                publication = self._publication(identifier, archived)
                if publication is None:
                    self._unusable += 1
                else:
                    self._waiting[identifier] = publication, self._host.now()
        for identifier, word in gone.items():
            self._there.pop(identifier, None)
            self._waiting.pop(identifier, None)
            if word is not None:
                self._gone[identifier] = word
            self._take_back(identifier, word)
        if not self._looked:
            self._looked = True
            for identifier in self._unsaved:
                self._save_soon(identifier)
        self._bring()

    def _publication(self, identifier: str, archived: Archived) -> Publication | None:
        """The same whoever makes it."""
        if archived.metadata is not None:
            made_up = archived.metadata.key.owner == self._owner or identifier_of(archived.metadata) != identifier
            return None if made_up else Publication(archived.metadata, archived.content)
        key, content = ObjectKey(self._owner, identifier), archived.content
        tags = tuple(sorted({*archived.tags, ARCHIVED}))
        metadata = Metadata(key, tags, archived.published, len(content), digest_of(content))
        return Publication(self._identity.signed(metadata) if self._identity else metadata, content)

    def _bring(self) -> None:
        if self._settled is None:
            return
        ripe = self._host.now() - round(self._settling * MICROSECONDS)
        for identifier, (publication, since) in list(self._waiting.items()):
            # Another bridge may have been faster to hear of it: only what nobody tells of for a while is an object of another crowd,
            # or of an owner who is gone.
            if publication.key.owner != self._owner and max(since, self._settled) > ripe:
                continue
            del self._waiting[identifier]
            try:
                self._store.represent(publication)
            except InvalidInput:
                self._unusable += 1
            else:
                self._down[identifier] = publication.metadata

    def _forget(self, identifier: str) -> None:
        if identifier not in self._forgotten:
            self._forgotten[identifier] = None
            self._archive.forget(identifier, self._gone[identifier])

    def _take_back(self, identifier: str, word: Withdrawal | None) -> None:
        brought, down = self._brought.pop(identifier, None), self._down.pop(identifier, None)
        metadata = down or brought
        if metadata is None:
            return
        if metadata.key.owner == self._owner:
            word = (
                self._identity.withdrawal(metadata) if self._identity else Withdrawal(metadata.key, metadata.published)
            )
        if word is None:
            self._store.let_go(metadata.key)
        else:
            self._store.withdraw(metadata, word=word)


def _share(host: str, identifier: str) -> float:
    """Of the time within which bridges go up, for one of them."""
    return int.from_bytes(blake2b(f"{host} {identifier}".encode(), digest_size=4).digest()) / 2**32
