"""Where a live host is: what was fed in, or what its model of mobility says at the real time."""

import asyncio
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clocks import START, HandClock
from tests.runtime.live.virtual import VirtualLoop, in_virtual_time

from nearcast.errors import InvalidPosition
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.legs import Leg
from nearcast.runtime.live import FedPosition, MovingPosition
from nearcast.runtime.live.sensor import LiveSensor
from nearcast.runtime.live.timers import LiveTimers
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Fix
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World

PLANE = Plane(Point(49.8728, 8.6512))


def call(callback: Callable[[], None]) -> None:
    callback()


def strolling(random: Random, start: Instant) -> Iterator[Leg]:
    """Ten legs, every third of them a pause."""
    x = y = 0.0
    for number in range(10):
        if number % 3 == 2:
            leg = Leg(start, start + random.randrange(1, 5 * MICROSECONDS), x, y)
        else:
            leg = Leg.between(start, (x, y), (random.uniform(-50, 50), random.uniform(-50, 50)), 1.4)
        yield leg
        start, (x, y) = leg.until, leg.end


def test_a_fed_position_is_the_newest_fix() -> None:
    clock = HandClock()
    position = FedPosition(clock)
    assert position.fix() is None
    position.update(49.0, 8.0, accuracy=3.0)
    assert position.fix() == Fix(START, Point(49.0, 8.0), 3.0, 0.0, None)
    clock.time += 5
    position.update(49.1, 8.1, accuracy=2.0, speed=1.5, heading=-90.0)
    assert position.fix() == Fix(START + 5, Point(49.1, 8.1), 2.0, 1.5, 270.0)
    position.update(49.2, 8.2, accuracy=2.0, time=START - 1)
    assert position.fix() == Fix(START - 1, Point(49.2, 8.2), 2.0, 0.0, None)


@pytest.mark.parametrize(
    "wrong",
    [{"lat": 91.0}, {"lon": math.nan}, {"accuracy": -1.0}, {"speed": -1.0}, {"speed": math.inf}, {"heading": math.nan}],
)
def test_an_impossible_position_is_refused_and_changes_nothing(wrong: dict[str, float]) -> None:
    position = FedPosition(HandClock())
    position.update(49.0, 8.0, accuracy=3.0)
    before = position.fix()
    update: Any = position.update
    with pytest.raises(InvalidPosition):
        update(**{"lat": 49.0, "lon": 8.0, "accuracy": 1.0} | wrong)
    assert position.fix() == before


def test_who_asks_for_fixes_gets_them_as_soon_as_there_are_any() -> None:
    async def story(loop: VirtualLoop) -> None:
        clock = loop.clock()
        position = FedPosition(clock)
        sensor = LiveSensor(position.fix, LiveTimers(clock, call, Observers()))
        got: list[tuple[Instant, Fix]] = []
        request = sensor.request(1.0, lambda fix: got.append((clock.now() - START, fix)), first=0.5)
        assert sensor.fix() is None
        await asyncio.sleep(1.0)
        position.update(49.0, 8.0, accuracy=3.0)
        first = sensor.fix()
        assert first is not None
        await asyncio.sleep(2.0)
        # The same fix again, if there is no newer one: its time says how old it is.
        assert got == [(1_500_000, first), (2_500_000, first)]
        request.cancel()
        await asyncio.sleep(5.0)
        assert len(got) == 2

    in_virtual_time(story)


@given(st.integers(0, 2**32), st.lists(st.integers(0, 90 * MICROSECONDS), min_size=1, max_size=20))
def test_who_moves_by_a_model_is_where_the_simulator_says(seed: int, waits: list[int]) -> None:
    simulation = Simulation(0, start=START)
    world = World(simulation, PLANE, 1)
    simulated = world.add("ada", tuple, [])
    world.motion.move(0, strolling, Random(seed))
    simulated.join()
    assert simulated.host is not None
    assert simulated.host.sensor is not None
    clock = HandClock()
    live = MovingPosition(clock, strolling, Random(seed), PLANE.to_point)
    for wait in waits:
        clock.time += wait
        # A microsecond more: the simulator has then also done what is due at that very instant.
        simulation.run(clock.time + 1)
        expected = simulated.host.sensor.fix()
        clock.time += 1
        assert expected is not None
        assert live.fix() == expected


def test_a_model_without_legs_stands_at_the_origin() -> None:
    position = MovingPosition(HandClock(), lambda random, start: iter(()), Random(1), PLANE.to_point)
    assert position.fix() == Fix(START, PLANE.to_point(0.0, 0.0), 0.0, 0.0, None)


def test_who_has_walked_all_legs_stands_at_the_end_of_the_last() -> None:
    clock = HandClock()
    leg = Leg.between(START, (0.0, 0.0), (30.0, 40.0), 5.0)
    position = MovingPosition(clock, lambda random, start: iter([leg]), Random(1), PLANE.to_point)
    under_way = position.fix()
    assert under_way.speed == pytest.approx(5.0)
    assert under_way.heading == pytest.approx(math.degrees(math.atan2(3, 4)))
    clock.time += 3_600 * MICROSECONDS
    there = position.fix()
    assert there == replace(there, speed=0.0, heading=None, time=clock.time)
    assert PLANE.to_xy(there.position) == pytest.approx((30.0, 40.0), abs=1e-6)
