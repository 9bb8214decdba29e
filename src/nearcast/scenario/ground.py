"""The ground of a scenario, and the way people move on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearcast.runtime.simulation.plane import Bounds, Plane
from nearcast.runtime.simulation.streets.city import CityKind, city
from nearcast.runtime.simulation.streets.graph import AttractionPoint, StreetGraph
from nearcast.runtime.simulation.streets.openstreetmap import helsinki, read_map
from nearcast.scenario.schema import Scenario
from nearcast.scenario.worlds import GridCity, Helsinki, OrganicCity, Plain, StreetMap, World


@dataclass(frozen=True)
class Ground:
    """Where a run takes place."""

    plane: Plane
    bounds: Bounds
    streets: StreetGraph | None
    points: Sequence[AttractionPoint]


def ground_of(scenario: Scenario) -> Ground:
    """Make the city, or read the map."""
    world = scenario.world
    own = [
        AttractionPoint(point.name, point.x, point.y, point.radius, point.weight) for point in world.attraction_points
    ]
    if isinstance(world, Plain):
        return Ground(Plane(world.centre), Bounds.around(world.width, world.height), None, own)
    streets = _streets(world)
    if own:
        streets = streets.with_points(own)
    return Ground(Plane(streets.origin), streets.bounds, streets, streets.points)


def _streets(world: World) -> StreetGraph:
    match world:
        case OrganicCity() | GridCity():
            kind: CityKind = "organic" if isinstance(world, OrganicCity) else "grid"
            made = city(kind, seed=world.seed, side=world.side, points=world.points)
            return made if world.centre is None else made.centred_at(world.centre)
        case StreetMap():
            return read_map(world.file.path, centre=world.centre, side=world.side)
        case Helsinki():
            return helsinki(centre=world.centre, side=world.side)
    raise AssertionError(world)
