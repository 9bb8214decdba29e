"""Broker halves without a network, and what they should answer, said as plainly as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st
from tests.filtering.places import METRES_PER_DEGREE, town

from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.broker_half import BrokerHalf, Cloud, Tally
from nearcast.filtering.context import NEVER, ClientContext
from nearcast.filtering.envelope import Envelope
from nearcast.filtering.messages import Assignment, AssignmentRequest, ContextUpdate, FromClient, Joining, ToClient
from nearcast.filtering.parameters import Attract, Egrid, Grid, Multi, Ste
from nearcast.filtering.registry import broker_halves, scheme_of
from nearcast.filtering.scheme import Territory
from nearcast.model.acceptance import accepted, wanted
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription
from nearcast.transition.specification import MechanismSpec
from nearcast.transition.state import carry_over

WIDTH = 1300.0
WORLD = town(WIDTH)
CENTER = WORLD.center
COSINE = (WORLD.north - WORLD.south) / (WORLD.east - WORLD.west)


def place(x: float, y: float) -> Point:
    """So many metres east and north of the middle of the world, nearly."""
    return Point(CENTER.lat + y / METRES_PER_DEGREE, CENTER.lon + x / METRES_PER_DEGREE / COSINE)


ZONES = Zones(
    [
        Zone("fair", place(-300, 0), 250.0),
        Zone("market", place(0, 100), 150.0),
        Zone("station", place(450, -400), 100.0),
    ]
)
TERRITORY = Territory(WORLD, ZONES)
of = MechanismSpec.of

SCHEMES = (
    of("RADIAL"),
    of("STE", alpha=0.5),
    of("GRID"),
    of("GRID", cells="hexagon"),
    of("EGRID", margin=20.0),
    of("EGRID", cover="circle", factor=10),
    of("EGRID", cells="hexagon"),
    of("ATTRACT", extension=50.0),
    of("ATTRACT", catch_all=False),
    of("MULTI"),
)
CHANNEL_SCHEMES = tuple(spec for spec in SCHEMES if spec.name in ("GRID", "EGRID", "ATTRACT"))


class Ears:
    """What broker halves say, and how much they work."""

    def __init__(self, territory: Territory = TERRITORY) -> None:
        self.said: list[tuple[str, Assignment]] = []
        self.tally = Tally()
        self.make: Callable[[MechanismSpec], BrokerHalf] = broker_halves(territory, Cloud(self._say, self.tally))

    def _say(self, client: str, message: ToClient) -> None:
        self.said.append((client, message))


@dataclass(slots=True)
class Known:
    """What a broker must know of a client: the last word on everything."""

    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    measured: int = NEVER
    position: Point | None = None
    speed: float = 0.0
    heading: float | None = None
    joined: tuple[str, ...] = ()

    def take(self, message: FromClient) -> None:
        if message.measured < self.measured:
            return
        self.measured = message.measured
        if isinstance(message, Joining):
            self.position, self.joined = None, message.channels
        else:
            self.position, self.speed, self.heading = Point(message.lat, message.lon), 0.0, None
            if isinstance(message, ContextUpdate):
                self.speed, self.heading = message.speed, message.heading

    @property
    def radius(self) -> float:
        return max((s.area.bounding_radius() for s in self.subscriptions.values() if s.area), default=0.0)


World = dict[str, Known]


def expected(spec: MechanismSpec, world: World, event: Event) -> set[str]:
    """The receivers, by asking every client for every subscription."""
    return {name for name, known in world.items() if _receives(spec, name, known, event)}


def _receives(spec: MechanismSpec, name: str, known: Known, event: Event) -> bool:
    scheme, at = scheme_of(spec), event.place
    if isinstance(scheme, Ste):
        return any(_ahead(scheme, known, held, event, name) for held in known.subscriptions.values())
    here = channels_of(spec, known)
    if isinstance(scheme, Multi) and not here:
        return any(wanted(held, event, name, known.position) for held in known.subscriptions.values())
    if here is None:
        return any(wanted(held, event, name, known.position) for held in known.subscriptions.values())
    meets = at is None or bool(set(here) & set(channels_at(spec, at)))
    return any(accepted(held, event, name) and (held.area is None or meets) for held in known.subscriptions.values())


def _ahead(scheme: Ste, known: Known, held: Subscription, event: Event, name: str) -> bool:
    if not isinstance(held.area, Circle) or event.place is None or known.position is None:
        return wanted(held, event, name, known.position)
    envelope = Envelope(known.position, held.area.radius, known.heading, known.speed, scheme.alpha, scheme.angle)
    return accepted(held, event, name) and envelope.covers(event.place)


def channels_of(spec: MechanismSpec, known: Known) -> tuple[str, ...] | None:
    """Of a client; none in a scheme without channels."""
    scheme = scheme_of(spec)
    if not isinstance(scheme, Grid | Attract | Multi):
        return None
    if known.position is None:
        return () if isinstance(scheme, Multi) else tuple(filter(_is_known(spec), known.joined))
    if isinstance(scheme, Egrid):
        cells = scheme.tessellation(TERRITORY)
        return cells.around(known.position, known.radius + scheme.margin, scheme.cover)
    return channels_at(spec, known.position) if isinstance(scheme, Grid) else _zones(spec, known.position, 0.0)


def channels_at(spec: MechanismSpec, at: Point) -> tuple[str, ...]:
    scheme = scheme_of(spec)
    if isinstance(scheme, Grid):
        return (scheme.tessellation(TERRITORY).cell_of(at),)
    assert isinstance(scheme, Attract | Multi)
    return _zones(spec, at, scheme.extension)


def _zones(spec: MechanismSpec, at: Point, around: float) -> tuple[str, ...]:
    """Points within so many metres; and elsewhere, unless it is farther than that inside a point."""
    scheme = scheme_of(spec)
    away = {zone.name: distance(zone.center, at) - zone.radius for zone in ZONES}
    inside = any(metres <= -around for metres in away.values())
    elsewhere = ("elsewhere",) if isinstance(scheme, Attract) and scheme.catch_all and not inside else ()
    return (*(name for name, metres in away.items() if metres <= around), *elsewhere)


def _is_known(spec: MechanismSpec) -> Callable[[str], bool]:
    scheme = scheme_of(spec)
    if isinstance(scheme, Grid):
        return scheme.tessellation(TERRITORY).__contains__
    assert isinstance(scheme, Attract)
    return {zone.name for zone in ZONES}.union({"elsewhere"} if scheme.catch_all else ()).__contains__


# Random worlds

metres = st.integers(-750, 750)
places = st.builds(place, metres, metres)
clients = st.sampled_from(["ada", "bob", "cem", "dan"])
radii = st.none() | st.sampled_from([0.0, 30.0, 125.0, 400.0])
subscriptions = st.builds(
    lambda topic, where, radius, name, no_local: Subscription(
        topic, where, None if radius is None else Circle(radius), id=name, no_local=no_local
    ),
    st.sampled_from(["news", "news/+", "#", "+/local", "$SYS/load", "$SYS/#"]),
    st.sampled_from([None, "severity >= 3", "severity < 3"]),
    radii,
    st.sampled_from(["a", "b"]),
    st.booleans(),
)
cells = st.lists(
    places.map(lambda at: channels_at(of("GRID"), at)[0]) | st.sampled_from(["fair", "elsewhere", "10:1,1", "no such"]),
    unique=True,
    max_size=3,
).map(lambda names: tuple(sorted(names)))
messages = st.one_of(
    st.builds(
        lambda at, speed, heading: ContextUpdate(0, at.lat, at.lon, speed, heading),
        places,
        st.sampled_from([0.0, 1.5, 10.0]),
        st.none() | st.integers(0, 359).map(float),
    ),
    st.builds(lambda at: AssignmentRequest(0, at.lat, at.lon), places),
    st.builds(lambda names: Joining(0, names), cells),
)
Step = tuple[str, str, object]
steps = st.one_of(
    st.tuples(st.just("subscribe"), clients, subscriptions),
    st.tuples(st.just("unsubscribe"), clients, st.sampled_from(["a", "b"])),
    st.tuples(st.just("hear"), clients, messages),
    st.tuples(st.just("old news"), clients, messages),
    st.tuples(st.just("forget"), clients, st.none()),
)
events = st.builds(
    lambda topic, severity, at, publisher: Event("e", topic, 5, {"severity": severity}, publisher=publisher, place=at),
    st.sampled_from(["news", "news/local", "sport/local", "$SYS/load"]),
    st.integers(1, 5),
    st.none() | places,
    st.none() | clients,
)


def play(half: BrokerHalf, world: World, script: Iterable[Step], start: int = 0) -> None:
    """Do the same to a half and to the plain world; ``start`` is the time of the first step."""
    for now, (what, name, thing) in enumerate(script, start):
        if what == "forget":
            world.pop(name, None)
            half.forget(name)
            continue
        if name not in world:
            world[name] = Known()
            half.adopt(name, ClientContext())
        known = world[name]
        if what == "subscribe":
            assert isinstance(thing, Subscription)
            known.subscriptions[thing.id] = thing
            half.subscribe(name, thing)
        elif what == "unsubscribe":
            assert isinstance(thing, str)
            known.subscriptions.pop(thing, None)
            half.unsubscribe(name, thing)
        else:
            assert isinstance(thing, ContextUpdate | AssignmentRequest | Joining)
            message = msgspec.structs.replace(thing, measured=now if what == "hear" else known.measured - 1)
            assert half.hear(name, message) is (message.measured >= known.measured)
            known.take(message)


def transferred(half: BrokerHalf, to: BrokerHalf) -> BrokerHalf:
    """What a transition does: the declared state, then the start."""
    carry_over(half, to)
    to.start_mechanism()
    return to
