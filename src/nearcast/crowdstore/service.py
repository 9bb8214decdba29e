"""What an application sees: publish, unpublish, subscribe, unsubscribe, download (THYME 2), whatever mechanism is in use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import msgspec

from nearcast.crowdstore.access import (
    Identity,
    ReadingKey,
    Unreadable,
    genuine,
    genuine_withdrawal,
    opened_summary,
    seal,
    unseal,
)
from nearcast.crowdstore.formula import Formula, is_text
from nearcast.crowdstore.nucleus import Memory, Notified, Nucleus
from nearcast.crowdstore.objects import (
    LARGEST,
    WITHDRAWN,
    CrowdSubscription,
    Metadata,
    ObjectKey,
    Publication,
    Sealing,
    SubscriptionKey,
    Withdrawal,
    digest_of,
)
from nearcast.crowdstore.registry import manner_of
from nearcast.crowdstore.storage import DONE, PROXY, Done, Failure, Outcome, Storage
from nearcast.errors import ConnectionFailed, InvalidEvent, InvalidInput, InvalidSubscription, UnknownName
from nearcast.model.time import EVER, MICROSECONDS, Instant, TimeFrame
from nearcast.runtime.host import Component, Host
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

METADATA: Final = 1_200
"""Bytes of an object's metadata at most, name, tags and summary together: they travel with every notification, in one frame."""

NAME: Final = 512
"""Bytes of an object's name at most: so that word of its withdrawal, which names it, is no longer than that."""

SETTLING: Final = 40.0
"""Seconds after an exchange in which others may not have followed, or not have told yet what they have: what fails then proves little."""

PAUSE: Final = 3.0
"""Seconds after which it is tried again."""


@dataclass(frozen=True, slots=True)
class CrowdStatistics:
    mechanism: str
    published: int
    held: int
    subscriptions: int
    under_way: int
    """Operations that have not ended yet."""

    succeeded: int
    failed: int
    notified: int
    duplicates: int
    late: int
    foreign: int
    forged: int
    storage: Any
    """Of the mechanism."""


def _heedless(_outcome: Outcome) -> None:
    """Nobody wants to know how it ended."""


