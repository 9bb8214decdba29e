"""Walking on streets: where people go, how they scatter, and that they have always been walking."""

import math
from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt
import pytest
from tests.runtime.simulation.mobility.measures import (
    Floats,
    chi_square,
    chi_square_bound,
    furthest_bound,
    furthest_from,
    leg_at,
    legs_until,
    mean_bound,
    share_bound,
    speed,
    streams,
)

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.distributions import Uniform
from nearcast.runtime.simulation.mobility.street_walk import StreetWalk
from nearcast.runtime.simulation.streets.graph import AttractionPoint, StreetGraph

ORIGIN = Point(49.8728, 8.6512)
RADIUS = 30.0
POINTS = tuple(
    AttractionPoint(f"park {index}", 100.0 + 400.0 * (index % 3), 300.0 + 400.0 * (index // 3), RADIUS, weight)
    for index, weight in enumerate((1.0, 2.0, 3.0, 1.0, 4.0, 1.0))
)


def ladder(points: tuple[AttractionPoint, ...] = POINTS) -> StreetGraph:
    """Streets every hundred metres in both directions, on a square kilometre."""
    steps = [100.0 * step for step in range(11)]
    streets = [[(x, y) for y in steps] for x in steps] + [[(x, y) for x in steps] for y in steps]
    return StreetGraph(streets, name="ladder", origin=ORIGIN, points=points)


def targets(model: StreetWalk, count: int, seed: int) -> Floats:
    draw, random = model.target(), Random(seed)
    return np.array([draw(random) for _ in range(count)])


def nearest_point(places: Floats) -> npt.NDArray[np.int64]:
    centres = np.array([(point.x, point.y) for point in POINTS])
    distances: Floats = np.hypot(*(places[:, None] - centres).transpose(2, 0, 1))
    nearest: npt.NDArray[np.int64] = distances.argmin(axis=1)
    return nearest


def test_attraction_points_are_chosen_by_weight() -> None:
    count = 20_000
    chosen = np.bincount(nearest_point(targets(StreetWalk(ladder()), count, 1)), minlength=len(POINTS))
    weights = np.array([point.weight for point in POINTS])
    assert chi_square(chosen, count * weights / weights.sum()) < chi_square_bound(len(POINTS) - 1)


def test_visitors_scatter_as_two_normal_axes_do() -> None:
    count = 20_000
    places = targets(StreetWalk(ladder()), count, 2)
    centres = np.array([(point.x, point.y) for point in POINTS])[nearest_point(places)]
    off = np.hypot(*(places - centres).T)
    sigma = RADIUS / 3
    # Rayleigh, and 1 - exp(-9/2) = 98.9 % within the radius: not the 99.7 % of one axis.
    assert furthest_from(off, lambda r: 1 - np.exp(-((r / sigma) ** 2) / 2)) < furthest_bound(count)
    within = 1 - math.exp(-4.5)
    assert within == pytest.approx(0.989, abs=5e-4)
    assert np.mean(off <= RADIUS) == pytest.approx(within, abs=share_bound(within, count))


def test_truncated_nobody_stops_outside_the_radius() -> None:
    count = 20_000
    places = targets(StreetWalk(ladder(), truncate=True), count, 3)
    centres = np.array([(point.x, point.y) for point in POINTS])[nearest_point(places)]
    off = np.hypot(*(places - centres).T)
    assert off.max() <= RADIUS
    sigma = RADIUS / 3
    truncated = 1 - math.exp(-4.5)
    assert furthest_from(off, lambda r: (1 - np.exp(-((r / sigma) ** 2) / 2)) / truncated) < furthest_bound(count)


def test_nobody_is_scattered_out_of_the_map() -> None:
    corner = AttractionPoint("corner", 0.0, 1000.0, 90.0)
    places = targets(StreetWalk(ladder((corner,))), 1_000, 4)
    assert places.min() >= 0.0
    assert places.max() <= 1000.0


def test_anywhere_is_on_a_street_and_all_over_the_map() -> None:
    count = 8_000
    places = targets(StreetWalk(ladder(), "anywhere"), count, 5)
    assert np.abs(places / 100 - np.round(places / 100)).min(axis=1).max() < 1e-9
    # The streets divide the map evenly: each corner gets as many (chi-square with 3 degrees of freedom).
    corners = places[np.abs(places - 500).min(axis=1) > 50]
    counts = np.bincount((corners[:, 0] > 500).astype(int) * 2 + (corners[:, 1] > 500), minlength=4)
    assert chi_square(counts, np.full(4, len(corners) / 4)) < chi_square_bound(3)


@cache
def walk_lengths() -> Floats:
    """Metres between independent targets."""
    model, random = StreetWalk(ladder()), Random(7)
    draw = model.target()
    ways = (model.graph.route(draw(random), draw(random)) for _ in range(5_000))
    return np.array([sum(math.dist(a, b) for a, b in pairwise(way)) for way in ways])


@pytest.mark.parametrize("seconds", [0.0, 120.0, 3_600.0])
def test_the_share_of_walkers_is_the_same_at_any_time(seconds: float) -> None:
    model = StreetWalk(ladder(), pause=Uniform(60.0, 600.0))
    people = 1_000
    moving = np.mean([speed(leg_at(model, random, seconds)) > 0 for random in streams(6, people)])
    lengths = walk_lengths()
    # E[1/V] = ln 2 for speeds between 1 and 2 m/s.
    walk = lengths.mean() * math.log(2)
    expected = walk / (walk + 330.0)
    assert moving == pytest.approx(expected, abs=share_bound(expected, people) + mean_bound(lengths) / lengths.mean())


def test_from_a_standing_start_everybody_sets_out_within_a_minute() -> None:
    # Why walkers start under way by default.
    model = StreetWalk(ladder(), stationary=False)
    moving = [np.mean([speed(leg_at(model, r, seconds)) > 0 for r in streams(8, 300)]) for seconds in (0.0, 30.5, 61.0)]
    assert moving[0] == 0.0
    assert moving[1] == pytest.approx(0.5, abs=share_bound(0.5, 300))
    # All but those who chose the park where they were, with a probability of (1 + 4 + 9 + 1 + 16 + 1) / 12².
    assert moving[2] > 1 - 32 / 144 - share_bound(32 / 144, 300)


def test_the_way_leads_along_streets() -> None:
    legs = legs_until(StreetWalk(ladder(), "anywhere"), Random(9), 20_000.0)
    walks = [leg for leg in legs if speed(leg) > 0]
    assert len(walks) > 100
    # On this map every street runs along an axis.
    assert all(min(abs(leg.vx), abs(leg.vy)) < 1e-6 for leg in walks)
    assert all(1.0 - 1e-6 <= speed(leg) <= 2.0 for leg in walks)


def test_a_walk_ends_at_a_target_and_pauses_there() -> None:
    legs = legs_until(StreetWalk(ladder(), pause=Uniform(60.0, 300.0)), Random(10), 50_000.0)
    pauses = [leg for leg in legs if speed(leg) == 0]
    assert len(pauses) > 50
    off = [min(math.dist((leg.x, leg.y), (point.x, point.y)) for point in POINTS) for leg in pauses]
    assert max(off) < 5 * RADIUS / 3
    # The first may have begun before the run, the last may be looked at before it ends.
    assert all(60e6 <= leg.until - leg.start <= 300e6 for leg in pauses[1:-1])


def test_nowhere_to_go_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no attraction points"):
        StreetWalk(ladder(()))
    with pytest.raises(InvalidInput, match="'anywhere'"):
        StreetWalk(ladder(), "home")  # type: ignore[arg-type]
