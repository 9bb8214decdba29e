"""What holds for every model: time and place go on without a gap, within the speed and the bounds that were asked for."""

from collections.abc import Callable
from itertools import islice
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.simulation.mobility.measures import jumps, speed

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.legs import Leg, MobilityModel
from nearcast.runtime.simulation.distributions import Constant, Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.mobility.random_walk import RandomWalk
from nearcast.runtime.simulation.mobility.road import Circulating, Lane, Stop
from nearcast.runtime.simulation.mobility.standing import Standing, StandingAnywhere
from nearcast.runtime.simulation.mobility.street_walk import StreetWalk
from nearcast.runtime.simulation.mobility.waypoint import RandomWaypoint
from nearcast.runtime.simulation.motion import FOREVER, Motion
from nearcast.runtime.simulation.plane import Bounds
from nearcast.runtime.simulation.streets.city import city

SLOW, FAST = 0.5, 7.0
SPEEDS = Uniform(SLOW, FAST)
CITY = city("grid", side=500.0)
CITY_BOUNDS = Bounds(*CITY.bounds)
KINDS: dict[str, Callable[[Bounds], MobilityModel]] = {
    "waypoint": lambda bounds: RandomWaypoint(bounds, SPEEDS, Uniform(0.0, 30.0)),
    "waypoint without a pause": lambda bounds: RandomWaypoint(bounds, SPEEDS),
    "waypoint under way": lambda bounds: RandomWaypoint(bounds, SPEEDS, Constant(5.0), stationary=True),
    "coin toss": lambda bounds: RandomWaypoint(bounds, SPEEDS, Constant(0.0), 0.5),
    "random walk": lambda bounds: RandomWalk(bounds, SLOW, FAST, step=2.0, turn=90.0, acceleration=3.0),
    "standing anywhere": StandingAnywhere,
    "standing": lambda bounds: Standing(bounds.west, bounds.north),
}
places = st.floats(-1e5, 1e5)
# Not 1.0: added to a place, a metre may round to a little less.
sides = st.floats(1.001, 1e4)
rectangles = st.builds(
    lambda west, south, width, height: Bounds(west, south, west + width, south + height), places, places, sides, sides
)


def life(model: MobilityModel, seed: int, start: Instant = 0, count: int = 60) -> list[Leg]:
    return list(islice(model(Random(seed), start), count))


def check(legs: list[Leg], bounds: Bounds, start: Instant) -> None:
    assert legs[0].start == start
    # Rounding: a nanometre in a kilometre.
    assert all(jump < 1e-7 for jump in jumps(legs))
    for leg in legs:
        # The microseconds of a leg are rounded up: the way of a few of them may take visibly longer.
        least = SLOW * (1 - 2e-6 / ((leg.until - leg.start) / 1e6))
        assert speed(leg) == 0 or least <= speed(leg) <= FAST + 1e-9
        for x, y in ((leg.x, leg.y), leg.end):
            assert bounds.west - 1e-7 <= x <= bounds.east + 1e-7
            assert bounds.south - 1e-7 <= y <= bounds.north + 1e-7


@pytest.mark.parametrize("kind", KINDS)
@given(bounds=rectangles, seed=st.integers(0, 2**32), start=st.integers(0, 2**50))
def test_legs_join_and_stay_within_bounds_and_speeds(kind: str, bounds: Bounds, seed: int, start: int) -> None:
    check(life(KINDS[kind](bounds), seed, start), bounds, start)


@pytest.mark.parametrize("targets", ["attraction points", "anywhere"])
@pytest.mark.parametrize("stationary", [True, False])
@given(seed=st.integers(0, 2**32))
def test_so_do_walks_on_streets(targets: str, stationary: bool, seed: int) -> None:
    model = StreetWalk(CITY, targets, SPEEDS, stationary=stationary)  # type: ignore[arg-type]
    check(life(model, seed, 5), CITY_BOUNDS, 5)


def test_a_life_is_a_function_of_its_stream() -> None:
    bounds = Bounds.around(800.0, 600.0)
    models = [make(bounds) for make in KINDS.values()]
    models += [StreetWalk(CITY), Circulating(Lane((0, 0), (9, 9), Stop(3.0, SPEEDS)), SPEEDS)]
    for model in models:
        assert life(model, 1) == life(model, 1)
        if not isinstance(model, Standing):
            assert life(model, 1) != life(model, 2)


def test_who_stands_stands_for_ever() -> None:
    assert life(Standing(3.0, 4.0), 1, 17) == [Leg(17, int(FOREVER), 3.0, 4.0)]
    with pytest.raises(InvalidInput, match="nobody can stand"):
        Standing(float("nan"), 0.0)


def test_motion_follows_the_legs_of_a_model() -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 1)
    model = KINDS["waypoint"](Bounds.around(100.0, 100.0))
    motion.move(0, model, Random(5))
    expected = life(model, 5)
    for leg in expected[1:20]:
        middle = (leg.start + leg.until) // 2
        simulation.run(middle)
        assert motion.at(0) == pytest.approx(leg.at(middle))