class CrowdStore(Component):
    """After ``HostEngine`` among the components of its host."""

    def __init__(
        self,
        mechanism: MechanismSpec,
        interface: str = "wifi",
        *,
        memory: Memory | None = None,
        identity: Identity | None = None,
        groups: Iterable[ReadingKey] = (),
        notices: bool = False,
    ) -> None:
        """With the memory of an earlier life, the store carries on where that ended; else it begins with nothing.

        With an identity it signs what it publishes and withdraws; it reads what is sealed for that, and for the groups.
        With ``notices`` it publishes that something was withdrawn, for bridges.
        """
        self._spec: Final = mechanism
        self._interface: Final = interface
        self._memory: Final = memory
        self._identity: Final = identity
        self._notices: Final = notices
        self._keys: Final = (*([identity.reading] if identity else []), *groups)
        self._under_way: Final[dict[int, tuple[Callable[[Storage, Done], None], Done]]] = {}
        """Operations by number, in the order in which they were asked for: how to ask again, and whom to tell."""

        self._watchers: Final[list[Callable[[], None]]] = []
        self._operations = self._subscribed = self._succeeded = self._failed = 0
        self._stopped = False
        self._settled: Instant | None = None
        """When the crowd will have gone over to the mechanism that runs here, as far as one can tell."""

        self._host: Host
        self._proxy: Proxy[Storage]
        self.nucleus: Nucleus

    def start(self, host: Host) -> None:
        if self._identity and self._identity.name != host.name:
            raise InvalidInput(
                f"the host is called {host.name!r}, but its identity {self._identity.name!r}: "
                "others tell by the name whose signature it needs, so give both the same"
            )
        self._host = host
        self.nucleus = Nucleus(host, self._interface, self._memory, self._identity)
        engine = host.component(HostEngine).engine
        self._proxy = engine.create_proxy(PROXY, Storage, self._make, self._spec)
        self._proxy.changed = self._ask_again

    def stop(self) -> None:
        self._proxy.active.stop_mechanism()
        self._stopped = True
        with ExitStack() as everybody:  # whatever one of them does then: asking for something else raises
            for _, done in reversed(self._under_way.values()):
                everybody.callback(done, Outcome(Failure.STOPPED))
            self._under_way.clear()

    def publish(
        self,
        name: str,
        content: bytes,
        tags: Iterable[str],
        *,
        summary: bytes = b"",
        readers: Collection[bytes] | None = None,
        seal_summary: bool = False,
        done: Done = _heedless,
    ) -> Metadata:
        """Publish an object under a name of one's own, which nothing else of this host ever had.

        With ``readers`` (``ReadingKey.public`` of each) nobody else can read the content, nor, if so wished, the summary.
        """
        self._must_run()
        if not (isinstance(name, str) and is_text(name) and 0 < len(name.encode()) <= NAME):
            raise InvalidEvent(f"the name of an object is a text of 1 to {NAME} bytes, not {name!r:.80}")
        if not (isinstance(content, bytes) and isinstance(summary, bytes)):
            raise InvalidEvent(
                "an object and its summary are bytes, which never change: bytes(...) makes some of what is like them"
            )
        key = ObjectKey(self._host.name, name)
        if key in self.nucleus.published or key in self.nucleus.withdrawn:
            raise InvalidEvent(f"{name!r} was published here already; objects do not change, so choose another name")
        sealing = Sealing.NOTHING
        if readers is not None:
            sealing = Sealing.ALL if seal_summary else Sealing.CONTENT
            content = seal(content, key, "content", readers)
            summary = seal(summary, key, "summary", readers) if seal_summary else summary
        elif seal_summary:
            raise InvalidEvent("a summary is sealed for the readers of its object: say who they are")
        if len(content) > LARGEST:
            raise InvalidEvent(f"an object has at most {LARGEST} bytes, not {len(content)}")
        metadata = Metadata(key, _checked(tags), self._host.now(), len(content), digest_of(content), summary, sealing)
        metadata = self._identity.signed(metadata) if self._identity else metadata
        _check_size(metadata)
        self._take_in(Publication(metadata, content), done)
        return metadata

    def represent(self, publication: Publication, done: Done = _heedless) -> None:
        """Publish for its owner, who may be gone, what that one has published, as it was.

        Several hosts may do so: it is the same object, and whoever hears of it from all of them is told once.
        """
        self._must_run()
        metadata, key = publication.metadata, publication.key
        if not genuine(metadata) or metadata.tags != _checked(metadata.tags):
            raise InvalidEvent(f"{key} was not published by its owner")
        if (metadata.size, metadata.digest) != (len(publication.content), digest_of(publication.content)):
            raise InvalidEvent(f"this is not the content of {key}")
        if metadata.size > LARGEST:
            raise InvalidEvent(f"an object has at most {LARGEST} bytes, not {metadata.size}")
        _check_size(metadata)
        here, before = self.nucleus.published.get(key), self.nucleus.withdrawn.get(key)
        known = [each.published for each in (before, here.metadata if here else None) if each is not None]
        if any(at >= metadata.published for at in known):
            raise InvalidEvent(f"{key} is published here already, or was withdrawn")
        self.nucleus.withdrawn.pop(key, None)  # an older one of that name
        self.nucleus.words.pop(key, None)
        self._take_in(publication, done)

    def unpublish(self, name: str, done: Done = _heedless) -> None:
        """Nobody who subscribes from now on hears of it."""
        publication = self.nucleus.published.get(ObjectKey(self._host.name, name))
        if publication is None:
            raise UnknownName(f"nothing is published here under the name {name!r}")
        self.withdraw(publication.metadata, done)

    def withdraw(self, metadata: Metadata, done: Done = _heedless, word: Withdrawal | None = None) -> None:
        """The same for what this host has published in an earlier life, and forgotten; others still have it.

        What it published for somebody else it withdraws by that one's ``word``.
        """
        self._must_run()
        key = metadata.key
        if word is not None and genuine_withdrawal(word, metadata):
            self.nucleus.words[key] = word
        elif key.owner != self._host.name:
            raise InvalidInput(f"{key} can be withdrawn by its owner only")
        self.nucleus.published.pop(key, None)
        self.nucleus.withdrawn[key] = metadata
        self._begin(lambda storage, ended: storage.unpublish(metadata, ended), done)
        if self._notices and word is None:
            notice = msgspec.msgpack.encode(self.nucleus.withdrawal(metadata))
            # By a name that nothing else has, and that is short: with that of the object twice, long ones would not fit.
            self.publish(f"withdrawn {digest_of(notice).hex()}", b"", [WITHDRAWN], summary=notice)

    def let_go(self, key: ObjectKey) -> None:
        """Publish it for its owner no longer; that says nothing of whether it was withdrawn."""
        if key.owner != self._host.name:
            self.nucleus.published.pop(key, None)

    def subscribe(
        self, formula: Formula | str, notified: Notified, frame: TimeFrame = EVER, done: Done = _heedless
    ) -> SubscriptionKey:
        """Hear of each object once whose tags satisfy the formula and that was, or will be, published within the frame."""
        self._must_run()
        formula = Formula.parse(formula) if isinstance(formula, str) else formula
        if not formula.conjunctions:
            raise InvalidSubscription(f"no object can ever satisfy {formula.text!r}")
        self._subscribed += 1
        # The time makes it different from those of an earlier life of this host.
        key = SubscriptionKey(self._host.name, f"{self._host.now():x}.{self._subscribed}")
        subscription = CrowdSubscription(key, formula, frame)
        self.nucleus.wants(subscription, notified)
        self._begin(partial(self._subscribe, subscription), done)
        return key

    def unsubscribe(self, key: SubscriptionKey, done: Done = _heedless) -> None:
        self._must_run()
        subscription = self.nucleus.wants_no_more(key)
        if subscription is None:
            raise UnknownName(f"there is no subscription {key} here")
        self._begin(lambda storage, ended: storage.unsubscribe(subscription, ended), done)

    def more(self, key: SubscriptionKey) -> None:
        """Ask for a further batch of what it found in the past."""
        self._proxy.active.more(key)

    def download(self, metadata: Metadata, done: Done, *, opened: bool = True) -> None:
        """Get the object; ``done`` is told its content, or why there is none.  Not ``opened``: as it is, if it is sealed."""
        self._must_run()
        if not genuine(metadata):
            raise InvalidEvent(f"{metadata.key} was not published by its owner")
        self._begin(partial(self._fetch, metadata), partial(self._opened, metadata, done) if opened else done)

    def summary(self, metadata: Metadata) -> bytes:
        """Of the object; raises ``access.Unreadable`` if it is sealed for others."""
        return opened_summary(metadata, self._keys)

    @property
    def running(self) -> MechanismSpec:
        return self._proxy.spec

    def exchanged(self, changed: Callable[[], None]) -> None:
        """Call back whenever the mechanism was exchanged."""
        self._watchers.append(changed)

    def say_again(self) -> None:
        """Tell others what is here, as after an exchange: those who ran another mechanism then have not heard it."""
        self._proxy.active.tell_again()

    def statistics(self) -> CrowdStatistics:
        nucleus, tally = self.nucleus, self.nucleus.tally
        return CrowdStatistics(
            str(self._proxy.spec), len(nucleus.published), len(nucleus.held), len(nucleus.subscriptions),
            len(self._under_way), self._succeeded, self._failed,
            tally.notified, tally.duplicates, tally.late, tally.foreign, tally.forged, self._proxy.active.statistics(),
        )  # fmt: skip

    def _make(self, spec: MechanismSpec) -> Storage:
        return manner_of(spec).mechanism(self.nucleus)

    # What was asked for may be asked for again much later, by another mechanism: of what was withdrawn since nobody is to hear.

    def _publish(self, publication: Publication, storage: Storage, ended: Done) -> None:
        if publication.key in self.nucleus.published:
            storage.publish(publication, ended)
        else:
            self._host.timers.after(0, partial(ended, DONE))

    def _subscribe(self, subscription: CrowdSubscription, storage: Storage, ended: Done) -> None:
        if self.nucleus.subscription(subscription.key) is not None:
            storage.subscribe(subscription, ended)
        else:
            self._host.timers.after(0, partial(ended, DONE))

    def _fetch(self, metadata: Metadata, storage: Storage, ended: Done) -> None:
        here = self.nucleus.content_of(metadata.key)
        if here is not None and here.metadata.digest == metadata.digest:
            outcome = Outcome(content=here.content)
            self._host.timers.after(0, lambda: ended(outcome))
        else:  # what is here may be another object, of an owner who forgot that it had used the name
            storage.download(metadata, ended)

    def _opened(self, metadata: Metadata, done: Done, outcome: Outcome) -> None:
        if outcome.content is not None and metadata.sealing is not Sealing.NOTHING:
            try:
                outcome = Outcome(content=unseal(outcome.content, metadata.key, "content", self._keys))
            except Unreadable:
                outcome = Outcome(Failure.UNREADABLE)
        done(outcome)

    def _take_in(self, publication: Publication, done: Done) -> None:
        self.nucleus.published[publication.key] = publication
        self._begin(partial(self._publish, publication), done)

    def _must_run(self) -> None:
        if self._stopped:
            raise ConnectionFailed(f"the store of {self._host.name!r} was stopped: nobody would answer")

    def _begin(self, ask: Callable[[Storage, Done], None], done: Done) -> None:
        self._operations += 1
        self._under_way[self._operations] = ask, done
        self._ask(self._operations)

    def _ask(self, number: int) -> None:
        begun = self._under_way.get(number)
        if begun is not None:
            begun[0](self._proxy.active, partial(self._ended, number))

    def _ended(self, number: int, outcome: Outcome) -> None:
        # A mechanism that was replaced may still come with an answer; the first one counts.
        begun = self._under_way.get(number)
        if begun is None:
            return
        in_vain = outcome.failure in (Failure.TIMED_OUT, Failure.NOT_FOUND)
        if in_vain and self._settled is not None and self._host.now() < self._settled:
            self._host.timers.after(PAUSE, partial(self._ask, number))
            return
        del self._under_way[number]
        self._succeeded += outcome.ok
        self._failed += not outcome.ok
        begun[1](outcome)

    def _ask_again(self) -> None:
        # After the switch, and after ``bootstrap``: not in the middle of either.
        self._settled = self._host.now() + round(SETTLING * MICROSECONDS)
        self._host.timers.after(0, self._go_on)
        for changed in self._watchers:
            changed()

    def _go_on(self) -> None:
        for number in list(self._under_way):
            self._ask(number)


def _check_size(metadata: Metadata) -> None:
    size = len(msgspec.msgpack.encode(metadata))
    if size > METADATA:
        raise InvalidEvent(
            f"name, tags and summary have at most {METADATA} bytes together, not {size}; the object itself may be large"
        )


def _checked(tags: Iterable[str]) -> tuple[str, ...]:
    found = tuple(sorted({*tags}))
    if isinstance(tags, str) or not found or not all(isinstance(tag, str) and tag and is_text(tag) for tag in found):
        raise InvalidEvent("an object needs tags, which are non-empty texts, such as ['goal', 'portugal']")
    return found
