import math
from itertools import pairwise
from random import Random
from statistics import fmean

from hypothesis import given
from hypothesis import strategies as st

from nearcast.runtime.simulation.cellular_outages import Coverage, coverage_of
from nearcast.runtime.simulation.cellular_profile import CellularProfile, Intermittence, Outage

SECOND = 1_000_000_000
WINDOWS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)).map(lambda w: (w[0], w[0] + w[1])), max_size=6)


@given(WINDOWS, st.integers(0, 80), st.integers(0, 20))
def test_a_stretch_lacks_coverage_if_one_of_its_instants_does(
    windows: list[tuple[int, int]], start: int, length: int
) -> None:
    coverage = Coverage(windows, 0, None, Random(1))
    instants = range(start, start + max(length, 1))
    assert coverage.lacks(start, start + length) == any(
        begin <= instant < end for begin, end in windows for instant in instants
    )


@given(st.lists(st.integers(0, 100 * SECOND), min_size=2, max_size=20), st.integers(0, 1_000))
def test_random_outages_do_not_depend_on_who_asks_when(instants: list[int], seed: int) -> None:
    def coverage() -> Coverage:
        return Coverage((), 0, Intermittence(3.0, 2.0), Random(seed))

    asked = coverage()
    assert [asked.lacks(at, at) for at in instants] == [coverage().lacks(at, at) for at in instants]


def test_times_on_and_off_have_the_means_that_were_asked_for() -> None:
    """Exponential: the standard deviation is the mean; bounds are 4.5 standard errors, the seed is fixed."""
    coverage = Coverage((), 0, Intermittence(30.0, 10.0), Random(4))
    assert coverage.lacks(0, 1_000_000 * SECOND)
    windows = coverage._drawn
    assert len(windows) > 20_000
    off = [end - start for start, end in windows]
    on = [later - earlier for (_, earlier), (later, _) in pairwise([(0, 0), *windows])]
    for durations, mean in ((on, 30.0), (off, 10.0)):
        assert abs(fmean(durations) / SECOND - mean) < 4.5 * mean / math.sqrt(len(durations))
        assert min(durations) > 0


def test_a_run_begins_in_coverage_and_outages_are_counted_from_its_start() -> None:
    start = 1_700_000_000 * SECOND
    profile = CellularProfile(outages=(Outage(1.0, 2.0),), intermittence=Intermittence(1e9, 1.0))
    coverage = coverage_of("ada", profile, start, Random(1))
    assert coverage is not None
    asked = (start, start + SECOND - 1, start + SECOND, start + 2 * SECOND - 1, start + 2 * SECOND)
    assert [coverage.lacks(at, at) for at in asked] == [False, False, True, True, False]


def test_a_client_without_outages_has_nothing_to_look_up() -> None:
    assert coverage_of("ada", CellularProfile(), 0, Random(1)) is None
    assert coverage_of("ada", CellularProfile(outages=(Outage(1, 2, frozenset({"bob"})),)), 0, Random(1)) is None
