"""Candidates in miniature, and what is expected of them before: clients that walk straight over a square of 1300 m."""

import math
from random import Random

import pytest

from nearcast.dissemination.broker_state import square_kilometres
from nearcast.filtering.attraction import Zones
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Territory
from nearcast.filtering.tessellation import GeoBox
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.planning.expectations import Circumstances, detail, expectation, tells
from nearcast.planning.shadows import Shadow
from nearcast.runtime.ports import Fix
from nearcast.transition.specification import MechanismSpec

SIDE, RADIUS, INTERVAL, OVERHEAD, CLIENTS, REPORTS = 1300.0, 125.0, 5, 29, 40, 60
DEGREE = 111_195.0
AREA = Territory(GeoBox(0.0, 0.0, SIDE / DEGREE, SIDE / DEGREE), Zones([]))
WANTED = {"s": Subscription("t", area=Circle(RADIUS), id="s")}
RADIAL = MechanismSpec("RADIAL")
AROUND = Circumstances(float(INTERVAL), overhead=OVERHEAD)


def grid(kind: str, factor: int, **more: float) -> MechanismSpec:
    return MechanismSpec.of(kind, factor=factor, **more)


def by_distance(metres: float) -> MechanismSpec:
    return MechanismSpec.of("RADIAL", update="distance", distance=metres)


class Walkers:
    """Straight on at 1 m/s, in all directions; whoever would leave the square starts anew elsewhere."""

    def __init__(self, seed: int = 1) -> None:
        self.random = Random(seed)
        self.places = [self._anywhere() for _ in range(CLIENTS)]
        self.headings = [self.random.uniform(0, 2 * math.pi) for _ in range(CLIENTS)]

    def walk(self, *shadows: Shadow, reports: int = REPORTS) -> None:
        for number in range(reports):
            for client in range(CLIENTS):
                self._step(client)
                for shadow in shadows:
                    shadow.report(f"c{client}", self.fix(client, number), WANTED)

    def fix(self, client: int, number: int) -> Fix:
        return Fix(number * INTERVAL * MICROSECONDS, self.at(client), 0.0, 1.0, math.degrees(self.headings[client]))

    def at(self, client: int) -> Point:
        x, y = self.places[client]
        return Point(y / DEGREE, x / DEGREE)

    def near(self, place: Point) -> set[str]:
        return {f"c{n}" for n in range(CLIENTS) if distance(self.at(n), place) <= RADIUS}

    def event(self) -> Event:
        x, y = self._anywhere()
        return Event("e", "t", 0, place=Point(y / DEGREE, x / DEGREE))

    def _step(self, client: int) -> None:
        (x, y), heading = self.places[client], self.headings[client]
        x, y = x + INTERVAL * math.sin(heading), y + INTERVAL * math.cos(heading)
        if not (0 < x < SIDE and 0 < y < SIDE):  # back: a turn is no border that was crossed
            self.headings[client] = (heading + math.pi) % (2 * math.pi)
            return
        self.places[client] = (x, y)

    def _anywhere(self) -> tuple[float, float]:
        return self.random.uniform(0, SIDE), self.random.uniform(0, SIDE)


def test_a_shadow_finds_whom_its_scheme_finds() -> None:
    walkers = Walkers()
    radial, egrid = Shadow(RADIAL, AREA, OVERHEAD), Shadow(grid("EGRID", 5), AREA, OVERHEAD)
    walkers.walk(radial, egrid, reports=20)
    told = 0
    for event in (walkers.event() for _ in range(50)):
        assert event.place is not None
        near = walkers.near(event.place)
        assert set(radial.receivers(event)) == near
        assert set(egrid.receivers(event)) >= near
        told += len(near)
    assert told > 30


def test_reports_are_counted_but_for_the_first_one_of_each_client() -> None:
    shadow = Shadow(RADIAL, AREA, OVERHEAD)
    Walkers().walk(shadow)
    found = shadow.statistics()
    assert found.context_messages == CLIENTS * (REPORTS - 1)
    assert OVERHEAD + 20 < found.context_bytes / found.context_messages < OVERHEAD + 80


def test_who_left_is_not_told_any_more() -> None:
    walkers, shadow = Walkers(), Shadow(RADIAL, AREA, OVERHEAD)
    walkers.walk(shadow, reports=1)
    event = Event("e", "t", 0, place=walkers.at(0))
    assert "c0" in shadow.receivers(event)
    shadow.forget("c0")
    assert "c0" not in shadow.receivers(event)
    assert shadow.statistics().clients == CLIENTS - 1


