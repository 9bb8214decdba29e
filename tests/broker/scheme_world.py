"""A broker's filter schemes and many clients' in one process, on virtual time.

Between them is what MQTT gives: connections that keep the order and break, sessions that go on, messages that are sent again until they
are acknowledged.  The broker has a disk, and nothing else survives when it is killed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from random import Random
from typing import Final

import msgspec

from nearcast.broker.schemes.live import LiveSchemes, SchemePlan
from nearcast.client.schemes import ClientSchemes
from nearcast.dissemination.scheme_state import ClientState
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox, SquareGrid
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Fix
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.timers import Life, SimulatedTimers
from nearcast.transition.specification import MechanismSpec

PLANE: Final = Plane(Point(49.8728, 8.6512))
SIDE: Final = 800.0
RADIUS: Final = 125.0
FASTEST: Final = 8.0
INTERVAL: Final = 1.0
"""Seconds between two fixes."""

SLOWEST: Final = 0.3
"""Seconds that a message takes, at most."""

_low, _high = PLANE.to_point(-SIDE / 2, -SIDE / 2), PLANE.to_point(SIDE / 2, SIDE / 2)
TERRITORY: Final = Territory(
    GeoBox(_low.lat, _low.lon, _high.lat, _high.lon),
    Zones(
        Zone(name, PLANE.to_point(x, y), radius)
        for name, x, y, radius in (("castle", -200, -150, 130), ("market", 120, 160, 150), ("park", 260, 200, 120))
    ),
)
of = MechanismSpec.of
RADIAL: Final = of("RADIAL")
CELLS: Final = 4
GRID: Final = of("GRID", factor=CELLS)
UNREPORTED: Final = 20.0
SPARING: Final = of("LPS", update="distance", distance=UNREPORTED)
EVERY_SCHEME: Final = (
    RADIAL,
    SPARING,
    of("STE"),
    GRID,
    of("EGRID", factor=10, cover="circle"),
    of("RGRID", factor=6),
    of("EGRID", cells="hexagon", resolution=10),
    # Without the extension a ring around each point is missed (docs/schemes.md).
    of("ATTRACT", extension=RADIUS),
    of("MULTI", extension=RADIUS),
)
PRIVATE: Final = of("EGRID", factor=8, private=True)


def instant(seconds: float) -> Instant:
    return round(seconds * MICROSECONDS)


class Connection:
    """Both directions in order, each message with a delay of its own, until it breaks."""

    def __init__(self, world: World) -> None:
        self.up = True
        self._world: Final = world
        self._last: dict[str, Instant] = {}

    def carry(self, direction: str, arrive: Callable[[], None]) -> None:
        world = self._world
        due = max(
            world.simulation.now() + instant(world.random.uniform(0.005, SLOWEST)), self._last.get(direction, 0) + 1
        )
        self._last[direction] = due
        world.simulation.at(due, lambda _: arrive() if self.up else None)


@dataclass
class Disk:
    """What outlives the broker."""

    memory: bytes | None = None
    regions: bytes | None = None
    states: dict[str, bytes] = field(default_factory=dict)
    named: dict[str, bool] = field(default_factory=dict)
    subscriptions: dict[str, dict[str, Subscription]] = field(default_factory=dict)
    events: set[str] = field(default_factory=set)
    outgoing: dict[str, dict[str, Event]] = field(default_factory=dict)
    """Events that a client has not acknowledged."""


@dataclass(frozen=True)
class Filtered:
    """An event when the broker filtered it: who must have been found, and who was."""

    event: Event
    time: Instant
    due: frozenset[str]
    found: tuple[str, ...]


class Server:
    """One life of the broker: what a real one does around its schemes."""

    def __init__(self, world: World, disk: Disk) -> None:
        self.world: Final = world
        self.disk: Final = disk
        self.life: Final = Life()
        self.connections: dict[str, Connection] = {}
        timers = SimulatedTimers(world.simulation, self.life)
        plan = SchemePlan(RADIAL, TERRITORY)
        self.schemes: Final = LiveSchemes(
            world.simulation, timers, plan, self._send, memory=disk.memory, regions=disk.regions, changed=self._changed
        )
        for number, client in enumerate(disk.subscriptions):
            # In whatever order sessions and schemes are read.
            steps = [partial(self.schemes.subscribe, client, each) for each in disk.subscriptions[client].values()]
            if client in disk.states:
                steps.insert(number % 2, partial(self._restore, client))
            for step in steps:
                step()
        self.schemes.start()
        self.write()

    def _restore(self, client: str) -> None:
        self.schemes.restore(client, self.disk.states[client], named=self.disk.named.get(client, False))

    def _changed(self) -> None:
        # As a journal does it: at the end of this turn of the loop.
        self.world.simulation.at(self.world.simulation.now(), lambda _: self.write() if self.life.alive else None)

    def write(self) -> None:
        changes = self.schemes.changes()
        self.disk.memory = changes.memory or self.disk.memory
        self.disk.regions = changes.regions or self.disk.regions
        self.disk.states |= changes.clients
        self.disk.named |= changes.named

    def _send(self, client: str, payload: bytes) -> None:
        person = self.world.people[client]
        self.connections[client].carry("down", lambda: person.schemes.receive(payload))

    def connected(self, client: str, connection: Connection, *, anew: bool) -> None:
        present = client in self.disk.subscriptions and not anew
        if not present:
            self.world.given_up.update((event, client) for event in self.disk.outgoing.get(client, ()))
            for kept in (self.disk.states, self.disk.named, self.disk.subscriptions, self.disk.outgoing):
                kept.pop(client, None)
            self.disk.subscriptions[client], self.disk.outgoing[client] = {}, {}
        self.connections[client] = connection
        self.schemes.connected(client, session_present=present)
        for event in list(self.disk.outgoing[client].values()):
            self._pass_on(client, event)

    def disconnected(self, client: str) -> None:
        self.connections.pop(client)
        self.schemes.disconnected(client)

    def received(self, client: str, payload: bytes) -> None:
        self.schemes.receive(client, payload)
        self.write()

    def subscribed(self, client: str, subscription: Subscription) -> None:
        self.schemes.subscribe(client, subscription)
        self.disk.subscriptions[client][subscription.id] = subscription
        self.write()

    def published(self, event: Event, channel: str | None) -> None:
        if event.id in self.disk.events:
            return  # sent again, because the acknowledgement was lost
        found = self.schemes.receivers(event, channel)
        self.world.note(event, found)
        self.disk.events.add(event.id)
        for client in found:
            self.disk.outgoing[client][event.id] = event
            self._pass_on(client, event)

    def _pass_on(self, client: str, event: Event) -> None:
        if client in self.connections:
            person = self.world.people[client]
            self.connections[client].carry("down", lambda: person.got(event))

    def served_by(self, client: str) -> MechanismSpec:
        state = msgspec.msgpack.decode(self.schemes.state_of(client), type=ClientState)
        return state.old[0].scheme if state.old else state.scheme


class Person:
    """A client: it walks, connects, subscribes to what is near, and publishes."""

    def __init__(self, world: World, name: str, pinned: MechanismSpec | None) -> None:
        self.world: Final = world
        self.name: Final = name
        self.random: Final = Random(f"{world.seed}/{name}")
        self.schemes: Final = ClientSchemes(
            name, world.simulation, SimulatedTimers(world.simulation, Life()), self._say, pinned=pinned
        )
        self.subscription: Final = Subscription("news/#", area=Circle(RADIUS), id="near", no_local=True)
        self.fixes: list[Fix] = []
        self.connection: Connection | None = None
        self.cut_off: Instant | None = None
        """When the connection before this one was lost."""

        self.back: Instant = 0
        self.unacknowledged: dict[int, Callable[[], None]] = {}
        self.received: Counter[str] = Counter()
        self._number = 0
        self._way = (self._somewhere(), self._somewhere(), 0, 1)
        self._turn()

    # Walking

    def _somewhere(self) -> tuple[float, float]:
        return self.random.uniform(-SIDE / 2, SIDE / 2), self.random.uniform(-SIDE / 2, SIDE / 2)

    def _turn(self) -> None:
        now, here, there = self.world.simulation.now(), self._way[1], self._somewhere()
        seconds = math.dist(here, there) / self.random.uniform(1.0, FASTEST)
        self._way = here, there, now, now + instant(seconds)
        self.world.simulation.at(self._way[3], lambda _: self._turn())

    def fix(self) -> Fix:
        (x, y), (to_x, to_y), start, end = self._way
        now, seconds = self.world.simulation.now(), (end - start) / MICROSECONDS
        share = (now - start) / (end - start)
        heading = math.degrees(math.atan2(to_x - x, to_y - y)) % 360.0
        position = PLANE.to_point(x + share * (to_x - x), y + share * (to_y - y))
        return Fix(now, position, 1.0, math.dist((x, y), (to_x, to_y)) / seconds, heading)

    def look(self) -> None:
        fix = self.fix()
        self.fixes.append(fix)
        self.schemes.moved(fix)
        self.world.after(INTERVAL, self.look)

    # Talking

    def join(self) -> None:
        self.look()
        self.connect()

    def connect(self, *, anew: bool = False) -> None:
        server = self.world.server
        if server is None or self.connection is not None:
            self.world.after(0.2, self.connect)
            return
        connection = self.connection = Connection(self.world)
        self.back = self.world.simulation.now()
        connection.carry("up", lambda: server.connected(self.name, connection, anew=anew))
        for send in list(self.unacknowledged.values()):
            send()
        if anew or self.name not in server.disk.subscriptions:
            self.cut_off = None
            self.schemes.interested(self.subscription)
            self._reliably(lambda now: now.subscribed(self.name, self.subscription))

    def disconnect(self) -> None:
        if self.connection is not None:
            self.connection.up = False
            self.connection = None
            if self._settled(self.world.simulation.now()):
                self.cut_off = self.world.simulation.now()
            self.schemes.disconnected()
            server = self.world.server
            if server is not None and self.name in server.connections:
                server.disconnected(self.name)

    def _settled(self, time: Instant) -> bool:
        """Whether everything was said by then that there is to say on a new connection."""
        return time >= self.back + instant(INTERVAL + 4 * SLOWEST)

    def _say(self, payload: bytes) -> None:
        self._reliably(lambda server: server.received(self.name, payload))

    def _reliably(self, act: Callable[[Server], None]) -> None:
        self._number += 1
        number = self._number

        def send() -> None:
            connection = self.connection
            if connection is not None:
                connection.carry("up", arrive)

        def arrive() -> None:
            server, connection = self.world.server, self.connection
            if server is not None and connection is not None:
                act(server)
                connection.carry("down", partial(self._acknowledged, number))

        self.unacknowledged[number] = send
        send()

    def _acknowledged(self, number: int) -> None:
        self.unacknowledged.pop(number, None)

    def publish(self, name: str) -> None:
        here = self.fix().position
        channel, place = self.schemes.channel_for(here) if self.schemes.ready else (None, here)
        event = Event(name, "news/city", self.world.simulation.now(), publisher=self.name, place=place)
        self._reliably(lambda server: server.published(event, channel))

    def got(self, event: Event) -> None:
        server = self.world.server
        if server is not None:
            server.disk.outgoing[self.name].pop(event.id)
        self.received[event.id] += 1

    # What must not be missed

    def surely_near(self, place: Point) -> bool:
        """Whether it was near, in the sense of its scheme, at every fix that the broker may have filtered by."""
        now = self.world.simulation.now()
        oldest = now - instant(INTERVAL + 2 * SLOWEST)
        if self.connection is None or not self._settled(now):
            if self.cut_off is None:
                return False  # it has just come
            oldest = self.cut_off - instant(INTERVAL + 2 * SLOWEST)
        fixes = [fix.position for fix in takewhile(lambda fix: fix.time >= oldest, reversed(self.fixes))]
        if any(distance(position, place) > RADIUS for position in fixes):
            return False
        assert self.world.server is not None
        served_by = self.world.server.served_by(self.name)
        if served_by == SPARING:  # who has not walked so far since its last report has not reported
            return all(distance(position, place) <= RADIUS - UNREPORTED for position in fixes)
        if served_by == GRID:  # what happens in the own cell, and nothing else (BYPASS.KOM 4.2.4)
            cell = SquareGrid(TERRITORY.box, CELLS)
            return all(cell.cell_of(position) == cell.cell_of(place) for position in fixes)
        return True


class World:
    def __init__(self, seed: int, people: int, pinned: int = 0) -> None:
        self.seed: Final = seed
        self.random: Final = Random(seed)
        self.simulation: Final = Simulation(seed)
        self.disk: Final = Disk()
        self.filtered: list[Filtered] = []
        self.people: Final[dict[str, Person]] = {}
        for number in range(people):
            name = f"c{number}"
            self.people[name] = Person(self, name, PRIVATE if number < pinned else None)
        self.server: Server | None = Server(self, self.disk)
        for person in self.people.values():
            self.after(self.random.uniform(0.0, 1.0), person.join)
        self.given_up: Final[set[tuple[str, str]]] = set()
        """Events and clients that had not got them when their session ended."""

        self.quiet = False
        self._published = 0

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.simulation.at(self.simulation.now() + instant(seconds), lambda _: act())

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + instant(seconds))

    @property
    def schemes(self) -> LiveSchemes:
        assert self.server is not None
        return self.server.schemes

    def chat(self, rate: float) -> None:
        """Somebody publishes, and again."""
        if self.quiet:
            return
        self._published += 1
        self.random.choice(list(self.people.values())).publish(f"e{self._published}")
        self.after(self.random.expovariate(rate), lambda: self.chat(rate))

    def kill(self) -> None:
        """The broker is gone, with all that it knew, and every connection with it."""
        server, self.server = self.server, None
        assert server is not None
        server.life.alive = False
        for person in self.people.values():
            if person.connection is not None:
                person.disconnect()
                self.after(self.random.uniform(0.5, 2.0), person.connect)

    def restart(self) -> None:
        self.server = Server(self, self.disk)

    def note(self, event: Event, found: list[str]) -> None:
        assert self.server is not None
        assert event.place is not None
        due = frozenset(
            name
            for name, person in self.people.items()
            if name != event.publisher and self.server.disk.subscriptions.get(name) and person.surely_near(event.place)
        )
        self.filtered.append(Filtered(event, self.simulation.now(), due, tuple(found)))
