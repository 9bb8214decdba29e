"""Hosts with a router each, in the simulator, and what their passengers were told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.interface import Destination, Passenger
from nearcast.crowdstore.geographic.presence import Presence
from nearcast.crowdstore.geographic.router import CellRouter
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Component, Host
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Motion
from nearcast.runtime.simulation.network import Network
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

HERE: Final = Point(49.8728, 8.6512)
RANGE: Final = 113.2
SETTLED: Final = 8.0
"""Seconds after which everybody is settled and has heard everybody around."""


@dataclass
class Diary(Passenger):
    """What one passenger was told."""

    arrivals: list[tuple[str, Cell, Destination, bytes]] = field(default_factory=list)
    refusals: list[tuple[Destination, bytes]] = field(default_factory=list)
    happened: list[tuple[str, object]] = field(default_factory=list)

    def arrived(self, source: str, origin: Cell, destination: Destination, payload: bytes) -> None:
        self.arrivals.append((source, origin, destination, payload))

    def undeliverable(self, destination: Destination, payload: bytes) -> None:
        self.refusals.append((destination, payload))

    def settled(self, cell: Cell) -> None:
        self.happened.append(("settled", cell))

    def unsettled(self, cell: Cell) -> None:
        self.happened.append(("unsettled", cell))

    def populated(self, cell: Cell) -> None:
        self.happened.append(("populated", cell))

    def emptied(self, cell: Cell) -> None:
        self.happened.append(("emptied", cell))

    def member_joined(self, member: str) -> None:
        self.happened.append(("joined", member))

    def member_left(self, member: str) -> None:
        self.happened.append(("left", member))


class Carrier(Component):
    """A host's router as a component."""

    def __init__(self, grid: CellGrid, presence: Presence) -> None:
        self.diary: Final = Diary()
        self.router: CellRouter
        self.host: Host
        self._grid: Final = grid
        self._presence: Final = presence

    def start(self, host: Host) -> None:
        self.host = host
        self.router = CellRouter(host, "wifi", self._grid, self.diary, self._presence)
        self.router.start()

    def stop(self) -> None:
        self.router.stop()


class Geography:
    """Hosts ``n00``, ``n01``, ... at places in metres from the south-west corner."""

    def __init__(
        self,
        columns: int,
        rows: int,
        places: Sequence[tuple[float, float]],
        *,
        network: Callable[[Simulation, Motion], Network] | None = None,
        presence: Presence = Presence(),  # noqa: B008 - frozen
        check_wire: bool = True,
    ) -> None:
        self.grid: Final = CellGrid(HERE, 40.0 * columns, 40.0 * rows)
        self.simulation: Final = Simulation(1)
        self.world: Final = World(self.simulation, Plane(HERE), len(places))
        motion = self.world.motion
        self.network: Final = (
            network(self.simulation, motion)
            if network
            else DiscNetwork(self.simulation, motion, RANGE, check_wire=check_wire)
        )
        self.carriers: Final[dict[str, Carrier]] = {}
        self.names: Final = [f"n{node:03}" for node in range(len(places))]
        for node, (name, (x, y)) in enumerate(zip(self.names, places, strict=True)):
            motion.put(node, x, y)
            self.world.add(name, partial(self._components, name, presence), [self.network]).join()

    def _components(self, name: str, presence: Presence) -> Sequence[Component]:
        carrier = self.carriers[name] = Carrier(self.grid, presence)
        return [carrier]

    def run(self, seconds: float) -> None:
        self.simulation.run(self.simulation.now() + round(seconds * MICROSECONDS))

    def router(self, name: str) -> CellRouter:
        return self.carriers[name].router

    def diary(self, name: str) -> Diary:
        return self.carriers[name].diary

    def sent(self) -> int:
        """Packets between cells so far, by whomever."""
        tallies = [carrier.router.tally for carrier in self.carriers.values()]
        return sum(tally.sent + tally.forwarded for tally in tallies)

    def total(self, name: str) -> int:
        return sum(int(getattr(carrier.router.tally, name)) for carrier in self.carriers.values())

    def got(self, payload: bytes) -> dict[str, list[Destination]]:
        """Who was told of that message, with what destinations."""
        found = {
            name: [destination for _, _, destination, what in carrier.diary.arrivals if what == payload]
            for name, carrier in self.carriers.items()
        }
        return {name: destinations for name, destinations in found.items() if destinations}


def crowd(populated: Mapping[Cell, int] | Sequence[Cell], columns: int, rows: int, *, skip: bool = True) -> Geography:
    """So many hosts in each cell, at places all over it; after all have settled."""
    counts = populated if isinstance(populated, Mapping) else dict.fromkeys(populated, 1)
    places = [
        (40.0 * cell.column + 1 + 38.0 * (7 * n % 10) / 10, 40.0 * cell.row + 1 + 38.0 * (3 * n % 10) / 10)
        for cell, count in counts.items()
        for n in range(count)
    ]
    geography = Geography(columns, rows, places, presence=Presence(skip=skip))
    geography.run(SETTLED)
    return geography


def cells(picture: str) -> list[Cell]:
    """The cells that are marked in a picture, of which the last line is the south."""
    lines = picture.split()
    return [
        Cell(column, row) for row, line in enumerate(reversed(lines)) for column, mark in enumerate(line) if mark == "#"
    ]
