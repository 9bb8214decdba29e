"""Events by way of the cloud, the half on every client (BYPASS.KOM 3.7, CLOUD).

It holds what is the same for all filter schemes on a link on which messages get lost: subscriptions, events, signs of life.  What the
broker is told of the client's whereabouts is ``scheme_client``'s business.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.cloud_messages import (
    HOPS,
    PATH,
    PORT,
    TO_CLIENT,
    Alive,
    AllSubscriptions,
    Context,
    Goodbye,
    Subscribe,
    SubscribeAgain,
    SubscribeReachable,
    Unsubscribe,
    message_of,
)
from nearcast.dissemination.inbox import Inbox, Interest
from nearcast.dissemination.scheme_client import ClientSettings, SchemeClient
from nearcast.dissemination.wire import EventMessage, event_in
from nearcast.dissemination.wire import message_of as event_message_of
from nearcast.filtering.location import LocationFollower, LocationRequest
from nearcast.filtering.messages import Assignment, ClientMessage
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint

__all__ = ["ClientSettings", "CloudClient"]

_receive_all: Final = partial(Inbox.receive_all, path=PATH, hops=HOPS)


class CloudClient(Carrier):
    """After ``HostEngine`` and ``TransitionAgent`` among the components of its host."""

    def __init__(
        self,
        broker: Address,
        territory: Territory,
        settings: ClientSettings,
        interface: str = "cellular",
        local_interface: str | None = None,
    ) -> None:
        """``local_interface``: the broker is told of the address there, too."""
        self._broker: Final = broker
        self._territory: Final = territory
        self._settings: Final = settings
        self._interface: Final = interface
        self._local_interface: Final = local_interface
        self._local: Address | None = None
        self._requests: dict[str, LocationRequest | None] = {}
        self._endpoint: Endpoint
        self._follower: LocationFollower
        self.schemes: SchemeClient

    def start(self, host: Host) -> None:
        self._endpoint = host.link(self._interface).open(PORT, self._receive, EventMessage, *TO_CLIENT)
        if self._local_interface is not None:
            self._local = host.link(self._local_interface).address
        self.inbox.when_patience_changes(self._hear_later)
        again = self._tell_all if self._settings.resubscribes else None
        self.schemes = SchemeClient(host, self._territory, self._settings, self._send, again)
        self._follower = LocationFollower(host, self.schemes.moved)
        host.timers.every(self._settings.keep_alive, self._stay_known)

    def stop(self) -> None:
        self._endpoint.send(self._broker, Goodbye())

    # The application's side

    def carry(self, event: Event, *, local: bool) -> None:
        channel = None
        if local and event.place is not None:
            channel, place = self.schemes.happening(event.place)
            if place is not event.place:
                event = event.at(place)
        # No tag: every scheme understands an event, and what goes along with it has one.
        message = event_message_of(event, local=local, channel=channel, context=self.schemes.take_waiting())
        self._endpoint.send(self._broker, message)

    def interested(self, interest: Interest) -> None:
        subscription = interest.subscription
        wanted = message_of(subscription)
        self._requests[subscription.id] = interest.request
        self.schemes.interested(subscription)
        self._follow()
        # Before the first fix there is nothing to send along; the scheme will speak as soon as there is.
        said = wanted, self.schemes.context(), self.schemes.pinned
        self._say(Subscribe(*said) if self._local is None else SubscribeReachable(*said, local=self._local))

    def uninterested(self, subscription_id: str) -> None:
        del self._requests[subscription_id]
        self.schemes.uninterested(subscription_id)
        self._follow()
        self._say(Unsubscribe(subscription_id))

    def _follow(self) -> None:
        self._follower.follow([request for request in self._requests.values() if request])

    # The broker's side

    def _stay_known(self) -> None:
        if self._requests and not self.schemes.told:
            self._say(Alive())
        self.schemes.told = False

    def _say(self, message: ClientMessage) -> None:
        self._endpoint.send(self._broker, self.schemes.tagged(message))

    def _send(self, context: Context) -> None:
        self._endpoint.send(self._broker, context)

    def _hear_later(self, patient: bool) -> None:
        self._endpoint.later(EventMessage, self.inbox if patient else None, _receive_all)

    def _receive(self, _sender: Address, message: Message) -> None:
        if type(message) is EventMessage:  # nearly all are
            self.inbox.receive(event_in(message), PATH, HOPS)
        elif isinstance(message, Assignment):
            self.schemes.assigned(message)
        elif isinstance(message, SubscribeAgain):
            self._tell_all()

    def _tell_all(self) -> None:
        schemes = self.schemes
        held = tuple(message_of(subscription) for subscription in schemes.subscriptions)
        self._say(AllSubscriptions(held, schemes.running, schemes.plan, schemes.context(), schemes.pinned))
