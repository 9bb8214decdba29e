"""Events by way of the cloud, the half at the broker (BYPASS.KOM 3.7, CLOUD).

Filter schemes and their transitions are ``scheme_broker``'s; here is the link, on which messages get lost and overtake each other: who
is still there, and whether the broker knows all that its clients believe it to know.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nearcast.dissemination.broker_settings import BrokerSettings, BrokerStatistics, Memory
from nearcast.dissemination.cloud_messages import (
    FROM_CLIENT,
    PORT,
    Alive,
    AllSubscriptions,
    Context,
    Goodbye,
    Subscribe,
    SubscribeAgain,
    SubscriptionMessage,
    Unsubscribe,
    message_of,
    subscription_in,
)
from nearcast.dissemination.handing_over import Directly, HandingOver
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.dissemination.wire import EventMessage, event_in, without_tag
from nearcast.dissemination.wire import message_of as event_message_of
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint

__all__ = ["BrokerSettings", "BrokerStatistics", "CloudBroker", "Memory"]


class CloudBroker(PlannedBroker):
    def __init__(
        self,
        territory: Territory,
        settings: BrokerSettings,
        memory: Memory | None = None,
        interface: str = "cellular",
        handing_over: HandingOver | None = None,
    ) -> None:
        """Unless said otherwise, receivers are told directly."""
        super().__init__(territory, settings, memory or Memory(), interface)
        self._handing_over: Final = handing_over or Directly()
        self._heard: dict[Address, Instant] = {}
        self._doubtful: set[Address] = set()
        self._forgotten = 0

    def start(self, host: Host) -> None:
        super().start(host)
        self._handing_over.start(host, self, self._endpoint)

    def _listen(self, host: Host) -> Endpoint:
        # Who fails says nothing: whoever has been silent for long is taken for gone (product.md: the session expires).
        host.timers.every(self._settings.forget_after / 4, self._forget_silent)
        return host.link(self._interface).open(PORT, self._receive, EventMessage, *FROM_CLIENT)

    def statistics(self) -> BrokerStatistics:
        return replace(self.schemes.statistics(), clients=len(self._heard), forgotten=self._forgotten)

    @property
    def clients(self) -> list[Address]:
        """Also those that are in no scheme, because they only publish."""
        return list(self._heard)

    # Messages

    def _receive(self, sender: Address, message: Message) -> None:
        if isinstance(message, Goodbye):
            self._forget(sender)
            return
        if sender not in self._heard:
            self.exchange.welcome(sender)
        self._heard[sender] = self._host.now()
        match message:
            case EventMessage():
                if message.context is not None:
                    self._hear(sender, message.context)
                self._publish(message)
            case Subscribe():
                self.schemes.pin(sender, message.pinned)
                # Before the context: channels are assigned by the new area of interest then, and announced once.
                self._subscribe(sender, message.subscription)
                if message.context is not None:
                    self.schemes.take(sender, message.context)
                self._check_clock(sender, message.clock)
            case Unsubscribe():
                self.schemes.unsubscribe(sender, message.id)
            case AllSubscriptions():
                self._learn(sender, message)
            case Alive():
                self._compare(sender, message.subscriptions)
                self._check_clock(sender, message.clock)
            case ContextUpdate() | AssignmentRequest() | Joining():
                self._hear(sender, message)

    def _hear(self, client: Address, message: Context) -> None:
        """A message of the client's scheme, by itself or along with an event."""
        self.schemes.take(client, message)
        self._compare(client, message.subscriptions)
        self._check_clock(client, message.clock)

    def _check_clock(self, client: Address, clock: int) -> None:
        if self.exchange.check_clock(client, clock):
            self._endpoint.send(client, SubscribeAgain())

    # Events

    def _publish(self, message: EventMessage) -> None:
        receivers = self.schemes.receivers(event_in(message), message.channel, local=message.local)
        self._handing_over.tell(receivers, without_tag(message))

    def _deliver(self, client: Address, event: Event) -> None:
        self._endpoint.send(client, event_message_of(event))

    # Subscriptions

    def _compare(self, client: Address, held: int) -> None:
        """After an outage the broker may have forgotten a client, or a subscription may have been lost: then it asks.

        Not at the first difference: a subscription that was just made, or ended, may be overtaken by a report.
        """
        if len(self.schemes.held(client)) == held:
            self._doubtful.discard(client)
        elif client in self._doubtful:
            self._doubtful.discard(client)
            self._endpoint.send(client, SubscribeAgain())
        else:
            self._doubtful.add(client)

    def _learn(self, client: Address, message: AllSubscriptions) -> None:
        """The answer: what the client is subscribed to, and which scheme it runs."""
        self.schemes.pin(client, message.pinned)
        if self.exchange.check_clock(client, message.clock):
            self.exchange.follow(client, message.running, message.plan)
        self._replace(client, message.subscriptions_held)
        if message.context is not None:
            self.schemes.take(client, message.context)
        else:
            self.schemes.arrived(client, message.clock)

    def _replace(self, client: Address, subscriptions: tuple[SubscriptionMessage, ...]) -> None:
        wanted, held = {message.id: message for message in subscriptions}, self.schemes.held(client)
        for name in [name for name in held if name not in wanted]:
            self.schemes.unsubscribe(client, name)
        # What the old scheme still knows is no news: events that are on their way were published after it was subscribed to.
        known = self.schemes.held_before(client)
        for name, message in wanted.items():
            if name in held:
                continue
            if name in known and message_of(known[name]) == message:
                self.schemes.resume(client, known[name])
            else:
                self._subscribe(client, message)

    def _subscribe(self, client: Address, message: SubscriptionMessage) -> None:
        self.schemes.subscribe(client, subscription_in(message, self._host.now()))

    # Going

    def _forget_silent(self) -> None:
        oldest = self._host.now() - round(self._settings.forget_after * MICROSECONDS)
        for client in [client for client, heard in self._heard.items() if heard < oldest]:
            self._forgotten += 1
            self._forget(client)

    def _forget(self, client: Address) -> None:
        if client in self._heard:
            self.schemes.forget(client)
            self._handing_over.forget(client)
            del self._heard[client]
            self._doubtful.discard(client)
