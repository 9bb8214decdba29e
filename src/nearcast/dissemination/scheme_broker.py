"""A broker's filter schemes without a network: who is to get an event, as far as clients have said what they want and where they are.

It keeps subscriptions, hands every event to all filter schemes that are active, and what a client says to the one that the client
belongs to.  Which schemes these are is changed by plans (``transition``), for all clients or some.  Messages may overtake each
other and plans take their time, so a client may speak in another scheme than the broker has for it: what it says of itself is
understood all the same.

How messages travel, who is still there, and what to do when something was lost is left to whoever hosts it: ``CloudBroker`` on
an unreliable link, ``broker.schemes`` on MQTT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from nearcast.dissemination.broker_settings import BrokerSettings, BrokerStatistics, Memory
from nearcast.dissemination.broker_state import Counts, provide
from nearcast.dissemination.cloud_messages import Context
from nearcast.dissemination.scheme_exchange import Say, SchemeExchange
from nearcast.filtering.broker_half import BrokerHalf
from nearcast.filtering.context import NEVER, ClientContext
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining
from nearcast.filtering.missing import WaitingEvents, unplaced_receivers
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.records.exchange import SUBSCRIPTIONS
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec

Deliver = Callable[[Address, Event], None]
"""Bring an event to a client for which it has waited."""


class SchemeBroker:
    """Clients, what they want, and the schemes that serve them."""

    exchange_type: ClassVar[type[SchemeExchange]] = SchemeExchange

    def __init__(
        self,
        host: Host,
        territory: Territory,
        settings: BrokerSettings,
        memory: Memory,
        say: Say,
        deliver: Deliver,
    ) -> None:
        """The host has a ``HostEngine`` and a ``TransitionCoordinator``, both started."""
        self.watch: Callable[[Address, ClientContext], None] = _unwatched
        """Told of every client whose context has changed."""

        self.placed: Callable[[Address, Point], None] = _unplanned
        """Told, after ``watch``, where every client says that it is, also where its scheme forgets that at once; for whoever plans by place."""

        self.gone: Callable[[Address], None] = _unmissed
        """Told of every client that has gone; for the same."""

        self.published: Callable[[Event, list[Address]], None] = _unheard
        """Told of every event and of those it goes to; for whoever learns from it."""

        self._host: Final = host
        self._missing_context: Final = settings.missing_context
        self._deliver: Final = deliver
        self._reports: Final = host.observers.emitter("reports")
        self._subscriptions: Final = host.observers.emitter("subscriptions")
        self._reported: Final[set[Address]] = set()
        self._counts: Final = Counts()
        self._waiting: Final = WaitingEvents(settings.wait_at_most)
        self.exchange: Final = self.exchange_type(host, territory, settings, memory, say)
        """Who belongs to which scheme, and how that changes."""

        provide(
            host.state,
            territory.box,
            host.now,
            self.exchange.__len__,  # not all that were heard: some only publish
            lambda: (self._counts, self.exchange.tally.done),
        )

    def statistics(self) -> BrokerStatistics:
        exchange, tally = self.exchange, self.exchange.tally
        return BrokerStatistics(
            clients=len(exchange),
            events=self._counts.events,
            notifications=self._counts.notifications,
            forgotten=0,
            refused=exchange.refused,
            match_operations_counted=tally.counted,
            match_operations_done=tally.done,
            multicasts=tally.multicasts,
            overlaps=len(exchange.overlaps),
            waiting=len(self._waiting),
            given_up=self._waiting.given_up,
        )

    # What clients say

    def pin(self, client: Address, scheme: MechanismSpec | None) -> None:
        """The client insists on this scheme; none: it does not insist on any."""
        if scheme is not None:
            self.exchange.pin(client, scheme)

    def hear(self, client: Address, message: Context) -> bool:
        """A message of the client's scheme; answers what ``SchemeExchange.check_clock`` does."""
        self.take(client, message)
        return self.exchange.check_clock(client, message.clock)

    def take(self, client: Address, message: Context) -> None:
        """What a client says of itself."""
        self._counts.context += 1
        exchange = self.exchange
        half = exchange.half_of(client)
        if exchange.knows_all_of(client, message.subscriptions):
            exchange.overlaps.arrived(client, message.clock)
        for old in exchange.overlaps.halves_of(client):
            old.hear(client, message)
        before = half.contexts[client].measured
        # What it asked for in a scheme that it is about to leave is no question to the next one.
        if half.hear(client, message if message.clock >= exchange.clock_of(client) else _statement(message)):
            if isinstance(message, Joining):
                self._unreport(client)
            elif message.measured > before:  # else it is known already, from a message that it went along with
                self._reported.add(client)
                self._reports(self._host.now(), client, message.lat, message.lon)
            self._serve_waiting(client, half)
            self.watch(client, half.contexts[client])
            if not isinstance(message, Joining):
                self.placed(client, Point(message.lat, message.lon))

    def arrived(self, client: Address, clock: int) -> None:
        """The client has spoken in the scheme of that plan, though not of itself."""
        self.exchange.overlaps.arrived(client, clock)

    def context_of(self, client: Address) -> ClientContext:
        """What its scheme knows of a client; nothing of one that is new."""
        return self.exchange.half_of(client).contexts[client]

    def renew(self, client: Address) -> None:
        """What it says next is the newest, whatever time it shows: the client was started again, with another clock perhaps."""
        for half in self.exchange.halves_of(client):
            half.contexts[client].measured = NEVER

    # Subscriptions

    def held(self, client: Address) -> dict[str, Subscription]:
        """Those of a client."""
        return self.context_of(client).subscriptions

    def held_before(self, client: Address) -> dict[str, Subscription]:
        """Those that schemes know which go on for the client, though its own may have forgotten them."""
        return {
            name: each
            for old in self.exchange.overlaps.halves_of(client)
            for name, each in old.contexts[client].subscriptions.items()
        }

    def subscribe(self, client: Address, subscription: Subscription) -> None:
        for half in self.exchange.halves_of(client):
            half.subscribe(client, subscription)
        self._note(client, subscription, "subscribed")

    def resume(self, client: Address, subscription: Subscription) -> None:
        """Take up what is held already, though its scheme has forgotten it: no news to anybody."""
        self.exchange.half_of(client).subscribe(client, subscription)

    def unsubscribe(self, client: Address, subscription_id: str) -> None:
        """End a subscription; nothing happens if there is none."""
        held = self.held(client).get(subscription_id)
        if held is not None:
            for half in self.exchange.halves_of(client):
                half.unsubscribe(client, subscription_id)
            self._note(client, held, "unsubscribed")

    def _note(self, client: Address, subscription: Subscription, what: str) -> None:
        said = {
            "time": self._host.now(),
            "client": client,
            "subscription": subscription.id,
            "action": what,
            "topic_filter": subscription.topic,
            "radius": None if subscription.area is None else subscription.area.bounding_radius(),
            "no_local": 1 if subscription.no_local else None,
        }
        self._subscriptions(*SUBSCRIPTIONS.row(said))

    # Events

    def receivers(self, event: Event, channel: str | None = None, *, local: bool = True) -> list[Address]:
        """Who is to get the event now, each once.

        ``channel`` is what its publisher put on it, ``local`` whether it happens where the publisher is.
        """
        self._counts.events += 1
        self._counts.elsewhere += not local
        receivers = self._found(event, channel)
        if self._missing_context != "ignore":
            unplaced = unplaced_receivers(event, self._unplaced())
            if self._missing_context == "deliver":
                receivers = list(dict.fromkeys([*receivers, *unplaced]))
            else:
                served, now = set(receivers), self._host.now()  # by another subscription, or the event has no place
                for client in unplaced:
                    if client not in served:
                        self._waiting.keep(client, event, channel, now)
        self._counts.notifications += len(receivers)
        self.published(event, receivers)
        return receivers

    def _found(self, event: Event, channel: str | None) -> list[Address]:
        exchange, overlaps = self.exchange, self.exchange.overlaps
        found = [client for half in exchange.present() for client in half.receivers(event, channel)]
        if len(overlaps):
            found = [client for client in found if not overlaps.serve(client)]
            found += overlaps.receivers(event, channel)
        return found

    def _unplaced(self) -> Iterator[tuple[Address, ClientContext]]:
        for half in self.exchange.present():
            for client, context in half.contexts.items():
                if not half.knows_place(client):
                    yield client, context

    def _serve_waiting(self, client: Address, half: BrokerHalf) -> None:
        if len(self._waiting) and half.knows_place(client):
            for kept in self._waiting.take(client, self._host.now()):
                if client in half.receivers(kept.event, kept.channel):
                    self._counts.notifications += 1
                    self._deliver(client, kept.event)

    # Going

    def expire(self) -> None:
        """Give up what has waited for too long; to be called now and then."""
        now = self._host.now()
        self.exchange.overlaps.expire(now)
        self._waiting.expire(now)

    def forget(self, client: Address) -> None:
        """The client is gone."""
        # Whoever reads the records must learn that, from now on, nothing is known of the client.
        for held in self.held(client).values():
            self._note(client, held, "unsubscribed")
        self._unreport(client)
        self.exchange.forget(client)
        self._waiting.take(client, self._host.now())
        self.gone(client)

    def _unreport(self, client: Address) -> None:
        if client in self._reported:
            self._reported.discard(client)
            self._reports(self._host.now(), client, None, None)


def _statement(message: Context) -> Context:
    if not isinstance(message, AssignmentRequest):
        return message
    return ContextUpdate(message.measured, message.lat, message.lon, scheme=message.scheme, clock=message.clock)


def _unwatched(_client: Address, _context: ClientContext) -> None:
    """Nobody learns from contexts."""


def _unplanned(_client: Address, _position: Point) -> None:
    """Nobody plans by place."""


def _unmissed(_client: Address) -> None:
    """Nobody plans by place."""


def _unheard(_event: Event, _receivers: list[Address]) -> None:
    """Nobody learns from events."""
