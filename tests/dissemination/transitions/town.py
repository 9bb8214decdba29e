"""A run of a story: a broker, its clients, and what can be seen of them from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, TypeGuard

from tests.dissemination.transitions.network import JitterNetwork
from tests.dissemination.transitions.story import PLANE, Publication, Story

from nearcast.dissemination.carrier import CarriedEvents
from nearcast.dissemination.cloud_broker import BrokerSettings, CloudBroker, Memory
from nearcast.dissemination.cloud_client import ClientSettings, CloudClient
from nearcast.dissemination.cloud_messages import PROXY, AllSubscriptions, Subscribe
from nearcast.dissemination.publisher import LocationRequest
from nearcast.dissemination.wire import EventMessage
from nearcast.filtering.client_half import ClientHalf
from nearcast.filtering.messages import AssignmentRequest, ClientMessage, ContextUpdate, Joining
from nearcast.model.event import Event
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Cancellable
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.mobility.waypoint import RandomWaypoint
from nearcast.runtime.simulation.network import Network
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import MechanismSpec

BROKER: Final = "broker"
Pair = tuple[str, Address]
"""An event and a client."""


def instant(seconds: float) -> Instant:
    return round(seconds * MICROSECONDS)


@dataclass(frozen=True)
class Plan:
    """The broker is asked to change to that scheme; ``share``: with some of the clients, drawn at random."""

    seconds: float
    scheme: MechanismSpec
    share: float | None = None


@dataclass(frozen=True)
class Fault:
    seconds: float
    host: str
    what: Literal["fail", "leave", "join"]


@dataclass(frozen=True)
class Options:
    """How a run is set up; the defaults are those that lose nothing."""

    overlap: bool = True
    grace: float = 60.0
    state_transfer: bool = True
    discard: bool = False
    confirms: bool = True
    acknowledged: bool = True
    resubscribes: bool = False
    keep_alive: float = 5.0
    lossy: Collection[str] = ()
    loss: float = 0.0
    latency: tuple[float, float] = (0.02, 0.4)
    pinned: dict[str, MechanismSpec] = field(default_factory=dict)
    more_at_broker: Callable[[], Sequence[Component]] = tuple
    broker: type[CloudBroker] = CloudBroker


DOCUMENTS: Final = Options(overlap=False, discard=True, confirms=False, acknowledged=False)
"""Transitions as the documents have them."""


@dataclass
class Outcome:
    """What was seen."""

    filtered: dict[str, Instant] = field(default_factory=dict)
    """When each event reached the broker."""

    copies: Counter[Pair] = field(default_factory=Counter)
    """What the broker sent: who was notified, before any last check."""

    delivered: Counter[tuple[str, Address, str]] = field(default_factory=Counter)
    """What applications were told: event, client, subscription."""

    first_words: dict[Address, list[tuple[Instant, int]]] = field(default_factory=dict)
    """When each client first spoke of its whereabouts under each plan (its Lamport time)."""

    words_because_of_plans: list[tuple[Instant, Address]] = field(default_factory=list)
    """These, and whatever a client said until it may have had an answer: the longest round trip."""

    arrivals: dict[Address, list[tuple[Instant, int]]] = field(default_factory=dict)
    """When such a word first reached the broker."""

    clocks: dict[Address, list[int]] = field(default_factory=dict)
    """The tags of all that a client said, in its order."""

    plans: list[tuple[int, MechanismSpec, frozenset[Address] | None]] = field(default_factory=list)
    """Lamport time, scheme, and who was affected (none: all)."""

    schemes: dict[Address, MechanismSpec] = field(default_factory=dict)
    """What each client runs in the end."""

    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    said: list[tuple[Instant, Address, Message]] = field(default_factory=list)
    """All that reached the broker."""

    told: list[tuple[Instant, Address, Message]] = field(default_factory=list)
    """All that the broker sent."""

    @property
    def notified(self) -> set[Pair]:
        return set(self.copies)

    def duplicates(self) -> list[Pair]:
        """Sent twice to one client, or delivered twice to an application."""
        return [pair for pair, number in self.copies.items() if number > 1] + [
            (event, client) for (event, client, _), number in self.delivered.items() if number > 1
        ]


class Application(Component):
    """Subscribes when it starts; publishes when the story says so."""

    def __init__(self, story: Story, client: int, told: Callable[[str, str], None]) -> None:
        self._story: Final = story
        self._client: Final = client
        self._told: Final = told
        self._held: Final[list[Cancellable]] = []
        self.host: Host
        self.events: CarriedEvents

    def start(self, host: Host) -> None:
        self.host, self.events = host, host.component(CarriedEvents)
        for subscription, request in self._story.interests(self._client):
            self._held.append(self._subscribe(subscription, request))
        for seconds, change in self._story.changes_of_mind(self._client):
            if host.now() < instant(seconds):
                host.timers.after(seconds - host.now() / MICROSECONDS, partial(self._change, change))

    def _change(self, wanted: Subscription | None) -> None:
        if wanted is not None:
            self._subscribe(wanted, LocationRequest(self._story.interval) if wanted.area else None)
        else:
            self._held[0].cancel()

    def _subscribe(self, wanted: Subscription, request: LocationRequest | None) -> Cancellable:
        return self.events.subscribe(wanted, lambda event: self._told(event.id, wanted.id), request)

    def publish(self, said: Publication) -> None:
        local = said.kind == "local"
        assert self.host.sensor is not None
        place = self.host.sensor.position() if local else said.place
        event = Event(
            said.id,
            said.topic,
            self.host.now(),
            {"severity": said.severity},
            publisher=self.host.name,
            place=None if said.kind == "unplaced" else place,
        )
        self.events.publish(event, local=local)


class Town:
    """The hosts of one run."""

    def __init__(
        self,
        story: Story,
        scheme: MechanismSpec,
        plans: Sequence[Plan] = (),
        options: Options | None = None,
        *,
        faults: Sequence[Fault] = (),
        touches: Sequence[tuple[Instant, Address]] = (),
        forgets_plans: bool = False,
    ) -> None:
        self.story: Final = story
        self.options: Final = options or Options()
        self.outcome: Final = Outcome(
            rows={name: [] for name in ("transitions", "reports", "notifications", "clients")}
        )
        self._first: Final = scheme
        self._memory: Final = None if forgets_plans else Memory()
        self._territory: Final = story.territory(discard=self.options.discard)
        self._moment = 0
        observers = Observers()
        for table, rows in self.outcome.rows.items():
            observers.record(table, lambda *row, keep=rows.append: keep(row))
        self.simulation: Final = Simulation(story.seed, observers=observers)
        self.world: Final = World(self.simulation, PLANE, story.clients + 1)
        self.network: Final = JitterNetwork(
            self.simulation,
            story.seed,
            latency=self.options.latency,
            lossy=self.options.lossy,
            loss=self.options.loss,
            sent=self._sent,
            received=self._received,
        )
        self.local: Final = self._local_networks()
        self.names: Final = [f"c{number}" for number in range(story.clients)]
        walk = RandomWaypoint(story.bounds, Uniform(1.0, max(1.0, story.speed)), Uniform(0.0, 4.0))
        away = {fault.host for fault in faults if fault.what == "join"} - {
            fault.host for fault in faults if fault.what != "join"
        }
        for number, name in enumerate(self.names):
            self.world.add(name, self._client(number, name), [self.network, *self.local])
            if story.speed:
                self.world.motion.move(number, walk, story.random("walk", number))
            else:
                self.world.motion.put(number, *story.place(number))
        self.world.add(BROKER, self._broker, [self.network]).join()
        for number, name in enumerate(self.names):
            if name not in away:
                at = instant(story.random("join", number).uniform(0.0, story.interval))
                self.simulation.at(at, lambda it: it.join(), self.world.hosts[name])
        for fault in faults:
            self.simulation.at(instant(fault.seconds), self._strike, fault)
        for publication in story.publications:
            self.simulation.at(instant(publication.seconds), self._publish, publication)
        for plan in plans:
            self.simulation.at(instant(plan.seconds), self._transition, plan)
        for time, client in touches:
            # After whatever else happens at that instant: a new fix is told, not the one before.
            self.simulation.at(time, partial(self.simulation.at, time, self._touch), client)

    def run(self) -> Outcome:
        self.simulation.run(instant(self.story.seconds + 3.0))
        for name in self.names:
            host = self.world.hosts[name].host
            if host is not None:
                self.outcome.schemes[name] = _proxy(host).spec
        return self.outcome

    @property
    def broker(self) -> CloudBroker:
        host = self.world.hosts[BROKER].host
        assert host is not None
        return host.component(CloudBroker)

    # What is set up

    def _broker(self) -> list[Component]:
        options = self.options
        settings = BrokerSettings(
            self._first, state_transfer=options.state_transfer, overlap=options.overlap, grace=options.grace
        )
        return [
            HostEngine(),
            TransitionCoordinator(acknowledged=options.acknowledged),
            options.broker(self._territory, settings, self._memory),
            *options.more_at_broker(),
        ]

    def _client(self, number: int, name: str) -> Callable[[], list[Component]]:
        options = self.options

        def told(event: str, subscription: str) -> None:
            self.outcome.delivered[event, name, subscription] += 1

        def build() -> list[Component]:
            settings = ClientSettings(
                options.pinned.get(name, self._first),
                pinned=name in options.pinned,
                confirms=options.confirms,
                resubscribes=options.resubscribes,
                keep_alive=options.keep_alive,
            )
            carrier = CloudClient(BROKER, self._territory, settings)
            agent = TransitionAgent(acknowledge=options.acknowledged)
            application = Application(self.story, number, told)
            return [HostEngine(), agent, *self._carried(carrier), application]

        return build

    def _carried(self, cloud: CloudClient) -> list[Component]:
        """The service, and what it uses."""
        return [CarriedEvents([cloud]), cloud]

    def _local_networks(self) -> list[Network]:
        """Those that clients have beside the cellular one."""
        return []

    # What happens

    def _publish(self, publication: Publication) -> None:
        host = self.world.hosts[self.names[publication.client]].host
        if host is not None:
            host.component(Application).publish(publication)

    def _transition(self, plan: Plan) -> None:
        host: SimulatedHost = self.world.hosts[BROKER]
        if host.host is None:
            return
        coordinator, clients = host.host.component(TransitionCoordinator), None
        if plan.share is not None:
            known = sorted(self.broker.clients)
            random = self.story.random("share", plan.seconds)
            clients = frozenset(random.sample(known, round(plan.share * len(known))))
        before = coordinator.clock
        self.broker.transition(plan.scheme, None if clients is None else sorted(clients))
        if coordinator.clock > before:
            self.outcome.plans.append((coordinator.clock, plan.scheme, clients))

    def _strike(self, fault: Fault) -> None:
        if fault.what != "join":
            # Whoever returns has forgotten all plans.
            for log in (self.outcome.first_words, self.outcome.clocks):
                log.pop(fault.host, None)
        getattr(self.world.hosts[fault.host], fault.what)()

    def _touch(self, client: Address) -> None:
        """The client says once more what it knows of itself, as a client does that has come to another scheme."""
        host = self.world.hosts[client].host
        if host is not None:
            context = _proxy(host).active.piggyback()
            if context is not None:
                host.component(CloudClient).schemes.say_context(context)

    # What is seen

    def _sent(self, now: Instant, sender: Address, receiver: Address, message: Message) -> None:
        if sender == BROKER:
            self.outcome.told.append((now, receiver, message))
            if isinstance(message, EventMessage):
                self.outcome.copies[message.id, receiver] += 1
        elif _speaks_of_itself(message):
            words = _note(self.outcome.first_words, now, sender, message.clock)
            if message.clock and now - words[-1][0] <= instant(2 * self.options.latency[1]):
                self.outcome.words_because_of_plans.append((now, sender))
        if isinstance(message, ClientMessage):
            self.outcome.clocks.setdefault(sender, []).append(message.clock)

    def _received(self, now: Instant, sender: Address, receiver: Address, message: Message) -> None:
        if receiver == BROKER:
            self.outcome.said.append((now, sender, message))
            if isinstance(message, EventMessage):
                self.outcome.filtered[message.id] = now
            elif _speaks_of_itself(message):
                _note(self.outcome.arrivals, now, sender, message.clock)


def _speaks_of_itself(message: Message) -> TypeGuard[ClientMessage]:
    return isinstance(message, ContextUpdate | AssignmentRequest | Joining) or (
        isinstance(message, Subscribe | AllSubscriptions) and message.context is not None
    )


def _note(
    log: dict[Address, list[tuple[Instant, int]]], now: Instant, client: Address, clock: int
) -> list[tuple[Instant, int]]:
    known = log.setdefault(client, [])
    if not known or clock > known[-1][1]:
        known.append((now, clock))
    return known


def _proxy(host: Host) -> Proxy[ClientHalf]:
    found: Any = host.component(HostEngine).engine.proxy(PROXY)
    assert isinstance(found, Proxy)
    return found


def run(
    story: Story, scheme: MechanismSpec, plans: Sequence[Plan] = (), options: Options | None = None, **more: Any
) -> Outcome:
    return Town(story, scheme, plans, options, **more).run()


def always(
    story: Story, scheme: MechanismSpec, switched: Outcome | None, options: Options | None = None, **more: Any
) -> Outcome:
    """The run that always had that scheme, in which clients speak up at the moments at which they did in ``switched``."""
    touches = switched.words_because_of_plans if switched else ()
    return run(story, scheme, (), options, touches=touches, **more)
