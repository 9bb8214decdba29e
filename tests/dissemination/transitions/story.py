"""What happens in a run, whatever filter scheme is at work in it: who walks where, wants what, and publishes."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final, Literal

from nearcast.dissemination.publisher import LocationRequest
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.area import Circle
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.runtime.simulation.plane import Bounds, Plane

HOME: Final = Point(49.8728, 8.6512)
PLANE: Final = Plane(HOME)
RADIUS: Final = 125.0
CITY_RADII: Final = (60.0, 200.0)
Kind = Literal["local", "elsewhere", "unplaced"]


@dataclass(frozen=True)
class Publication:
    id: str
    seconds: float
    client: int
    kind: Kind
    place: Point
    """Of what is published to elsewhere."""

    topic: str
    severity: int


@dataclass(frozen=True)
class Story:
    """All of it follows from these numbers."""

    seed: int
    clients: int = 14
    seconds: float = 40.0
    side: float = 700.0
    interval: float = 2.0
    """Seconds between two fixes.  Longer than a round trip, as everywhere in the documents."""

    rate: float = 6.0
    """Events per second."""

    busy: tuple[float, ...] = ()
    """From a moment before until two seconds after these, ten times as much is published: that is when plans are carried out."""

    speed: float = 6.0
    """Metres per second at most; 0: everybody stands."""

    first_event: float = 6.0
    publications: tuple[Publication, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "publications", tuple(self._publications()))

    def random(self, *purpose: object) -> Random:
        return Random(repr((self.seed, *purpose)))

    @property
    def bounds(self) -> Bounds:
        return Bounds.around(self.side, self.side)

    def territory(self, *, discard: bool = False) -> Territory:
        half = self.side / 2
        south_west, north_east = PLANE.to_point(-half, -half), PLANE.to_point(half, half)
        box = GeoBox(south_west.lat, south_west.lon, north_east.lat, north_east.lon)
        return Territory(box, self.zones(), "discard" if discard else "place")

    def zones(self) -> Zones:
        """Some apart, two that overlap."""
        unit = self.side / 10
        places = {"castle": (-3, -2, 1.2), "market": (1.5, 2, 1.5), "park": (2.8, 2.6, 1.2), "station": (2, -3, 0.9)}
        return Zones(
            Zone(name, PLANE.to_point(x * unit, y * unit), radius * unit) for name, (x, y, radius) in places.items()
        )

    def place(self, client: int) -> tuple[float, float]:
        """Where it stands, if it stands."""
        random, half = self.random("place", client), self.side / 2
        return random.uniform(-half, half), random.uniform(-half, half)

    def interests(self, client: int) -> list[tuple[Subscription, LocationRequest | None]]:
        """Mostly what is near; some want less, some want everything, some several things."""
        random = self.random("interests", client)
        every = LocationRequest(self.interval)
        near = Subscription("news/#", area=Circle(RADIUS), id="near", no_local=random.random() < 0.5)
        bad = Subscription("news/#", "severity >= 3", Circle(2 * RADIUS), id="bad")
        sport = Subscription("+/sport", id="sport")
        held: list[tuple[Subscription, LocationRequest | None]]
        match random.randrange(6):
            case 0:
                held = [(bad, every)]
            case 1:
                held = [(near, every), (sport, None)]
            case 2:
                held = [(sport, None)] if random.random() < 0.5 else [(near, every), (bad, every)]
            case 3:
                held = [(sport, None), (near, every)]
            case _:
                held = [(near, every)]
        return held

    def changes_of_mind(self, client: int) -> list[tuple[float, Subscription | None]]:
        """When some of them subscribe to something else as well, or (none) give up what they subscribed to first.

        Whoever wants an area wants one all along: a broker does not go on with an old scheme for clients to whom all are the same,
        so one that changes that in the very moment of a transition is served by the new scheme before it has heard of it.
        """
        random = self.random("changes", client)
        areas = [held.area for held, _ in self.interests(client)]
        made: list[tuple[float, Subscription | None]] = []
        if random.random() < 0.3:
            area = random.choice((*map(Circle, CITY_RADII), None)) if any(areas) else None
            made.append((random.uniform(8.0, 20.0), Subscription("news/city", area=area, id="city")))
        if random.random() < 0.3 and any(areas[1:]):
            made.append((random.uniform(8.0, 20.0), None))
        return made

    def _times(self, random: Random) -> list[float]:
        end = self.seconds - 1
        usual = [random.uniform(self.first_event, end) for _ in range(round(self.rate * (end - self.first_event)))]
        return usual + [
            random.uniform(moment - 0.2, min(moment + 2.0, end))
            for moment in self.busy
            for _ in range(round(20 * self.rate))
        ]

    def _publications(self) -> list[Publication]:
        random, zones = self.random("publications"), list(self.zones())
        times = self._times(random)
        made = []
        for count, seconds in enumerate(times):
            kind: Kind = random.choices(("local", "elsewhere", "unplaced"), (5, 4, 0.3))[0]
            if random.random() < 0.5:
                zone = random.choice(zones)
                x, y = PLANE.to_xy(zone.center)
                spread = 2 * zone.radius
                place = PLANE.to_point(x + random.uniform(-spread, spread), y + random.uniform(-spread, spread))
            else:
                half = self.side / 2
                place = PLANE.to_point(random.uniform(-half, half), random.uniform(-half, half))
            made.append(
                Publication(
                    f"e{count}",
                    seconds,
                    random.randrange(self.clients),
                    kind,
                    place,
                    random.choice(("news/city", "news/sport")),
                    random.randrange(1, 6),
                )
            )
        return made
