"""The intersection of North Circular Road and Prussia Street, with its traffic light and the vehicles of a day (STEAM 5.2).

The light tells its status for each approach, once a second.  Vehicles drive along their lane through the middle; that lanes lie
beside each other is not in the paper's numbers.  In which part of a second they come is spread evenly, so that a part of
the day says as much as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.event_type import EventType
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import ProximitySettings
from nearcast.runtime.host import Component, Host
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.mobility.road import Lane, Passage, Passing, vehicles
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import SimulatedHost, World
from nearcast.transition.engine import HostEngine

RANGE: Final = 200.0
DAY: Final = 86_400.0
SPEED: Final = 25 * 0.44704
"""25 mph in metres per second."""

COUNTS: Final = {
    "1.1": 6652, "1.2": 3320, "1.3": 3728, "2.1": 3038, "2.2": 1383, "2.3": 2802, "2.4": 1135,
}  # fmt: skip
"""Vehicles in 24 hours, by approach and lane (Table 1)."""

FAR: Final = 220.0
"""Metres before and behind the light at which vehicles come and go: nobody hears it there."""

LIGHT: Final = EventType.of("traffic/light", {"approach": "string", "green": "boolean", "light": "point"})
MIDDLE: Final = Point(53.3545, -6.2846)
CYCLE, SPLIT = 90.0, 0.45
"""Seconds of a cycle, which the paper does not give, and the share of approach 1."""

AFTER_BEACON: Final = 0.001
"""Seconds: the light announces itself, and then tells its status."""

_GOLDEN: Final = 0.6180339887498949
"""Parts of its multiples are spread evenly."""


@dataclass
class Lights(Component):
    """The traffic light."""

    radius: float

    def start(self, host: Host) -> None:
        self._host, self._service = host, host.component(ProximityService)
        self._service.announce(LIGHT, Circle(self.radius), MIDDLE)
        host.timers.every(1.0, self._tell, first=1.0 + AFTER_BEACON)

    def _tell(self) -> None:
        first = self._host.now() / MICROSECONDS % CYCLE < SPLIT * CYCLE
        for approach, green in (("1", first), ("2", not first)):
            self._service.raise_event(LIGHT.subject, {"approach": approach, "green": green, "light": MIDDLE})


@dataclass
class Tally:
    """What vehicles of one lane were told."""

    vehicles: int = 0
    events: int = 0
    found: int = 0
    """Vehicles that were told anything, and so have heard a beacon."""


@dataclass
class Vehicle(Component):
    """One passage of a vehicle."""

    approach: str
    filtered: bool
    tally: Tally
    told: bool = field(default=False, init=False)

    def start(self, host: Host) -> None:
        self.tally.vehicles += 1
        wanted = f"approach = '{self.approach}' AND distance_decreases(light)" if self.filtered else None
        host.component(ProximityService).subscribe(LIGHT.subject, self._note, wanted)

    def _note(self, _event: Event) -> None:
        self.tally.events += 1
        self.tally.found += not self.told
        self.told = True


def day(*, filtered: bool, radius: float, share: float) -> dict[str, Tally]:
    """So many of the vehicles of a day, in that share of it; by lane."""
    seconds = DAY * share
    passages = {
        (lane, number): Passage(_lane(lane), _enters(number, count, seconds), SPEED)
        for lane, count in ((lane, round(whole * share)) for lane, whole in COUNTS.items())
        for number in range(count)
    }
    of = {id(passage): lane for (lane, _), passage in passages.items()}
    nodes = vehicles(passages.values())
    simulation = Simulation(1)
    world = World(simulation, Plane(MIDDLE), len(nodes) + 1)
    network = DiscNetwork(simulation, world.motion, RANGE)
    settings = ProximitySettings(transmission_range=RANGE, beacon_period=1.0)
    tallies = {lane: Tally() for lane in COUNTS}
    world.add("light", lambda: [HostEngine(), ProximityService(settings), Lights(radius)], [network]).join()
    for number, node in enumerate(nodes):
        build = partial(_vehicle, settings, filtered, _lanes_of(node, of), tallies)
        host = world.add(f"vehicle {number}", build, [network])
        world.motion.move(host.node, node, simulation.random.stream("road", str(number)))
        for enters, leaves in node.stays:
            simulation.at(round(enters * MICROSECONDS), _join, host)
            simulation.at(round(leaves * MICROSECONDS) - 1, _fail, host)
    simulation.run(round((seconds + 2 * FAR / SPEED + 2.0) * MICROSECONDS))
    return tallies


def _lanes_of(node: Passing, of: dict[int, str]) -> list[str]:
    """Those of its passages, the last first: one is taken off whenever it enters."""
    return [of[id(passage)] for passage in reversed(node.passages)]


def _vehicle(
    settings: ProximitySettings, filtered: bool, lanes: list[str], tallies: dict[str, Tally]
) -> Sequence[Component]:
    lane = lanes.pop()
    return [HostEngine(), ProximityService(settings), Vehicle(lane[0], filtered, tallies[lane])]


def _lane(name: str) -> Lane:
    """Approach 1 is the road from west to east, approach 2 that from south to north; lanes take turns in their direction."""
    along = FAR if int(name[2]) % 2 else -FAR
    ends = ((-along, 0.0), (along, 0.0)) if name[0] == "1" else ((0.0, -along), (0.0, along))
    return Lane(*ends)


def _enters(number: int, count: int, seconds: float) -> float:
    """A second of the day, and a part of that second: both spread evenly over the vehicles of a lane."""
    return int(seconds * (number * _GOLDEN % 1.0)) + (number + 0.5) / count


def _join(host: SimulatedHost) -> None:
    host.join()


def _fail(host: SimulatedHost) -> None:
    host.fail()
