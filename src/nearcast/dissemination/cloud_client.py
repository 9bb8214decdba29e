"""Events by way of the cloud, the half on every client (BYPASS.KOM 3.7, CLOUD).

It holds what is the same for all filter schemes: subscriptions, events, signs of life.  What the broker is told of the client's
whereabouts is the active scheme's business; its messages pass through here and are tagged with the scheme and with the
Lamport time of the plan by which the client came to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.cloud_messages import (
    HOPS,
    PATH,
    PORT,
    PROXY,
    TO_CLIENT,
    Alive,
    AllSubscriptions,
    Context,
    Goodbye,
    Subscribe,
    SubscribeAgain,
    Unsubscribe,
    message_of,
)
from nearcast.dissemination.inbox import Interest
from nearcast.dissemination.wire import EventMessage, event_in
from nearcast.dissemination.wire import message_of as event_message_of
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.location import LocationFollower
from nearcast.filtering.messages import Assignment, ClientMessage
from nearcast.filtering.specification import Territory, client_halves
from nearcast.model.event import Event
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Fix
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

M = TypeVar("M", bound=ClientMessage)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a client takes part."""

    scheme: MechanismSpec
    """At first; plans change it."""

    pinned: bool = False
    """Whether it stays with that scheme, whatever plans say."""

    confirms: bool = True
    """As in ``Surroundings``."""

    resubscribes: bool = False
    """Whether it subscribes again after each transition, because the broker forgets what it knows (LCN 2016, without transfer)."""

    keep_alive: float = 20.0
    """Who has subscribed says how much at least every two times so many seconds; the broker must wait longer."""

    piggyback: float = 0.0
    """Context waits so many seconds for an event that can take it along (BYPASS.KOM 4.2.2); 0: it does not wait."""


class CloudClient(Carrier):
    """After ``HostEngine`` and ``TransitionAgent`` among the components of its host."""

    def __init__(
        self, broker: Address, territory: Territory, settings: ClientSettings, interface: str = "cellular"
    ) -> None:
        self._broker: Final = broker
        self._territory: Final = territory
        self._settings: Final = settings
        self._interface: Final = interface
        self._interests: dict[str, Interest] = {}
        self._radius = 0.0
        self._told = False
        self._said_under = 0
        self._early: Assignment | None = None
        self._waiting: Context | None = None
        self._flush: Cancellable | None = None
        self._host: Host
        self._endpoint: Endpoint
        self._follower: LocationFollower
        self._agent: TransitionAgent
        self._proxy: Proxy[ClientHalf]

    def start(self, host: Host) -> None:
        self._host = host
        engine = host.component(HostEngine).engine
        self._agent = host.component(TransitionAgent)
        self._endpoint = host.link(self._interface).open(PORT, self._receive, EventMessage, *TO_CLIENT)
        self._follower = LocationFollower(host, self._moved)
        surroundings = Surroundings(
            say=engine.silence.guarded(self._say_context),
            newest=lambda: self._follower.newest,
            radius=lambda: self._radius,
            confirms=self._settings.confirms,
        )
        make = client_halves(self._territory, surroundings)
        self._proxy = engine.create_proxy(PROXY, ClientHalf, make, self._settings.scheme)
        self._agent.after(PROXY, self._switched)
        if self._settings.pinned:
            self._agent.pin(PROXY)
        host.timers.every(self._settings.keep_alive, self._stay_known)

    def stop(self) -> None:
        self._endpoint.send(self._broker, Goodbye())

    # The application's side

    def carry(self, event: Event, *, local: bool) -> None:
        half, channel = self._proxy.active, None
        if local and event.place is not None:
            channel, place = half.channel(), half.place(event.place)
            if place is not event.place:
                event = event.at(place)
        context, self._waiting = self._waiting, None
        self._told = self._told or context is not None
        # No tag: every scheme understands an event, and what goes along with it has one.
        message = event_message_of(event, local=local, channel=channel, context=context)
        self._endpoint.send(self._broker, message)

    def interested(self, interest: Interest) -> None:
        wanted = message_of(interest.subscription)
        self._interests[interest.subscription.id] = interest
        self._changed()
        # Before the first fix there is nothing to send along; the scheme will speak as soon as there is.
        self._say(Subscribe(wanted, self._context(), self._pinned()))

    def uninterested(self, subscription_id: str) -> None:
        del self._interests[subscription_id]
        self._changed()
        self._say(Unsubscribe(subscription_id))

    def _changed(self) -> None:
        areas = [held.subscription.area for held in self._interests.values()]
        self._radius = max((area.bounding_radius() for area in areas if area is not None), default=0.0)
        self._follower.follow([held.request for held in self._interests.values() if held.request])

    # The scheme's side

    def _moved(self, fix: Fix) -> None:
        self._proxy.active.moved(fix)

    def _switched(self) -> None:
        """The scheme was exchanged, or got other parameters."""
        early, self._early = self._early, None
        if early is not None:
            self._assigned(early)
        if self._settings.resubscribes:
            self._tell_all()
        elif self._settings.confirms and self._said_under < self._agent.goal.newest(PROXY).clock:
            # It was in that scheme already, because it never heard of one in between: the broker waits for its word all the same.
            context = self._proxy.active.piggyback()
            if context is not None:
                self._say_context(context)

    def _assigned(self, message: Assignment) -> None:
        ours = self._agent.goal.newest(PROXY).clock
        if message.clock == ours:
            self._proxy.active.receive(message)
        elif message.clock > ours:  # it has overtaken the plan that it belongs to
            early = self._early
            if early is None or (early.clock, early.measured) <= (message.clock, message.measured):
                self._early = message

    def _say_context(self, context: Context) -> None:
        self._told, self._said_under = True, self._agent.goal.newest(PROXY).clock
        if not self._settings.piggyback:
            self._say(context)
            return
        self._waiting = self._tagged(context)
        if self._flush is None:
            self._flush = self._host.timers.after(self._settings.piggyback, self._send_waiting)

    def _send_waiting(self) -> None:
        self._flush, context, self._waiting = None, self._waiting, None
        if context is not None:
            self._endpoint.send(self._broker, context)

    def _context(self) -> Context | None:
        context = self._proxy.active.piggyback()
        return None if context is None else self._tagged(context)

    def _pinned(self) -> MechanismSpec | None:
        return self._settings.scheme if self._settings.pinned else None

    # The broker's side

    def _stay_known(self) -> None:
        if self._interests and not self._told:
            self._say(Alive())
        self._told = False

    def _say(self, message: ClientMessage) -> None:
        self._endpoint.send(self._broker, self._tagged(message))

    def _tagged(self, message: M) -> M:
        return msgspec.structs.replace(
            message,
            scheme=self._proxy.spec.name,
            clock=self._agent.goal.newest(PROXY).clock,
            subscriptions=len(self._interests),
        )

    def _receive(self, _sender: Address, message: Message) -> None:
        if type(message) is EventMessage:  # nearly all are
            self.arrived(event_in(message), PATH, HOPS)
        elif isinstance(message, Assignment):
            self._assigned(message)
        elif isinstance(message, SubscribeAgain):
            self._tell_all()

    def _tell_all(self) -> None:
        held = tuple(message_of(interest.subscription) for interest in self._interests.values())
        plan = self._agent.goal.newest(PROXY)
        self._say(AllSubscriptions(held, self._proxy.spec, plan, self._context(), self._pinned()))
