"""The city is what the benchmark claims it to be."""

import numpy as np
import pytest
import shapely

from nearcast.benchmark.interests import PREDICATES
from nearcast.benchmark.plane import great_circle, to_degrees, to_plane
from nearcast.benchmark.workload import RADIUS, City, city


def mean_within_reach(world: City) -> float:
    x, y, event_x, event_y = world.plane()
    tree = shapely.STRtree(shapely.points(x, y))
    event, client = tree.query(shapely.box(event_x - RADIUS, event_y - RADIUS, event_x + RADIUS, event_y + RADIUS))
    near = np.hypot(x[client] - event_x[event], y[client] - event_y[event]) <= RADIUS
    return float(near.sum()) / len(world.events)


@pytest.mark.parametrize("clients", [10_000, 100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_about_thirty_clients_are_within_reach_at_any_size(clients: int) -> None:
    assert 27 <= mean_within_reach(city(clients, 5_000)) <= 33


def test_the_same_seed_gives_the_same_city() -> None:
    first, second, other = city(1_000, 100, seed=7), city(1_000, 100, seed=7), city(1_000, 100, seed=8)
    np.testing.assert_array_equal(first.lat, second.lat)
    np.testing.assert_array_equal(first.events.lon, second.events.lon)
    assert first.interests == second.interests
    assert not np.array_equal(first.lat, other.lat)


def test_four_in_five_take_everything_and_the_others_are_choosy() -> None:
    world = city(50_000, 10)
    chosen = [world.interests[number] for number in world.interest.tolist()]
    everything = sum(interest.topic == "city/#" and interest.predicate is None for interest in chosen)
    narrow = sum(interest.topic != "city/#" for interest in chosen)
    assert 0.79 <= everything / len(chosen) <= 0.81
    assert 0.09 <= narrow / len(chosen) <= 0.11


def test_there_are_a_thousand_distinct_predicates_of_one_to_three_terms() -> None:
    predicates = [interest.predicate for interest in city(1_000, 10).interests if interest.predicate is not None]
    assert len({str(predicate) for predicate in predicates}) == PREDICATES
    assert {len(predicate.terms) for predicate in predicates} == {1, 2, 3}
    assert len({term.attribute for predicate in predicates for term in predicate.terms}) == 5


def test_predicates_and_topics_decide_by_columns() -> None:
    world = city(1_000, 500)
    events = world.events
    narrow = next(interest for interest in world.interests if interest.topic == "city/games/#")
    games = events.topics.index("city/games/report")
    np.testing.assert_array_equal(narrow.accepts(events), events.topic == games)
    assert world.interests[0].accepts(events).all()
    choosy = np.stack([interest.accepts(events) for interest in world.interests if interest.predicate is not None])
    assert 0.1 < choosy.mean() < 0.9


def test_the_plane_keeps_distances_far_inside_the_border_band() -> None:
    random = np.random.default_rng(1)
    x, y = random.uniform(-40_000, 40_000, (2, 1_000))
    angle = random.uniform(0, 2 * np.pi, 1_000)
    lat, lon = to_degrees(x, y)
    other = to_degrees(x + RADIUS * np.cos(angle), y + RADIUS * np.sin(angle))
    np.testing.assert_allclose(great_circle(lat, lon, *other), RADIUS, rtol=1e-4)
    np.testing.assert_allclose(to_plane(lat, lon), (x, y), atol=1e-5)
