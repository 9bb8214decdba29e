"""Two mechanisms for hosts that all hear each other, as simple as can be: for tests of what is the same whatever mechanism runs.

``TOY LOCAL`` tells everybody subscriptions, like PL/SG; ``TOY KEPT`` tells everybody objects, and everybody keeps them, like one cell of DCS.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import pytest
from msgspec import Meta

from nearcast.crowdstore import registry
from nearcast.crowdstore.access import genuine, genuine_withdrawal
from nearcast.crowdstore.formula import Formula
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import (
    CrowdSubscription,
    Metadata,
    ObjectKey,
    Publication,
    SubscriptionKey,
    Withdrawal,
    digest_of,
)
from nearcast.crowdstore.storage import DONE, PORT, Done, Failure, Manner, Outcome, Storage
from nearcast.model.time import TimeFrame
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Endpoint
from nearcast.transition.registry import Entry
from nearcast.transition.specification import MechanismSpec

LOCAL: Final = MechanismSpec("TOY LOCAL")
KEPT: Final = MechanismSpec("TOY KEPT")
PATIENCE: Final = 0.5


class Wish(Message, frozen=True, tag="toy-wish"):
    key: SubscriptionKey
    formula: str
    since: int | None
    until: int | None


class Match(Message, frozen=True, tag="toy-match"):
    subscription: SubscriptionKey
    metadata: Metadata


class Thing(Message, frozen=True, tag="toy-thing"):
    metadata: Metadata
    content: bytes


class Gone(Message, frozen=True, tag="toy-gone"):
    withdrawal: Withdrawal


class Get(Message, frozen=True, tag="toy-get"):
    key: ObjectKey


class Got(Message, frozen=True, tag="toy-got"):
    key: ObjectKey
    content: bytes


class Toy(Storage):
    """Downloads are the same in both."""

    def __init__(self, nucleus: Nucleus, *kinds: type[Message]) -> None:
        self.nucleus: Final = nucleus
        self._kinds: Final = kinds
        self.endpoint: Endpoint
        self._wanted: Final[dict[ObjectKey, tuple[Metadata, Done]]] = {}

    def bootstrap(self) -> None:
        # The one before has the port until now.
        self.endpoint = self.nucleus.link.open(PORT, self._receive, Get, Got, *self._kinds)
        self.tell_again()

    def stop_mechanism(self) -> None:
        self._wanted.clear()
        self.endpoint.close()

    def download(self, metadata: Metadata, done: Done) -> None:
        self._wanted[metadata.key] = metadata, done
        self._try(metadata.key, 4)

    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        self.soon(done)

    def statistics(self) -> None:
        return None

    def soon(self, done: Done) -> None:
        self.nucleus.host.timers.after(0.001, lambda: done(DONE))

    def notify_soon(self, key: SubscriptionKey, metadata: Metadata) -> None:
        """Not from inside the call that asked for it."""

        def notify() -> None:
            self.nucleus.notify(key, metadata)

        self.nucleus.host.timers.after(0, notify)

    def heard(self, message: Message) -> None:
        raise NotImplementedError

    def _try(self, key: ObjectKey, left: int) -> None:
        if key not in self._wanted:
            return
        if left:
            self.endpoint.broadcast(Get(key))
            self.nucleus.host.timers.after(PATIENCE, partial(self._try, key, left - 1))
        else:
            self._wanted.pop(key)[1](Outcome(Failure.TIMED_OUT))

    def _receive(self, _sender: str, message: Message) -> None:
        if isinstance(message, Get):
            here = self.nucleus.content_of(message.key)
            if here is not None:
                self.endpoint.broadcast(Got(message.key, here.content))
        elif isinstance(message, Got):
            metadata, done = self._wanted.get(message.key, (None, None))
            if metadata is not None and done is not None and digest_of(message.content) == metadata.digest:
                del self._wanted[message.key]
                self.nucleus.held[message.key] = Publication(metadata, message.content)
                done(Outcome(content=message.content))
        else:
            self.heard(message)


class ToyLocal(Toy):
    def __init__(self, nucleus: Nucleus) -> None:
        self._wishes: Final[dict[SubscriptionKey, CrowdSubscription]] = {}
        super().__init__(nucleus, Wish, Match)

    def tell_again(self) -> None:
        for subscription in self.nucleus.subscriptions:
            self._tell(subscription)

    def publish(self, publication: Publication, done: Done) -> None:
        for wish in self._wishes.values():
            self._match(wish, publication.metadata)
        self.soon(done)

    def unpublish(self, metadata: Metadata, done: Done) -> None:
        self.soon(done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        self._tell(subscription)
        self.soon(done)

    def heard(self, message: Message) -> None:
        if isinstance(message, Match):
            self.nucleus.notify(message.subscription, message.metadata)
        elif isinstance(message, Wish):
            formula = Formula.parse(message.formula)
            self._keep(CrowdSubscription(message.key, formula, TimeFrame(message.since, message.until)))

    def _tell(self, subscription: CrowdSubscription) -> None:
        frame = subscription.frame
        self.endpoint.broadcast(Wish(subscription.key, subscription.formula.text, frame.since, frame.until))
        self._keep(subscription)

    def _keep(self, wish: CrowdSubscription) -> None:
        self._wishes[wish.key] = wish
        for publication in self.nucleus.published.values():
            self._match(wish, publication.metadata)

    def _match(self, wish: CrowdSubscription, metadata: Metadata) -> None:
        if wish.accepts(metadata):
            self.endpoint.broadcast(Match(wish.key, metadata))
            if wish.key.owner == self.nucleus.name:
                self.notify_soon(wish.key, metadata)


class ToyKept(Toy):
    def __init__(self, nucleus: Nucleus) -> None:
        self._kept: Final[dict[ObjectKey, Metadata]] = {}
        super().__init__(nucleus, Thing, Gone)

    def tell_again(self) -> None:
        for publication in self.nucleus.published.values():
            self._tell(publication)

    def publish(self, publication: Publication, done: Done) -> None:
        self._tell(publication)
        self.soon(done)

    def unpublish(self, metadata: Metadata, done: Done) -> None:
        self._kept.pop(metadata.key, None)
        self.endpoint.broadcast(Gone(self.nucleus.withdrawal(metadata)))
        self.soon(done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        for metadata in list(self._kept.values()):
            if subscription.accepts(metadata):
                self.notify_soon(subscription.key, metadata)
        self.soon(done)

    def heard(self, message: Message) -> None:
        if isinstance(message, Thing) and genuine(message.metadata):
            self.nucleus.held[message.metadata.key] = Publication(message.metadata, message.content)
            self._keep(message.metadata)
        elif isinstance(message, Gone):
            key = message.withdrawal.key
            kept = self._kept.get(key)
            if kept is not None and genuine_withdrawal(message.withdrawal, kept):
                del self._kept[key]
                self.nucleus.held.pop(key, None)

    def _tell(self, publication: Publication) -> None:
        self.endpoint.broadcast(Thing(publication.metadata, publication.content))
        self._keep(publication.metadata)

    def _keep(self, metadata: Metadata) -> None:
        self._kept[metadata.key] = metadata
        for subscription in self.nucleus.subscriptions:
            if subscription.accepts(metadata):
                self.nucleus.notify(subscription.key, metadata)


class LocalManner(Manner, frozen=True, kw_only=True):
    level: Annotated[int, Meta(ge=0, description="nothing at all")] = 0

    def mechanism(self, nucleus: Nucleus) -> Storage:
        return ToyLocal(nucleus)


class KeptManner(Manner, frozen=True, kw_only=True):
    def mechanism(self, nucleus: Nucleus) -> Storage:
        return ToyKept(nucleus)


def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make them known for as long as the test lasts."""
    monkeypatch.setitem(registry._OURS, LOCAL.name, Entry(LocalManner))
    monkeypatch.setitem(registry._OURS, KEPT.name, Entry(KeptManner))
