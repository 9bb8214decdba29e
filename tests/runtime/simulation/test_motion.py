import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import ObserverActed
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import FOREVER, Leg, MobilityModel, Motion, positions

PLACES = st.tuples(st.floats(-1_000, 1_000), st.floats(-1_000, 1_000))


def along(places: Sequence[tuple[float, float]], speed: float, pause: float = 0.0) -> MobilityModel:
    """From place to place, with a pause at each."""

    def model(random: Random, start: Instant) -> Iterator[Leg]:
        for origin, target in pairwise(places):
            leg = Leg.between(start, origin, target, speed)
            yield leg
            start = leg.until
            if pause:
                yield Leg(start, start + round(pause * MICROSECONDS), *leg.end)
                start += round(pause * MICROSECONDS)

    return model


def table_positions(motion: Motion, time: Instant) -> list[tuple[float, float]]:
    """As a kernel sees them."""
    x, y = np.empty(len(motion.table)), np.empty(len(motion.table))
    positions(motion.table, time, x, y)
    return list(zip(x.tolist(), y.tolist(), strict=True))


def test_everybody_stands_at_the_origin_until_put_somewhere() -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 2)
    motion.put(1, 3.0, 4.0)
    simulation.run(10 * MICROSECONDS)
    assert [motion.at(0), motion.at(1)] == [(0.0, 0.0), (3.0, 4.0)]
    assert table_positions(motion, simulation.now()) == [(0.0, 0.0), (3.0, 4.0)]
    assert motion.leg(1).until == FOREVER


def test_a_walk_is_exact() -> None:
    simulation = Simulation(1, start=1_700_000_000 * MICROSECONDS)
    motion = Motion(simulation, 1)
    motion.move(0, along([(0, 0), (30, 40), (30, 0)], speed=2.0, pause=5.0), Random(1))
    expected = {
        0: (0, 0),
        10: (12, 16),
        25: (30, 40),
        29: (30, 40),
        30: (30, 40),
        40: (30, 20),
        50: (30, 0),
        500: (30, 0),
    }
    for second, place in expected.items():
        simulation.run(simulation.start + second * MICROSECONDS)
        assert motion.at(0) == pytest.approx(place, abs=1e-9)
        assert table_positions(motion, simulation.now())[0] == pytest.approx(place, abs=1e-9)


@given(
    st.lists(PLACES, min_size=1, max_size=6),
    st.floats(0.5, 20),
    st.sampled_from([0.0, 3.0]),
    st.lists(st.floats(0.001, 60), max_size=20),
)
def test_nobody_jumps_and_nobody_is_faster_than_asked(
    places: list[tuple[float, float]], speed: float, pause: float, gaps: list[float]
) -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 1)
    motion.put(0, *places[0])
    motion.move(0, along(places, speed, pause), Random(1))
    where, time = motion.at(0), simulation.now()
    for gap in gaps:
        simulation.run(time + round(gap * MICROSECONDS))
        there, now = motion.at(0), simulation.now()
        assert math.dist(where, there) <= speed * (now - time) / MICROSECONDS * (1 + 1e-9) + 1e-6
        assert table_positions(motion, now)[0] == pytest.approx(there, abs=1e-9)
        where, time = there, now


def test_when_a_life_ends_its_node_stands_where_it_ended() -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 1)
    motion.move(0, along([(0, 0), (10, 0)], 1.0), Random(1))
    simulation.run(100 * MICROSECONDS)
    assert motion.at(0) == pytest.approx((10, 0))
    assert motion.leg(0).until == FOREVER
    assert motion.leg(0).course(simulation.now()) == (0.0, None)
    assert simulation.statistics().waiting == 0


def test_a_pause_longer_than_kernels_can_count_is_for_ever() -> None:
    def model(random: Random, start: Instant) -> Iterator[Leg]:
        yield Leg(start, start + 10**30, 3.0, 4.0)

    simulation = Simulation(1)
    motion = Motion(simulation, 1)
    motion.move(0, model, Random(1))
    simulation.run(10**12)
    assert (motion.at(0), int(motion.table["until"][0])) == ((3.0, 4.0), FOREVER)


def test_who_is_put_somewhere_stays_there() -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 1)
    motion.move(0, along([(0, 0), (10, 0), (0, 0), (10, 0)], 1.0), Random(1))
    simulation.run(5 * MICROSECONDS)
    motion.put(0, 70, 80)
    simulation.run(100 * MICROSECONDS)
    assert motion.at(0) == (70, 80)


@pytest.mark.parametrize("put", [False, True])
def test_who_gets_another_model_follows_that_one_alone(put: bool) -> None:
    """Also when the leg of the one before ends: at 10 s, in the middle of a leg of the new one."""
    simulation = Simulation(1)
    motion = Motion(simulation, 1)
    motion.move(0, along([(0, 0), (10, 0), (0, 0)], 1.0), Random(1))
    simulation.run(5 * MICROSECONDS)
    if put:
        motion.put(0, 5, 0)
    motion.move(0, along([(5, 0), (5, 100), (5, 0)], 1.0), Random(1))
    simulation.run(30 * MICROSECONDS)
    assert motion.at(0) == pytest.approx((5, 25))
    simulation.run(125 * MICROSECONDS)
    assert motion.at(0) == pytest.approx((5, 80))


def test_a_model_draws_from_the_stream_it_was_given_and_starts_now() -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 2)
    starts: list[Instant] = []

    def model(random: Random, start: Instant) -> Iterator[Leg]:
        starts.append(start)
        yield Leg(start, start + MICROSECONDS, random.random(), random.random())

    simulation.run(7)
    for node in (0, 1):
        motion.move(node, model, simulation.random.stream("mobility", "same"))
    assert starts == [7, 7]
    assert motion.at(0) == motion.at(1) != (0.0, 0.0)


@pytest.mark.parametrize("move", [False, True])
def test_observers_do_not_move_anybody(move: bool) -> None:
    simulation = Simulation(1)
    motion = Motion(simulation, 1)

    def act(_: Instant) -> None:
        if move:
            motion.move(0, along([(1, 1), (2, 2)], 1.0), Random(1))
        else:
            motion.put(0, 1, 1)

    simulation.watch(1.0, act)
    with pytest.raises(ObserverActed, match="move somebody"):
        simulation.run(2 * MICROSECONDS)
    assert motion.at(0) == (0.0, 0.0)
