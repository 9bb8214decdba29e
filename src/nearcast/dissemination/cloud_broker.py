"""Events by way of the cloud, the half at the broker (BYPASS.KOM 3.7, CLOUD).

It keeps sessions and subscriptions, hands every event to all filter schemes that are active, and what a client says to the one
that the client belongs to.  Which schemes these are is changed by plans (``transition``), for all clients or some.  Messages may
overtake each other and plans take their time, so a client may speak in another scheme than the broker has for it: what it says of
itself is understood all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from nearcast.dissemination.broker_state import Counts, provide
from nearcast.dissemination.cloud_messages import (
    FROM_CLIENT,
    PORT,
    PROXY,
    Alive,
    AllSubscriptions,
    Context,
    Goodbye,
    Subscribe,
    SubscribeAgain,
    SubscriptionMessage,
    Unsubscribe,
    radius_of,
    subscription_in,
)
from nearcast.dissemination.cloud_messages import message_of as subscription_message_of
from nearcast.dissemination.wire import EventMessage, event_in, without_tag
from nearcast.dissemination.wire import message_of as event_message_of
from nearcast.errors import InvalidPlan, TransitionFailed
from nearcast.filtering.broker_half import BrokerHalf, Cloud, Tally
from nearcast.filtering.context import NEVER, ClientContext
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining, SchemeMessage, ToClient
from nearcast.filtering.missing import Strategy, WaitingEvents, unplaced_receivers
from nearcast.filtering.overlap import Overlaps
from nearcast.filtering.specification import Territory, broker_halves
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.custom import Transition
from nearcast.transition.engine import HostEngine, TransitionEngine
from nearcast.transition.null import NullMechanism
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanDone, PlanId
from nearcast.transition.proxy import ParallelProxy
from nearcast.transition.specification import NULL, MechanismSpec

EVERYBODY: Final = "everybody"
"""The group of hosts that total transitions are for, newcomers included."""

PATIENCE: Final = MICROSECONDS
"""So long a plan may take to a client, before its broker believes that it was lost."""

PINNED: Final = "pinned filter scheme"
"""The proxy of those clients that insist on a scheme of their own."""


@dataclass(slots=True)
class Memory:
    """What a broker must not forget when it fails; whoever builds it keeps this for it, on a disk or elsewhere."""

    plans: tuple[ExecutionPlan, ...] = ()
    """What everybody was told last."""

    clock: int = 0
    """Of the last plan, also if it was for some clients only: these would take another plan of that clock for an old one."""


class Forgetting(Transition[BrokerHalf, BrokerHalf]):
    """No transfer of state: what the documents compare with (LCN 2016, V; BYPASS.KOM 6.2.2)."""

    source = target = NullMechanism

    def transfer(self, source: BrokerHalf, target: BrokerHalf, members: Collection[str] | None) -> None: ...


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """How a broker works; the defaults lose nothing and double nothing in a transition."""

    scheme: MechanismSpec
    """At first."""

    state_transfer: bool = True
    overlap: bool = True
    grace: float = 60.0
    """Seconds for which the old scheme goes on at most for clients of which nothing is heard."""

    missing_context: Strategy = "ignore"
    wait_at_most: float = 2.0
    forget_after: float = 60.0


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    clients: int
    events: int
    notifications: int
    forgotten: int
    """Clients that fell silent and were forgotten."""

    refused: int
    """Schemes that clients asked for and the broker does not have."""

    match_operations_counted: int
    """As the documents count them, see ``filtering.broker_half.Tally``."""

    match_operations_done: int
    multicasts: int
    overlaps: int
    waiting: int
    given_up: int


class CloudBroker(Component):
    """After ``HostEngine`` and ``TransitionCoordinator`` among the components of its host."""

    def __init__(
        self,
        territory: Territory,
        settings: BrokerSettings,
        memory: Memory | None = None,
        interface: str = "cellular",
    ) -> None:
        self._memory: Final = memory or Memory()
        self._recovered: Final = bool(self._memory.plans)
        self._territory: Final = territory
        self._settings: Final = settings
        self._interface: Final = interface
        self._heard: dict[Address, Instant] = {}
        self._reported: set[Address] = set()
        self._doubtful: set[Address] = set()
        self._clock = 0
        """Lamport time of the plan that newcomers are to follow."""

        self._clocks: dict[Address, int] = {}
        """Of those for whom there was another, later plan."""

        self._planned: Instant = NEVER
        """When the newest plan was sent."""

        self._addressed: frozenset[Address] = frozenset()
        """To whom."""

        self._counts: Final = Counts()
        self._tally: Final = Tally()
        self._overlaps: Final = Overlaps()
        self._waiting: Final = WaitingEvents(settings.wait_at_most)
        self._forgotten = self._refused = 0
        self._unable: dict[Address, int] = {}
        """Clients that could not follow a plan, and its clock: they stay in the scheme that they have."""

        self.watch: Callable[[Address, ClientContext], None] = _unwatched
        """Told of every client whose context has changed; for whoever plans by place."""

        self.published: Callable[[Event, list[Address]], None] = _unheard
        """Told of every event and of those it goes to; for whoever learns from it."""

        self._host: Host
        self._endpoint: Endpoint
        self._engine: TransitionEngine
        self._coordinator: TransitionCoordinator
        self._proxy: ParallelProxy[BrokerHalf]
        self._pinned: ParallelProxy[BrokerHalf]

    def start(self, host: Host) -> None:
        self._host = host
        self._reports = host.observers.emitter("reports")
        self._subscriptions = host.observers.emitter("subscriptions")
        self._engine = engine = host.component(HostEngine).engine
        self._coordinator = host.component(TransitionCoordinator)
        self._coordinator.done = self._answered
        self._endpoint = host.link(self._interface).open(PORT, self._receive, EventMessage, *FROM_CLIENT)
        self._make = broker_halves(self._territory, Cloud(engine.silence.guarded(self._say), self._tally))
        self._proxy = engine.create_parallel_proxy(PROXY, BrokerHalf, self._make, self._settings.scheme)
        self._pinned = engine.create_parallel_proxy(PINNED, BrokerHalf, self._make, NULL)
        if not self._settings.state_transfer:
            engine.register(PROXY, Forgetting())
        self._remember()
        # Who fails says nothing: whoever has been silent for long is taken for gone (product.md: the session expires).
        host.timers.every(self._settings.forget_after / 4, self._forget_silent)
        host.timers.every(max(self._settings.grace / 4, 0.001), self._expire)
        provide(
            host.state,
            self._territory.box,
            host.now,
            # Not all that were heard: some only publish.
            lambda: len(self._proxy.members) + len(self._pinned.members),
            lambda: (self._counts, self._tally.done),
        )

    def statistics(self) -> BrokerStatistics:
        return BrokerStatistics(
            clients=len(self._heard),
            events=self._counts.events,
            notifications=self._counts.notifications,
            forgotten=self._forgotten,
            refused=self._refused,
            match_operations_counted=self._tally.counted,
            match_operations_done=self._tally.done,
            multicasts=self._tally.multicasts,
            overlaps=len(self._overlaps),
            waiting=len(self._waiting),
            given_up=self._waiting.given_up,
        )

    @property
    def recovered(self) -> bool:
        """Whether it went on, when it started, with what it was told in an earlier life."""
        return self._recovered

    @property
    def clients(self) -> list[Address]:
        """All that are known, in the order in which they came."""
        return list(self._heard)

    # Transitions

    @property
    def scheme(self) -> MechanismSpec:
        """That of newcomers."""
        return self._proxy.default

    def scheme_of(self, client: Address) -> MechanismSpec:
        return (self._pinned if client in self._pinned.members else self._proxy).spec_for(client)

    def transition(self, scheme: MechanismSpec, clients: Iterable[Address] | None = None) -> None:
        """Bring all clients, or these, to that scheme: first here, at once; then each of them, by a plan.

        Raises ``TransitionFailed`` if the broker cannot change; then nobody does.
        """
        if scheme == NULL:
            raise InvalidPlan("a broker needs a filter scheme: without one, it would forget its clients")
        members = [client for client in (self._proxy.members if clients is None else clients) if self._follows(client)]
        affected = [client for client in members if self._proxy.spec_for(client) != scheme]
        if not affected and (clients is not None or scheme == self._proxy.default):
            return
        plan = PlanId(self._coordinator.clock + 1, self._host.name)
        old = self._copies(affected) if self._settings.overlap else []
        before = self._clock, self._clocks
        # Before the exchange: what the new scheme says to clients carries the tag of the new plan.
        if clients is None:
            self._clock, self._clocks = plan.clock, {}
        else:
            self._clocks = self._clocks | dict.fromkeys(affected, plan.clock)
        try:
            if clients is None:
                self._engine.execute(PROXY, scheme, str(plan))
            else:
                self._engine.execute_partial(PROXY, scheme, affected, str(plan))
        except TransitionFailed:
            self._clock, self._clocks = before
            raise
        for half in old:
            self._overlaps.begin(half, plan.clock, self._end_of_grace())
        group = EVERYBODY if clients is None else None
        self._coordinator.execute([Exchange(PROXY, scheme)], members if clients is None else affected, group)
        self._memory.plans = self._coordinator.goal(EVERYBODY)
        self._memory.clock = plan.clock
        self._planned, self._addressed = self._host.now(), frozenset(members)

    def _remember(self) -> None:
        """After a failure: what everybody was told last still holds."""
        self._coordinator.observe_clock(self._memory.clock)
        if self._memory.plans:
            self._coordinator.recover(EVERYBODY, self._memory.plans)
            self._clock = self._memory.plans[-1].id.clock
            for action in (action for plan in self._memory.plans for action in plan.actions):
                if isinstance(action, Exchange):
                    self._engine.execute(PROXY, action.target)

    def _copies(self, clients: list[Address]) -> list[BrokerHalf]:
        """The present schemes of these clients once more, to go on with them for a while."""
        clocks, copies = {client: self._clock_of(client) for client in clients}, []
        for spec, group in self._proxy.groups(clients).items():
            # What the old scheme has to say is for those who are still in it: it keeps its tag.
            say = partial(self._send_tagged, spec.name, clocks)
            half = broker_halves(self._territory, Cloud(say, self._tally))(spec)
            contexts = self._proxy.instances[spec].contexts
            for client in group:
                # Whoever wants no area gets the same in all schemes, and may have nothing to say in any.
                needed = client in contexts and (contexts[client].has_area() or not self._settings.state_transfer)
                if needed:
                    half.adopt(client, contexts[client].copy())
            if half.contexts:
                copies.append(half)
        return copies

    def _end_of_grace(self) -> Instant:
        return self._host.now() + round(self._settings.grace * MICROSECONDS)

    def _follows(self, client: Address) -> bool:
        return client not in self._pinned.members

    def _clock_of(self, client: Address) -> int:
        if not self._follows(client):
            return 0  # it follows no plan, and takes nothing that belongs to one
        return self._clocks.get(client, self._clock)

    def _say(self, client: Address, message: ToClient) -> None:
        self._send_tagged(self.scheme_of(client).name, {client: self._clock_of(client)}, client, message)

    def _send_tagged(self, scheme: str, clocks: Mapping[Address, int], client: Address, message: ToClient) -> None:
        self._endpoint.send(client, msgspec.structs.replace(message, scheme=scheme, clock=clocks[client]))

    def _compare_clocks(self, client: Address, message: SchemeMessage) -> None:
        """The tag reveals who has missed a plan (BYPASS.KOM 4.2.2), and that this broker has."""
        if not self._follows(client):
            return
        ours = self._clock_of(client)
        if message.clock < ours:
            self._overlaps.prolong(client, message.clock, self._end_of_grace())
            # Right after a plan, what clients said before they got it is still on its way.
            patient = client in self._addressed and self._host.now() - self._planned <= PATIENCE
            if not patient and self._unable.get(client) != ours:
                self._coordinator.bring_up(client, EVERYBODY)
        elif message.clock > ours:
            # This broker has forgotten, or another initiator was faster: the client says which scheme it runs.
            self._coordinator.observe_clock(message.clock)
            if not isinstance(message, AllSubscriptions):
                self._endpoint.send(client, SubscribeAgain())
            else:
                self._follow(client, message)

    def _follow(self, client: Address, message: AllSubscriptions) -> None:
        """Self-healing: whoever has seen the later plan is right (BYPASS.KOM 4.3.3), as far as it is concerned itself."""
        self._half(client)
        try:
            self._engine.execute_partial(PROXY, message.running, [client], str(message.plan))
        except TransitionFailed:
            self._refused += 1
        else:
            self._clocks[client] = message.plan.clock

    def _answered(self, client: Address, done: PlanDone) -> None:
        if not done.ok and self._follows(client):
            self._unable[client] = done.plan.clock

    # Messages

    def _receive(self, sender: Address, message: Message) -> None:
        if isinstance(message, Goodbye):
            self._forget(sender)
            return
        self._heard[sender] = self._host.now()
        match message:
            case EventMessage():
                if message.context is not None:
                    self._hear(sender, message.context)
                self._publish(message)
            case Subscribe():
                self._pin(sender, message.pinned)
                # Before the context: channels are assigned by the new area of interest then, and announced once.
                self._subscribe(sender, message.subscription)
                if message.context is not None:
                    self._take(sender, message.context)
                self._compare_clocks(sender, message)
            case Unsubscribe():
                self._unsubscribe(sender, message.id)
            case AllSubscriptions():
                self._pin(sender, message.pinned)
                self._compare_clocks(sender, message)
                self._replace(sender, message.subscriptions_held)
                if message.context is not None:
                    self._take(sender, message.context)
                else:
                    self._overlaps.arrived(sender, message.clock)
            case Alive():
                self._compare(sender, message.subscriptions)
                self._compare_clocks(sender, message)
            case _:
                self._hear(sender, message)  # type: ignore[arg-type]  # the endpoint takes no other kinds

    def _hear(self, client: Address, message: Context) -> None:
        """A message of the client's scheme, by itself or along with an event."""
        self._take(client, message)
        self._compare(client, message.subscriptions)
        self._compare_clocks(client, message)

    def _take(self, client: Address, message: Context) -> None:
        """What a client says of itself."""
        self._counts.context += 1
        half = self._half(client)
        if half.contexts[client].subscriptions:
            self._overlaps.arrived(client, message.clock)
        for old in self._overlaps.halves_of(client):
            old.hear(client, message)
        before = half.contexts[client].measured
        # What it asked for in a scheme that it is about to leave is no question to the next one.
        if half.hear(client, message if message.clock >= self._clock_of(client) else _statement(message)):
            if isinstance(message, Joining):
                self._unreport(client)
            elif message.measured > before:  # else it is known already, from a message that it went along with
                self._reported.add(client)
                self._reports(self._host.now(), client, message.lat, message.lon)
            self._serve_waiting(client, half)
            self.watch(client, half.contexts[client])

    def _half(self, client: Address) -> BrokerHalf:
        """The scheme that a client belongs to; whoever is new belongs to the usual one."""
        half = self._pinned.instance_for(client) if client in self._pinned.members else self._proxy.add(client)
        if client not in half.contexts:
            half.adopt(client, ClientContext())
        return half

    def _pin(self, client: Address, scheme: MechanismSpec | None) -> None:
        if scheme is None or self._pinned.spec_for(client) == scheme:
            return
        try:
            self._engine.execute_partial(PINNED, scheme, [client])
        except TransitionFailed:
            self._refused += 1  # a scheme that this broker does not have: the client is served as others are
            return
        # Its first message says that it is pinned; but something else may have overtaken that.
        if client in self._proxy.members:
            self._proxy.instance_for(client).forget(client)
            self._overlaps.forget([client])
            self._proxy.remove(client)

    # Events

    def _publish(self, message: EventMessage) -> None:
        event, channel, now = event_in(message), message.channel, self._host.now()
        self._counts.events += 1
        self._counts.elsewhere += not message.local
        receivers = self._receivers(event, channel)
        if self._settings.missing_context != "ignore":
            unplaced = unplaced_receivers(event, self._unplaced())
            if self._settings.missing_context == "deliver":
                receivers = list(dict.fromkeys([*receivers, *unplaced]))
            else:
                served = set(receivers)  # by another of its subscriptions, or because the event has no place
                for client in unplaced:
                    if client not in served:
                        self._waiting.keep(client, event, channel, now)
        self._counts.notifications += len(receivers)
        self.published(event, receivers)
        self._endpoint.send_all(receivers, without_tag(message))

    def _receivers(self, event: Event, channel: str | None) -> list[str]:
        found = [client for half in self._present_halves() for client in half.receivers(event, channel)]
        if len(self._overlaps):
            found = [client for client in found if not self._overlaps.serve(client)]
            found += self._overlaps.receivers(event, channel)
        return found

    def _present_halves(self) -> Iterator[BrokerHalf]:
        yield from self._proxy.instances.values()
        for scheme, half in self._pinned.instances.items():
            if scheme != NULL:
                yield half

    def _unplaced(self) -> Iterator[tuple[str, ClientContext]]:
        for half in self._present_halves():
            for client, context in half.contexts.items():
                if not half.knows_place(client):
                    yield client, context

    def _serve_waiting(self, client: Address, half: BrokerHalf) -> None:
        if len(self._waiting) and half.knows_place(client):
            for kept in self._waiting.take(client, self._host.now()):
                if client in half.receivers(kept.event, kept.channel):
                    self._counts.notifications += 1
                    self._endpoint.send(client, event_message_of(kept.event))

    # Subscriptions

    def _compare(self, client: Address, held: int) -> None:
        """After an outage the broker may have forgotten a client, or a subscription may have been lost: then it asks.

        Not at the first difference: a subscription that was just made, or ended, may be overtaken by a report.
        """
        if len(self._half(client).contexts[client].subscriptions) == held:
            self._doubtful.discard(client)
        elif client in self._doubtful:
            self._doubtful.discard(client)
            self._endpoint.send(client, SubscribeAgain())
        else:
            self._doubtful.add(client)

    def _subscribe(self, client: Address, message: SubscriptionMessage) -> None:
        now = self._host.now()
        subscription = subscription_in(message, now)
        for half in (self._half(client), *self._overlaps.halves_of(client)):
            half.subscribe(client, subscription)
        self._subscriptions(now, client, message.id, "subscribed", message.topic, message.radius)

    def _unsubscribe(self, client: Address, subscription_id: str) -> None:
        held = self._held(client).get(subscription_id)
        if held is not None:
            for half in (self._half(client), *self._overlaps.halves_of(client)):
                half.unsubscribe(client, subscription_id)
            now = self._host.now()
            self._subscriptions(now, client, subscription_id, "unsubscribed", held.topic, radius_of(held))

    def _replace(self, client: Address, subscriptions: tuple[SubscriptionMessage, ...]) -> None:
        wanted, held = {message.id: message for message in subscriptions}, self._held(client)
        for name in [name for name in held if name not in wanted]:
            self._unsubscribe(client, name)
        # What the old scheme still knows is no news: events that are on their way were published after it was subscribed to.
        known = {
            name: each
            for old in self._overlaps.halves_of(client)
            for name, each in old.contexts[client].subscriptions.items()
        }
        for name, message in wanted.items():
            if name in held:
                continue
            if name in known and subscription_message_of(known[name]) == message:
                self._half(client).subscribe(client, known[name])
            else:
                self._subscribe(client, message)

    def _held(self, client: Address) -> dict[str, Subscription]:
        return self._half(client).contexts[client].subscriptions

    # Coming and going

    def _expire(self) -> None:
        now = self._host.now()
        self._overlaps.expire(now)
        self._waiting.expire(now)

    def _forget_silent(self) -> None:
        oldest = self._host.now() - round(self._settings.forget_after * MICROSECONDS)
        for client in [client for client, heard in self._heard.items() if heard < oldest]:
            self._forgotten += 1
            self._forget(client)

    def _forget(self, client: Address) -> None:
        if client not in self._heard:
            return
        # Whoever reads the records must learn that, from now on, nothing is known of the client.
        now = self._host.now()
        for name, held in self._held(client).items():
            self._subscriptions(now, client, name, "unsubscribed", held.topic, radius_of(held))
        self._unreport(client)
        self._half(client).forget(client)
        self._overlaps.forget([client])
        self._waiting.take(client, now)
        for proxy in (self._proxy, self._pinned):
            proxy.remove(client)
        self._coordinator.forget(client)
        for known in (self._heard, self._clocks, self._unable):
            known.pop(client, None)
        self._addressed -= {client}  # should it return, it has forgotten the plan
        self._doubtful.discard(client)

    def _unreport(self, client: Address) -> None:
        if client in self._reported:
            self._reported.discard(client)
            self._reports(self._host.now(), client, None, None)


def _statement(message: Context) -> Context:
    if not isinstance(message, AssignmentRequest):
        return message
    return ContextUpdate(message.measured, message.lat, message.lon, scheme=message.scheme, clock=message.clock)


def _unwatched(_client: Address, _context: ClientContext) -> None:
    """Nobody plans by place."""


def _unheard(_event: Event, _receivers: list[Address]) -> None:
    """Nobody learns from events."""
