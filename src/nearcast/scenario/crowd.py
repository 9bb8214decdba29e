"""The people of a scenario: how each of them moves."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from nearcast.errors import InvalidScenario
from nearcast.runtime.legs import MobilityModel
from nearcast.runtime.simulation.mobility.random_walk import RandomWalk
from nearcast.runtime.simulation.mobility.road import Circulating, lanes
from nearcast.runtime.simulation.mobility.sharing import shared_out
from nearcast.runtime.simulation.mobility.standing import StandingAnywhere
from nearcast.runtime.simulation.mobility.street_walk import StreetWalk
from nearcast.runtime.simulation.mobility.traces.reading import read_traces
from nearcast.runtime.simulation.mobility.waypoint import RandomWaypoint
from nearcast.scenario.ground import Ground
from nearcast.scenario.movements import (
    AttractionMobility,
    RoadMobility,
    Standing,
    StreetMobility,
    TraceMobility,
    WalkMobility,
    WaypointMobility,
)
from nearcast.scenario.schema import Scenario

Crowd = Callable[[int], MobilityModel]
"""The model by which the client of that number moves."""


def crowd_of(scenario: Scenario, ground: Ground, random: Random) -> Crowd:
    """``random`` decides who is of which kind, where there are several."""
    mobility = scenario.mobility
    if isinstance(mobility, WaypointMobility) and mobility.mobile < 1:
        kinds = [(mobility.mobile, _model(scenario, ground)), (1 - mobility.mobile, StandingAnywhere(ground.bounds))]
        models = shared_out(kinds, scenario.clients.number, random)
        return lambda node: models[node]
    if isinstance(mobility, TraceMobility):
        return _replayed(mobility, scenario.clients.number, ground)
    if isinstance(mobility, RoadMobility):
        return _on_road(mobility, ground)
    model = _model(scenario, ground)
    return lambda _node: model


def _model(scenario: Scenario, ground: Ground) -> MobilityModel:
    match scenario.mobility:
        case AttractionMobility() | StreetMobility() as walk:
            assert ground.streets is not None
            to_points = isinstance(walk, AttractionMobility)
            return StreetWalk(
                ground.streets,
                "attraction points" if to_points else "anywhere",
                walk.speed,
                walk.pause,
                truncate=walk.truncate if isinstance(walk, AttractionMobility) else False,
                stationary=walk.stationary,
            )
        case WaypointMobility() as walk:
            return RandomWaypoint(ground.bounds, walk.speed, walk.pause, walk.move_probability, walk.stationary)
        case WalkMobility() as walk:
            return RandomWalk(ground.bounds, walk.slowest, walk.fastest, walk.step, walk.turn, walk.acceleration)
        case Standing():
            return StandingAnywhere(ground.bounds)
    raise AssertionError(scenario.mobility)


def _on_road(mobility: RoadMobility, ground: Ground) -> Crowd:
    bounds, number = ground.bounds, mobility.lanes
    middle = (bounds.south + bounds.north) / 2
    ways = lanes(
        (bounds.west, middle),
        (bounds.east, middle),
        forward=number,
        backward=number,
        keep_left=mobility.keep_left,
    )
    vehicles = [Circulating(lane, mobility.speed) for lane in ways]
    return lambda node: vehicles[node % len(vehicles)]


def _replayed(mobility: TraceMobility, clients: int, ground: Ground) -> Crowd:
    traces = read_traces(mobility.file.path)
    replays = traces.replays(ground.plane)
    if len(replays) < clients:
        raise InvalidScenario(
            f"clients.number: {mobility.file.path.name} has {len(replays)} tracks, too few for {clients} clients"
        )
    for replay in replays:
        for x, y in zip(replay.x.tolist(), replay.y.tolist(), strict=True):
            if not ground.bounds.contains(x, y):
                raise InvalidScenario(
                    f"mobility.file: {replay.name!r} in {mobility.file.path.name} leaves the world; "
                    f"the middle of its tracks is {traces.centre.lat:.5f}, {traces.centre.lon:.5f}: see world.centre and its size"
                )
    return lambda node: replays[node]
