"""THYME-PL/SG: publish and unpublish touch this host only, subscribe and unsubscribe everybody (4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, Publication, SubscriptionKey
from nearcast.crowdstore.publish_local.downloading import Downloading
from nearcast.crowdstore.publish_local.flooding import Flooding
from nearcast.crowdstore.publish_local.interests import Interests
from nearcast.crowdstore.publish_local.joining import Joining
from nearcast.crowdstore.publish_local.messages import (
    Absent,
    Chunk,
    Get,
    Have,
    Interest,
    Join,
    JoinAnswer,
    More,
    Notify,
    Search,
    Subscribe,
    Unsubscribe,
    Unwanted,
    interest_of,
)
from nearcast.crowdstore.publish_local.notifying import Notifying
from nearcast.crowdstore.publish_local.parameters import Parameters
from nearcast.crowdstore.storage import DONE, PORT, Done, Storage
from nearcast.crowdstore.unicast.messages import Packet
from nearcast.crowdstore.unicast.router import Router, RouterSettings, RouterStatistics
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Sending

RETELLING: Final = 1.0
"""Seconds within which a host that takes this mechanism up tells of its subscriptions: others do the same at that time."""


@dataclass(frozen=True, slots=True)
class PublishLocalStatistics:
    subscriptions: int
    """Of all hosts that this one knows of."""

    ended: int
    """That are remembered to have ended."""

    joined: bool
    join_requests: int
    join_answers: int
    floods: int
    relayed: int
    told: int
    """Matches of own publications."""

    retried: int
    """Requests for chunks."""

    searched: int
    """Objects whose owners did not answer."""

    foreign: int
    routing: RouterStatistics


class PublishLocalStorage(Storage):
    def __init__(self, nucleus: Nucleus, parameters: Parameters) -> None:
        self._nucleus: Final = nucleus
        self._host: Final = nucleus.host
        self._interests: Final = Interests(parameters.remembered, self._forgotten)
        self._endpoint: Endpoint | None = None
        routing = RouterSettings(
            period=parameters.route_period, settling=parameters.route_settling, hold=parameters.route_hold,
            gathering=parameters.route_gathering, renewals=parameters.route_renewals,
        )  # fmt: skip
        self.router: Final = Router(self._host, nucleus.link, routing, self._post)
        self._flooding: Final = Flooding(self._host, parameters.hesitation, self._broadcast)
        self._downloading: Final = Downloading(nucleus, parameters, self.router.send, self._flooding)
        self._notifying: Final = Notifying(
            nucleus, self._interests, parameters.batch, self.router, self._downloading.represented
        )
        self._joining: Final = Joining(
            self._host, parameters, self._interests, self._post, self._broadcast, lambda: self.router.neighbours
        )
        self._soon: Final[dict[int, Cancellable]] = {}
        self._operations = 0

    # Taking over, and giving back.  A predecessor has the ports until it was stopped: so they are opened afterwards.

    def bootstrap(self) -> None:
        self._endpoint = self._nucleus.link.open(
            PORT, self._receive, Subscribe, Unsubscribe, Join, JoinAnswer, Notify, Unwanted, More, Get, Chunk, Absent,
            Search, Have,
        )  # fmt: skip
        self.router.start()
        self.tell_again()
        self._joining.begin()

    def tell_again(self) -> None:
        for subscription in self._nucleus.subscriptions:
            self._announce(subscription, within=RETELLING)

    def stop_mechanism(self) -> None:
        self.router.stop()
        self._flooding.stop()
        self._notifying.stop()
        self._downloading.stop()
        self._joining.stop()
        for timer in self._soon.values():
            timer.cancel()
        self._soon.clear()
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None

    # What applications ask for

    def publish(self, publication: Publication, done: Done) -> None:
        self._notifying.published(publication.metadata)
        self._done(done)

    def unpublish(self, metadata: Metadata, done: Done) -> None:  # noqa: ARG002 - it is gone already
        self._done(done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        self._announce(subscription)
        self._done(done)

    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        self._withdraw(subscription.key)
        self._done(done)

    def download(self, metadata: Metadata, done: Done) -> None:
        self._downloading.begin(metadata, done)

    def more(self, subscription: SubscriptionKey) -> None:
        self._notifying.more(subscription)

    def statistics(self) -> PublishLocalStatistics:
        joining = self._joining
        return PublishLocalStatistics(
            len(self._interests), self._interests.ended, joining.joined, joining.asked, joining.answered,
            self._flooding.begun, self._flooding.relayed, self._notifying.told, self._downloading.retried,
            self._downloading.searched, self._notifying.foreign, self.router.statistics(),
        )  # fmt: skip

    def _done(self, done: Done) -> None:
        """It has succeeded, as soon as the call is over."""
        self._operations += 1
        number = self._operations

        def end() -> None:
            del self._soon[number]
            done(DONE)

        self._soon[number] = self._host.timers.after(0, end)

    def _announce(self, subscription: CrowdSubscription, within: float = 0.0) -> None:
        interest = interest_of(subscription, self._host.now())
        self._know(interest)
        self._flooding.begin(_name(interest), Subscribe(interest), within)

    def _withdraw(self, key: SubscriptionKey) -> None:
        now = self._host.now()
        self._interests.end(key, now)
        self._notifying.ended(key)
        self._flooding.begin(f"ended {key} {now}", Unsubscribe(key, now))

    # What others say

    def _receive(self, sender: Address, message: Message) -> None:
        if isinstance(message, Packet):
            if self.router.arrived(sender, message):
                self._open(message)
        elif isinstance(message, Subscribe):
            if self._flooding.heard(_name(message.interest), message):
                self._learn(message.interest)
        elif isinstance(message, Unsubscribe):
            if self._flooding.heard(f"ended {message.key} {message.made}", message):
                self._unlearn(message.key)
        elif isinstance(message, Search):
            self._downloading.sought(message)
        elif isinstance(message, Join):
            self._joining.hear(sender, message)
        elif isinstance(message, JoinAnswer):
            for interest in message.interests:
                self._learn(interest, of_others=True)
            self._joining.told(sender, message)

    def _open(self, packet: Packet) -> None:
        """A packet for this host."""
        if isinstance(packet, Notify):
            self._notifying.heard(packet)
        elif isinstance(packet, Chunk):
            self._downloading.came(packet)
        elif isinstance(packet, Get):
            self._downloading.serve(packet)
        elif isinstance(packet, Absent):
            self._downloading.absent(packet)
        elif isinstance(packet, Have):
            self._downloading.found(packet)
        elif isinstance(packet, More):
            self._notifying.asked(packet)
        elif isinstance(packet, Unwanted) and packet.source == packet.subscription.owner:
            self._unlearn(packet.subscription)

    def _learn(self, interest: Interest, *, of_others: bool = False) -> None:
        key = interest.key
        if key.owner != self._nucleus.name:
            self._know(interest, of_others=of_others)
        elif self._nucleus.subscription(key) is None and not self._interests.has_ended(key):
            # Of an earlier life, of which this host knows nothing any more.
            self._withdraw(key)

    def _know(self, interest: Interest, *, of_others: bool = False) -> None:
        learned = self._interests.add(interest, self._host.now(), of_others=of_others)
        if learned is not None:
            self._notifying.learned(learned)

    def _unlearn(self, key: SubscriptionKey) -> None:
        if key.owner != self._nucleus.name:
            self._interests.end(key, self._host.now())

    def _forgotten(self, key: SubscriptionKey) -> None:
        self._notifying.forgotten(key)

    def _post(self, to: Address, message: Message) -> Sending:
        return Sending.DROPPED if self._endpoint is None else self._endpoint.send(to, message)

    def _broadcast(self, message: Message) -> Sending:
        return Sending.DROPPED if self._endpoint is None else self._endpoint.broadcast(message)


class PublishLocal(Parameters, frozen=True, kw_only=True):
    """Publications stay where they are made; subscriptions are flooded, and kept by everybody (THYME-PL/SG)."""

    def mechanism(self, nucleus: Nucleus) -> Storage:
        return PublishLocalStorage(nucleus, self)


def _name(interest: Interest) -> str:
    return f"{interest.key} {interest.made}"
