"""Events by way of the cloud: every client reports its position to a broker, which finds the receivers (BYPASS.KOM 3.7, CLOUD).

Both halves and the messages between them.  Messages may overtake each other on the way, so reports carry the time at which
they were measured and an old one never replaces a newer one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.inbox import Interest
from nearcast.dissemination.location import LocationFollower
from nearcast.dissemination.wire import EventMessage, event_in, message_of
from nearcast.errors import InvalidSubscription
from nearcast.matching import Matcher
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.predicate_text import to_text
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant, TimeFrame
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint, Fix

PORT: Final = 1
PATH: Final = "cloud"
HOPS: Final = 2  # publisher to broker, broker to receiver


class Subscribe(Message, frozen=True, tag="subscription"):
    id: str
    topic: str
    radius: float | None
    where: str | None
    no_local: bool


class Unsubscribe(Message, frozen=True, tag="unsubscription"):
    id: str


class Report(Message, frozen=True, tag="context"):
    """Where the client is."""

    measured: int
    lat: float
    lon: float
    subscriptions: int
    """How many the client holds; so the broker notices that it lost, or never got, one of them."""


class Alive(Message, frozen=True, tag="alive"):
    """The client is still there: from one that did not report lately, because nobody needs its position that often."""

    subscriptions: int
    """As in ``Report``."""


class Goodbye(Message, frozen=True, tag="goodbye"):
    """The client leaves; the broker forgets it."""


class SubscribeAgain(Message, frozen=True, tag="subscribe again"):
    """The broker does not know what the client is subscribed to."""


class AllSubscriptions(Message, frozen=True, tag="all subscriptions"):
    """The answer: these, and no others."""

    subscriptions: tuple[Subscribe, ...]


class CloudClient(Carrier):
    """The half that runs on every client."""

    def __init__(self, broker: Address, interface: str = "cellular", keep_alive: float = 20.0) -> None:
        """Who has subscribed says how much at least every two times ``keep_alive`` seconds; the broker must wait longer."""
        self._broker: Final = broker
        self._interface: Final = interface
        self._keep_alive: Final = keep_alive
        self._interests: dict[str, Interest] = {}
        self._told = False
        self._endpoint: Endpoint
        self._follower: LocationFollower

    def start(self, host: Host) -> None:
        self._endpoint = host.link(self._interface).open(PORT, self._receive, EventMessage, SubscribeAgain)
        self._follower = LocationFollower(host, self._moved)
        host.timers.every(self._keep_alive, self._stay_known)

    def stop(self) -> None:
        self._say(Goodbye())

    def carry(self, event: Event, *, local: bool) -> None:
        self._say(message_of(event, local=local))

    def interested(self, interest: Interest) -> None:
        self._say(_message_of(interest.subscription))
        self._interests[interest.subscription.id] = interest
        self._follower.follow(self._interests.values())

    def uninterested(self, subscription_id: str) -> None:
        del self._interests[subscription_id]
        self._say(Unsubscribe(subscription_id))
        self._follower.follow(self._interests.values())

    def _moved(self, fix: Fix) -> None:
        self._told, position = True, fix.position
        self._say(Report(fix.time, position.lat, position.lon, len(self._interests)))

    def _stay_known(self) -> None:
        if self._interests and not self._told:
            self._say(Alive(len(self._interests)))
        self._told = False

    def _say(self, message: Message) -> None:
        self._endpoint.send(self._broker, message)

    def _receive(self, _sender: Address, message: EventMessage | SubscribeAgain) -> None:
        if isinstance(message, EventMessage):
            self.arrived(event_in(message), PATH, HOPS)
            return
        held = tuple(_message_of(interest.subscription) for interest in self._interests.values())
        self._say(AllSubscriptions(held))


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    clients: int
    events: int
    notifications: int
    forgotten: int
    """Clients that fell silent and were forgotten."""


class CloudBroker(Component):
    """The half that runs in the cloud."""

    def __init__(self, interface: str = "cellular", forget_after: float = 60.0) -> None:
        self.matcher: Final = Matcher()
        self._interface: Final = interface
        self._forget_after: Final = forget_after
        self._heard: dict[Address, Instant] = {}
        self._measured: dict[Address, Instant] = {}
        self._doubtful: set[Address] = set()
        self._events = self._notifications = self._forgotten = 0
        self._host: Host
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host = host
        self._reports = host.observers.emitter("reports")
        self._subscriptions = host.observers.emitter("subscriptions")
        self._endpoint = host.link(self._interface).open(
            PORT, self._receive, EventMessage, Subscribe, Unsubscribe, AllSubscriptions, Report, Alive, Goodbye
        )
        # Who fails says nothing: whoever has been silent for long is taken for gone (product.md: the session expires).
        host.timers.every(self._forget_after / 4, self._forget_silent)

    def statistics(self) -> BrokerStatistics:
        return BrokerStatistics(len(self._heard), self._events, self._notifications, self._forgotten)

    def _receive(self, sender: Address, message: Message) -> None:
        if isinstance(message, Goodbye):
            self._forget(sender)
            return
        self._heard[sender] = self._host.now()
        match message:
            case EventMessage():
                self._publish(message)
            case Report():
                self._move(sender, message)
            case Alive():
                self._compare(sender, message.subscriptions)
            case Subscribe():
                self._subscribe(sender, message)
            case Unsubscribe():
                self._unsubscribe(sender, message.id)
            case AllSubscriptions():
                self._replace(sender, message.subscriptions)

    def _publish(self, message: EventMessage) -> None:
        self._events += 1
        receivers = list(self.matcher.match(event_in(message)))
        self._notifications += len(receivers)
        self._endpoint.send_all(receivers, message)

    def _move(self, client: Address, report: Report) -> None:
        if report.measured <= self._measured.get(client, -1):
            return
        self._measured[client] = report.measured
        self.matcher.move(client, report.lat, report.lon)
        self._compare(client, report.subscriptions)
        self._reports(self._host.now(), client, report.lat, report.lon)

    def _compare(self, client: Address, held: int) -> None:
        """After an outage the broker may have forgotten a client, or a subscription may have been lost: then it asks.

        Not at the first difference: a subscription that was just made, or ended, may be overtaken by a report.
        """
        if self.matcher.subscription_count(client) == held:
            self._doubtful.discard(client)
        elif client in self._doubtful:
            self._doubtful.discard(client)
            self._endpoint.send(client, SubscribeAgain())
        else:
            self._doubtful.add(client)

    def _subscribe(self, client: Address, message: Subscribe) -> None:
        area = None if message.radius is None else Circle(message.radius)
        now = self._host.now()
        subscription = Subscription(
            message.topic, message.where, area, TimeFrame(now, None), message.id, no_local=message.no_local
        )
        self.matcher.subscribe(client, subscription)
        self._subscriptions(now, client, message.id, "subscribed", message.topic, message.radius)

    def _unsubscribe(self, client: Address, subscription_id: str) -> None:
        held = self._held(client).get(subscription_id)
        if held is not None:
            self.matcher.unsubscribe(client, subscription_id)
            now = self._host.now()
            self._subscriptions(now, client, subscription_id, "unsubscribed", held.topic, _radius(held))

    def _replace(self, client: Address, subscriptions: tuple[Subscribe, ...]) -> None:
        wanted, held = {message.id: message for message in subscriptions}, self._held(client)
        for name in [name for name in held if name not in wanted]:
            self._unsubscribe(client, name)
        for name, message in wanted.items():
            if name not in held:
                self._subscribe(client, message)

    def _held(self, client: Address) -> dict[str, Subscription]:
        if client not in self.matcher:
            return {}
        return {subscription.id: subscription for subscription in self.matcher.subscriptions(client)}

    def _forget_silent(self) -> None:
        oldest = self._host.now() - round(self._forget_after * MICROSECONDS)
        for client in [client for client, heard in self._heard.items() if heard < oldest]:
            self._forgotten += 1
            self._forget(client)

    def _forget(self, client: Address) -> None:
        # Whoever reads the records must learn that, from now on, nothing is known of the client.
        for name in self._held(client):
            self._unsubscribe(client, name)
        if self._measured.pop(client, None) is not None:
            self._reports(self._host.now(), client, None, None)
        self._heard.pop(client, None)
        self._doubtful.discard(client)
        if client in self.matcher:
            self.matcher.remove_client(client)


def _message_of(subscription: Subscription) -> Subscribe:
    where = to_text(subscription.where) if subscription.where else None
    return Subscribe(subscription.id, subscription.topic, _radius(subscription), where, subscription.no_local)


def _radius(subscription: Subscription) -> float | None:
    match subscription.area:
        case None:
            return None
        case Circle(radius=radius, center=None):
            return radius
    raise InvalidSubscription(
        f"only circles around the client can be sent to the broker yet, not {subscription.area!r}"
    )