def test_a_subscription_that_ended_counts_no_more() -> None:
    walkers, shadow = Walkers(), Shadow(RADIAL, AREA, OVERHEAD)
    walkers.walk(shadow, reports=1)
    shadow.report("c0", walkers.fix(0, 1), {})
    assert "c0" not in shadow.receivers(Event("e", "t", 0, place=walkers.at(0)))


@pytest.mark.parametrize(("spec", "tolerance"), [(grid("GRID", 5), 0.15), (grid("GRID", 10), 0.15), (RADIAL, 0.02)])
def test_walkers_report_as_often_as_geometry_says(spec: MechanismSpec, tolerance: float) -> None:
    """GRID: 12,000 s at 1 m/s cross about 60 borders of 260 m, with 4/pi of them for each width, and few fewer at the rim."""
    shadow = Shadow(spec, AREA, OVERHEAD)
    Walkers().walk(shadow, reports=600)
    seconds = CLIENTS * 600 * INTERVAL
    expected = expectation(spec, AREA, RADIUS, AROUND).context_messages
    assert shadow.statistics().context_messages / seconds == pytest.approx(expected, rel=tolerance + 0.1)


@pytest.mark.parametrize("factor", [5, 10])
def test_for_cells_around_the_area_of_interest_geometry_is_right_within_a_factor_of_two(factor: int) -> None:
    spec = grid("EGRID", factor)
    shadow, expected = Shadow(spec, AREA, OVERHEAD), expectation(spec, AREA, RADIUS, AROUND)
    Walkers().walk(shadow, reports=600)
    seconds = CLIENTS * 600 * INTERVAL
    assert 0.5 < shadow.statistics().context_messages / seconds / expected.context_messages < 2
    assert 0.5 < shadow.statistics().context_bytes / seconds / expected.context_bytes < 2


def test_shares_are_areas() -> None:
    square = 1e6 * square_kilometres(AREA.box)
    assert expectation(RADIAL, AREA, RADIUS, AROUND).share == pytest.approx(math.pi * RADIUS**2 / square)
    assert expectation(grid("GRID", 5), AREA, RADIUS, AROUND).share == pytest.approx(1 / 25)
    shares = [expectation(grid("EGRID", factor), AREA, RADIUS, AROUND).share for factor in (1, 2, 5, 10)]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)


def test_the_longer_a_client_says_nothing_the_more_it_misses() -> None:
    recalls = [expectation(spec, AREA, RADIUS, AROUND).recall for spec in (RADIAL, by_distance(10), by_distance(30))]
    assert recalls == sorted(recalls, reverse=True)
    # Two circles whose centres are 2.5 m apart.
    overlap = 2 * RADIUS**2 * math.acos(1.25 / RADIUS) - 1.25 * math.sqrt(4 * RADIUS**2 - 2.5**2)
    assert recalls[0] == pytest.approx(overlap / (math.pi * RADIUS**2), abs=1e-4)


@pytest.mark.parametrize(
    ("running", "other", "told"),
    [
        (RADIAL, grid("EGRID", 5), True),
        (RADIAL, by_distance(10), True),
        (by_distance(10), by_distance(30), True),
        (by_distance(30), by_distance(10), False),
        (by_distance(10), RADIAL, False),
        (by_distance(10), grid("EGRID", 5), True),
        (grid("EGRID", 5), grid("EGRID", 5), True),
        (grid("EGRID", 5), grid("EGRID", 2), False),
        (grid("EGRID", 5), RADIAL, False),
    ],
)
def test_only_who_reports_as_much_tells_how_much_another_would(
    running: MechanismSpec, other: MechanismSpec, told: bool
) -> None:
    assert tells(scheme_of(running), scheme_of(other)) == told


def test_what_reveals_nothing_and_may_miss_something_is_not_presumed_to_do_well() -> None:
    for spec, presumed in ((grid("GRID", 5), False), (grid("EGRID", 5), True), (RADIAL, True)):
        assert expectation(spec, AREA, RADIUS, AROUND).presumed == presumed
    assert detail(scheme_of(MechanismSpec.of("RADIAL", update="frequency"))) is None
