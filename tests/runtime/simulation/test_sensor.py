import math
from collections.abc import Iterator, Mapping
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import ObserverActed
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Accuracy, Fix
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Leg, Motion
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.sensor import EXACT, SimulatedSensor
from nearcast.runtime.simulation.timers import Life, SimulatedTimers

PLANE = Plane(Point(49.8728, 8.6512))
ERRORS = {Accuracy.LOW: 100.0, Accuracy.MEDIUM: 20.0, Accuracy.HIGH: 5.0}


class Walker:
    """A node that goes 100 m east at 2 m/s, waits for 10 s and goes 100 m north."""

    def __init__(self, errors: Mapping[Accuracy, float] = EXACT, seed: int = 1) -> None:
        self.simulation = Simulation(1)
        self.motion = Motion(self.simulation, 1)
        self.motion.move(0, self.walk, Random(1))
        self.life = Life()
        timers = SimulatedTimers(self.simulation, self.life)
        self.sensor = SimulatedSensor(self.simulation, self.motion, 0, PLANE, timers, Random(seed), errors)

    def walk(self, random: Random, start: Instant) -> Iterator[Leg]:
        yield Leg.between(start, (0, 0), (100, 0), 2.0)
        yield Leg(start + 50 * MICROSECONDS, start + 60 * MICROSECONDS, 100, 0)
        yield Leg.between(start + 60 * MICROSECONDS, (100, 0), (100, 100), 2.0)

    def run(self, seconds: float) -> None:
        self.simulation.run(round(seconds * MICROSECONDS))

    def fix(self) -> Fix:
        fix = self.sensor.fix()
        assert fix is not None
        return fix


def test_an_exact_sensor_says_where_its_node_is_and_how_it_moves() -> None:
    walker = Walker()
    expected = {
        0: ((0, 0), 2.0, 90.0),
        25: ((50, 0), 2.0, 90.0),
        55: ((100, 0), 0.0, None),
        85: ((100, 50), 2.0, 0.0),
        1_000: ((100, 100), 0.0, None),
    }
    for second, (place, speed, heading) in expected.items():
        walker.run(second)
        fix = walker.fix()
        assert fix.time == second * MICROSECONDS
        assert PLANE.to_xy(fix.position) == pytest.approx(place, abs=1e-6)
        assert fix.accuracy == 0.0
        assert fix.speed == pytest.approx(speed)
        assert fix.heading == (heading if heading is None else pytest.approx(heading))


def _standing(x: float, y: float, errors: Mapping[Accuracy, float] = EXACT) -> SimulatedSensor:
    walker = Walker(errors)
    walker.motion.put(0, x, y)
    return walker.sensor


METRES = st.floats(-2e7, 2e7)
PLACES = st.builds(Point, st.floats(-90, 90), st.floats(-180, 180))


@given(METRES, METRES, PLACES, st.floats(-1e-5, 1e-5))
def test_who_is_sure_to_be_near_is_near_on_the_whole_earth(x: float, y: float, place: Point, share: float) -> None:
    sensor = _standing(x, y)
    position = sensor.position()
    assert position is not None
    metres = distance(position, place)
    for radius in (metres * (1.0 + share), metres * 1.5, 0.0):
        assert sensor.within(radius, place) in {metres <= radius, None}


NEAR = st.floats(-40_000, 40_000)


@given(NEAR, NEAR, NEAR, NEAR, st.floats(0, 100_000))
def test_who_is_sure_is_right_nearby(x: float, y: float, u: float, v: float, radius: float) -> None:
    sensor, place = _standing(x, y), PLANE.to_point(u, v)
    position = sensor.position()
    assert position is not None
    metres = distance(position, place)
    for asked in (radius, metres, metres * 0.9998, metres * 0.9999):
        assert sensor.within(asked, place) in {metres <= asked, None}


@given(st.floats(-7_000, 7_000), st.floats(-7_000, 7_000))
def test_an_exact_sensor_is_sure_but_for_millimetres(x: float, y: float) -> None:
    metres = math.hypot(x, y)
    assert _standing(x, y).within(metres * 1.00001 + 0.002, PLANE.origin) is True
    assert _standing(x, y).within(metres, PLANE.origin) is None
    assert metres < 1.0 or _standing(x, y).within(metres * 0.998, PLANE.origin) is False


def test_a_sensor_with_errors_is_never_sure() -> None:
    assert _standing(0.0, 0.0, ERRORS).within(1e6, PLANE.origin) is None


@pytest.mark.parametrize("accuracy", Accuracy)
def test_errors_have_the_standard_deviation_that_was_asked_for(accuracy: Accuracy) -> None:
    """Normal on each axis: bounds are 4.5 standard errors of the mean, of the variance (2 sigma^4 / n) and of the
    product of the axes (sigma^4 / n).
    """
    walker, fixes, count = Walker(ERRORS), list[Fix](), 5_000
    walker.run(1_000)
    walker.sensor.request(1.0, fixes.append, accuracy)
    walker.run(1_000 + count - 0.5)
    assert len(fixes) == count
    sigma = ERRORS[accuracy]
    assert {fix.accuracy for fix in fixes} == {sigma}
    errors = [(x - 100, y - 100) for x, y in (PLANE.to_xy(fix.position) for fix in fixes)]
    for axis in (0, 1):
        values = [error[axis] for error in errors]
        assert abs(fmean(values)) < 4.5 * sigma / math.sqrt(count)
        assert abs(fmean(value * value for value in values) - sigma**2) < 4.5 * sigma**2 * math.sqrt(2 / count)
    assert abs(fmean(x * y for x, y in errors)) < 4.5 * sigma**2 / math.sqrt(count)


def test_fixes_come_at_once_and_then_periodically_until_cancelled() -> None:
    walker, times = Walker(), list[float]()
    request = walker.sensor.request(5.0, lambda fix: times.append(fix.time / MICROSECONDS))
    walker.run(12)
    request.cancel()
    walker.run(30)
    assert times == [0, 5, 10]
    walker.sensor.request(5.0, lambda fix: times.append(fix.time / MICROSECONDS), first=2.0)
    walker.run(38)
    assert times[3:] == [32, 37]


def test_no_fix_comes_after_the_life_of_the_host() -> None:
    walker, fixes = Walker(), list[Fix]()
    walker.sensor.request(5.0, fixes.append)
    walker.run(12)
    walker.life.alive = False
    walker.run(100)
    assert len(fixes) == 3


def test_the_same_stream_gives_the_same_errors() -> None:
    assert Walker(ERRORS, 3).fix() == Walker(ERRORS, 3).fix() != Walker(ERRORS, 4).fix()


def test_an_observer_may_read_an_exact_sensor_but_not_draw_from_its_stream() -> None:
    fixes: list[Fix] = []
    walker = Walker()
    walker.simulation.watch(1.0, lambda _: fixes.append(walker.fix()))
    walker.run(2)
    assert len(fixes) == 2
    noisy = Walker(ERRORS)
    noisy.simulation.watch(1.0, lambda _: fixes.append(noisy.fix()))
    with pytest.raises(ObserverActed, match="random number"):
        noisy.run(2)
