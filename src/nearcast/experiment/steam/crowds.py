"""One producer and many consumers around it: how many messages an event takes, and whom it reaches (STEAM 5.1, 5.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final

from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.event_type import EventType
from nearcast.proximity.service import ProximityService
from nearcast.proximity.settings import ProximitySettings
from nearcast.runtime.host import Component, Host
from nearcast.runtime.legs import Leg
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import FOREVER
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.engine import HostEngine

XY = tuple[float, float]
Placement = Callable[[Random, int], list[XY]]

RANGE: Final = 200.0
"""T_R, metres."""

HALF: Final = 700.0
"""Metres from the producer to the ends of the road, and the largest proximity."""

SATURATIONS: Final = (60, 120, 180, 240)
PROXIMITIES: Final = (100, 200, 300, 400, 500, 600, 700)
DUBLIN: Final = Plane(Point(53.3545, -6.2846))
WARNING: Final = EventType.of("traffic/warning", {"severity": "integer"})
SETTINGS: Final = ProximitySettings(transmission_range=RANGE, beacon_period=3_600.0, jitter=0.0)
"""Each event is raised right after a beacon, so no others are needed."""

_SETTLED: Final = MICROSECONDS // 20
_SIDE: Final = 1.75


@dataclass(frozen=True, slots=True)
class Spread:
    """What became of one event."""

    cost: int
    """C_d: messages that were sent."""

    inside: int
    connected: int
    """N_CP: consumers in the proximity that are connected with the producer through others in it."""

    reached: int


class Consumer(Component):
    def __init__(self) -> None:
        self.got = 0

    def start(self, host: Host) -> None:
        host.component(ProximityService).subscribe(WARNING.subject, self._note)

    def _note(self, _event: Event) -> None:
        self.got += 1


def _device(components: Sequence[Component]) -> Sequence[Component]:
    return [HostEngine(), *components]


class Crowd:
    """Node 0 is the producer; the first so many of the consumers are idle and pass nothing on."""

    def __init__(self, seed: int, consumers: int, settings: ProximitySettings = SETTINGS, idle: int = 0) -> None:
        self.consumers: Final = consumers
        self._simulation: Final = Simulation(seed)
        self._world: Final = World(self._simulation, DUBLIN, consumers + 1)
        self._network: Final = DiscNetwork(self._simulation, self._world.motion, RANGE)
        self._producer: Final = ProximityService(settings)
        self._listeners: Final = [Consumer() for _ in range(consumers)]
        lazy = replace(settings, forwards=False)
        parts: list[list[Component]] = [[self._producer]]
        for number, listener in enumerate(self._listeners, 1):
            parts.append([ProximityService(lazy if number <= idle else settings), listener])
        for number, components in enumerate(parts):
            self._world.add(str(number), partial(_device, components), [self._network]).join()

    def place(self, places: Sequence[XY], velocities: Sequence[XY] | None = None, producer: XY = (0.0, 0.0)) -> None:
        """Let everybody be there now, and go on from there; the producer is in the middle."""
        now, moving = self._simulation.now(), velocities or [(0.0, 0.0)] * len(places)
        for node, ((x, y), (vx, vy)) in enumerate(zip([(0.0, 0.0), *places], [producer, *moving], strict=True)):
            leg = Leg(now, int(FOREVER), x, y, vx, vy)
            self._world.motion.move(node, lambda _random, _start, leg=leg: iter([leg]), Random(0))

    def spread(self, radius: float, *, moves: bool = False) -> Spread:
        """Announce a proximity of that radius, and raise an event in it."""
        places = [self._world.motion.at(node) for node in range(self.consumers + 1)]
        before, got = self._sent(), [listener.got for listener in self._listeners]
        self._producer.announce(WARNING, Circle(radius), None if moves else DUBLIN.to_point(0.0, 0.0))
        self._producer.raise_event(WARNING.subject, {"severity": 1})
        self._simulation.run(self._simulation.now() + _SETTLED)
        reached = sum(listener.got - count for listener, count in zip(self._listeners, got, strict=True))
        inside = [node for node, (x, y) in enumerate(places) if node and math.hypot(x, y) <= radius]
        return Spread(self._sent() - before, len(inside), len(_connected(places, inside)), reached)

    def _sent(self) -> int:
        return sum(
            row.messages for row in self._network.traffic() if row.kind == "proximity event" and row.direction == "sent"
        )


def _connected(places: Sequence[XY], inside: Sequence[int]) -> set[int]:
    """Those of them that the producer reaches by hops of one range each."""
    left, reached, edge = set(inside), set[int](), [0]
    while edge:
        x, y = places[edge.pop()]
        near = {node for node in left if math.hypot(places[node][0] - x, places[node][1] - y) <= RANGE}
        left -= near
        reached |= near
        edge += near
    return reached


# Where consumers are


def road(random: Random, number: int) -> list[XY]:
    """Anywhere on the two lanes (scenarios A and B)."""
    return [(random.uniform(-HALF, HALF), random.choice((-_SIDE, _SIDE))) for _ in range(number)]


def crossing(random: Random, number: int) -> list[XY]:
    """Anywhere on the two roads of an intersection (C)."""
    return [place if random.random() < 0.5 else place[::-1] for place in road(random, number)]


def players(random: Random, number: int) -> list[XY]:
    """Anywhere around (D)."""
    polar = [(HALF * math.sqrt(random.random()), random.uniform(0.0, 2 * math.pi)) for _ in range(number)]
    return [(radius * math.cos(angle), radius * math.sin(angle)) for radius, angle in polar]


def searchers(_random: Random, number: int) -> list[XY]:
    """Each with an equal part of the area (E): a spiral by the golden angle."""
    golden = math.pi * (3 - math.sqrt(5))
    radii = [HALF * math.sqrt((place + 0.5) / number) for place in range(number)]
    return [
        (radius * math.cos(place * golden), radius * math.sin(place * golden)) for place, radius in enumerate(radii)
    ]


PLACEMENTS: Final[dict[str, Placement]] = {"A": road, "B": road, "C": crossing, "D": players, "E": searchers}
