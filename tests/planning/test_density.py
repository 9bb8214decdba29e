"""When points are crowded, and that they do not oscillate."""

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidPlan
from nearcast.filtering.attraction import Zone, Zones
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.planning.density import CrowdedPoints, Crowding, DensityRule
from nearcast.runtime.host import Host
from nearcast.runtime.observers import Observers
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.simulation.world import World
from nearcast.transition.plan import Exchange
from nearcast.transition.specification import MechanismSpec

HOME = Point(49.8728, 8.6512)
PARK, SQUARE = Zone("park", HOME, 25.0), Zone("square", HOME, 50.0)
DENSE, SPARSE = (Exchange("lc", MechanismSpec("GOSSIP")),), (Exchange("lc", MechanismSpec("PLAN-B")),)


class Points:
    """A broker's, to be filled."""

    def __init__(self, rule: DensityRule | None, zones: Sequence[Zone] = (PARK, SQUARE)) -> None:
        self.rows: list[tuple[object, ...]] = []
        self.changes: list[tuple[str, int]] = []
        observers = Observers()
        observers.record("transitions", lambda *row: self.rows.append(row))
        self.simulation = Simulation(1, observers=observers)
        world = World(self.simulation, Plane(HOME), 1)
        world.add("broker", list, [])
        world.hosts["broker"].join()
        host = world.hosts["broker"].host
        assert isinstance(host, Host)
        self.points = CrowdedPoints(host, Zones(zones), rule, Crowding(DENSE, SPARSE), self._changed)

    def _changed(self, point: str, clients: Collection[str]) -> None:
        self.changes.append((point, len(clients)))

    def fill(self, count: int, point: str = "park") -> None:
        """One after the other comes, or goes, until there are so many."""
        there = sum(point in self.points.points_of(f"c{number}") for number in range(100))
        for number in range(there, count):
            self.points.place(f"c{number}", (point,))
        for number in reversed(range(count, there)):
            self.points.place(f"c{number}", ())

    def switches(self, counts: Sequence[int]) -> int:
        """How often the park changes its mind while so many are there."""
        for count in counts:
            self.fill(count)
        return len(self.changes)


COUNTS = st.lists(st.integers(0, 14), max_size=40)
DELTAS = st.integers(1, 10)


def crossings(counts: Sequence[int], threshold: float, hysteresis: float) -> int:
    """The closed form, step by step: everybody comes and goes alone."""
    crowded, switched, there = False, 0, 0
    for count in counts:
        step = 1 if count > there else -1
        while there != count:
            there += step
            right = there > (threshold - hysteresis if crowded else threshold)
            switched += right != crowded
            crowded = right
    return switched


@given(COUNTS, DELTAS, st.integers(0, 10))
def test_a_point_switches_when_the_rule_says_so_and_never_else(
    counts: list[int], threshold: int, hysteresis: int
) -> None:
    hysteresis = min(hysteresis, threshold)
    town = Points(DensityRule(threshold, hysteresis))
    assert town.switches(counts) == crossings(counts, threshold, hysteresis)
    there = counts[-1] if counts else 0
    if there > threshold or there <= threshold - hysteresis:
        assert town.points.crowded(("park",)) == (there > threshold)


@given(DELTAS, st.data())
def test_within_the_band_there_is_no_oscillation(threshold: int, data: st.DataObject) -> None:
    hysteresis = data.draw(st.integers(1, threshold))
    band = st.integers(threshold - hysteresis + 1, threshold)
    for first, switched in ((threshold + 1, 1), (0, 0)):  # whether it was crowded before or not
        town = Points(DensityRule(threshold, hysteresis))
        swings = data.draw(st.lists(band, max_size=30))
        assert town.switches([first, *swings]) == switched
        assert town.points.crowded(("park",)) == bool(switched)


@given(DELTAS, st.integers(1, 20))
def test_around_the_threshold_the_documents_rule_oscillates_and_ours_does_not(threshold: int, times: int) -> None:
    swings = [threshold + 1, threshold] * times
    assert Points(DensityRule(threshold)).switches(swings) == 2 * times
    assert Points(DensityRule(threshold, 1)).switches(swings) == 1


@given(COUNTS, DELTAS, st.data())
def test_more_hysteresis_never_brings_more_switches(counts: list[int], threshold: int, data: st.DataObject) -> None:
    less = data.draw(st.integers(0, threshold))
    more = data.draw(st.integers(less, threshold))
    few, many = (Points(DensityRule(threshold, each)).switches(counts) for each in (more, less))
    assert few <= many


def test_the_documents_density_knows_how_large_a_point_is() -> None:
    town = Points(DensityRule(10, measure="density"))
    town.fill(1)  # 16
    assert town.points.crowded(("park",))
    for number in range(2):
        town.points.place(f"d{number}", ("square",))
    assert not town.points.crowded(("square",))  # 8
    town.points.place("d2", ("square",))
    assert town.points.crowded(("square",))  # 12
    assert [point for point, _ in town.changes] == ["park", "square"]


def test_where_points_overlap_the_more_crowded_one_decides() -> None:
    town = Points(DensityRule(1))
    town.points.place("a", ("square",))
    town.points.place("b", ("park", "square"))
    assert not town.points.crowded(("park",))
    assert town.points.crowded(("park", "square"))
    town.points.place("b", ("park",))
    assert not town.points.crowded(("park", "square"))
    assert town.points.clients() == 2


def test_every_switch_is_in_the_records_with_its_place() -> None:
    town = Points(DensityRule(1))
    town.fill(2)
    town.fill(1)
    assert [row[2:7] for row in town.rows] == [
        ("lc at park", "PLAN-B", "GOSSIP", HOME.lat, HOME.lon),
        ("lc at park", "GOSSIP", "PLAN-B", HOME.lat, HOME.lon),
    ]


def test_a_point_that_has_just_changed_its_mind_waits_if_told_to() -> None:
    town = Points(DensityRule(1, dwell=10.0))
    town.fill(2)
    town.fill(0)
    assert town.points.crowded(("park",))
    assert town.points.statistics().waited == 2
    town.simulation.run(11 * MICROSECONDS)
    assert not town.points.crowded(("park",))


def test_without_a_rule_all_points_are_crowded_and_nothing_switches() -> None:
    town = Points(None)
    assert town.switches([3, 0, 5]) == 0
    assert town.points.crowded(("park",))
    assert town.rows == []


def test_a_point_that_could_never_empty_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="cannot be so until 4 less"):
        DensityRule(3, 4)
