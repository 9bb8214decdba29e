"""Topologies of the experiments: connected, of the size asked for, and with the distribution that their names promise."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.overlay.topology.link_state import LinkStates
from nearcast.overlay.topology.models import (
    Layout,
    area_around,
    hot_tree,
    on_plane,
    share_of_first,
    squares,
    waxman,
    zipf,
    zipf_choice,
    zipf_exponent,
)
from nearcast.overlay.topology.spanning_tree import tree_at
from nearcast.runtime.simulation.plane import Plane

PLANE = Plane(Point(48.78, 9.18))


def reached(layout: Layout) -> set[int]:
    """From the first node."""
    near: dict[int, list[int]] = {node: [] for node in range(layout.nodes)}
    for one, other in layout.links:
        near[one].append(other)
        near[other].append(one)
    seen, waiting = {0}, [0]
    while waiting:
        for node in near[waiting.pop()]:
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return seen


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 30), st.data(), st.floats(0.01, 3))
def test_a_waxman_topology_is_connected_and_has_as_many_links_as_asked_for(
    seed: int, nodes: int, data: st.DataObject, beta: float
) -> None:
    links = data.draw(st.integers(nodes - 1, nodes * (nodes - 1) // 2))
    layout = waxman(Random(seed), nodes, links, beta=beta)
    assert len(layout.links) == len(set(layout.links)) == links
    assert all(0 <= one < other < nodes for one, other in layout.links)
    assert reached(layout) == set(range(nodes))
    assert sum(layout.degrees()) == 2 * links


def test_the_documents_waxman_topology_is_one() -> None:
    layout = waxman(Random(1), 1_000, 2_000)
    assert reached(layout) == set(range(1_000))
    assert len(layout.links) == 2_000


def test_long_links_are_rarer_by_waxmans_law() -> None:
    """Of all pairs of a length, the share that is linked falls by exp(-d / (beta L)): among those that were drawn as pairs."""
    beta = 0.15
    linked, pairs = np.zeros(2), np.zeros(2)
    for seed in range(6):
        layout = waxman(Random(seed), 400, 3_000, beta=beta)
        x, y = layout.places.T
        away = np.hypot(x[:, None] - x, y[:, None] - y)
        lengths = np.array([away[link] for link in layout.links])
        for number, length in enumerate((0.2, 0.5)):
            linked[number] += np.sum(np.abs(lengths - length) < 0.02)
            pairs[number] += np.sum(np.abs(away - length) < 0.02) / 2
    expected = math.exp(-(0.5 - 0.2) / (beta * math.sqrt(2)))
    near, far = linked / pairs
    assert far / near == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize(("nodes", "links"), [(5, 3), (5, 11), (0, 0)])
def test_what_cannot_hang_together_is_refused(nodes: int, links: int) -> None:
    with pytest.raises(InvalidInput, match="cannot hang together"):
        waxman(Random(1), nodes, links)


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(0, 50))
def test_each_node_of_a_hot_tree_joined_the_best_there_was(seed: int, nodes: int, gamma: float) -> None:
    layout = hot_tree(Random(seed), nodes, gamma)
    joined = {node: parent for parent, node in layout.links}
    assert set(joined) == set(range(1, nodes))
    hops = {0: 0}
    for node in range(1, nodes):
        costs = {other: gamma * math.dist(layout.places[other], layout.places[node]) + hops[other] for other in hops}
        assert costs[joined[node]] == pytest.approx(min(costs.values()))
        hops[node] = hops[joined[node]] + 1
    assert reached(layout) == set(range(nodes))


def test_without_distance_it_is_a_star_and_without_hops_everybody_joins_the_nearest() -> None:
    assert all(parent == 0 for parent, _ in hot_tree(Random(3), 300, 1 / math.sqrt(2)).links)
    layout = hot_tree(Random(3), 300, 1e9)
    for parent, node in layout.links:
        away = np.hypot(*(layout.places[:node] - layout.places[node]).T)
        assert away[parent] == away.min()


def test_the_more_distance_counts_the_fewer_links_has_the_largest_hub() -> None:
    hubs = [max(hot_tree(Random(1), 500, gamma).degrees()) for gamma in (2.0, 5.0, math.sqrt(500), 5_000.0)]
    assert all(hub > 1.5 * next_hub for hub, next_hub in pairwise(hubs))


def test_zipf_gives_the_first_fifth_the_share_that_the_document_says() -> None:
    assert zipf(5, 1.0) == pytest.approx(np.array([60, 30, 20, 15, 12]) / 137)
    assert share_of_first(10_000, 0.95) == pytest.approx(0.80, abs=0.01)
    assert zipf_exponent(10_000) == pytest.approx(0.95, abs=0.01)
    # Of the 300 trusted nodes it takes more.
    assert zipf_exponent(300) == pytest.approx(1.10, abs=0.01)
    assert share_of_first(300, zipf_exponent(300)) == pytest.approx(0.8)


def test_access_nodes_are_different_and_those_of_the_first_ranks_most_likely() -> None:
    ranked = list(range(100, 0, -1))
    random, times = Random(1), dict.fromkeys(ranked, 0)
    for _ in range(2_000):
        for node in zipf_choice(random, ranked, 1, 1.0):
            times[node] += 1
    expected = zipf(100, 1.0)
    for rank in (0, 1, 4):
        assert times[ranked[rank]] == pytest.approx(2_000 * expected[rank], abs=4 * math.sqrt(2_000 * expected[rank]))
    chosen = zipf_choice(random, ranked, 70, 0.95)
    assert len(set(chosen)) == 70
    assert chosen == sorted(chosen, reverse=True)
    assert zipf_choice(random, ranked, 100, 0.95) == ranked
    assert zipf_choice(random, ranked, 0, 0.95) == []
    with pytest.raises(InvalidInput, match="101 of 100"):
        zipf_choice(random, ranked, 101, 0.95)


@pytest.mark.parametrize("wrong", [(0, 1.0), (5, -1.0), (5, math.inf)])
def test_zipf_needs_ranks_and_an_exponent(wrong: tuple[int, float]) -> None:
    with pytest.raises(InvalidInput):
        zipf(*wrong)


def test_hubs_come_first() -> None:
    layout = hot_tree(Random(2), 200, math.sqrt(200))
    degrees = layout.degrees()
    ranked = layout.by_degree()
    assert [degrees[node] for node in ranked] == sorted(degrees, reverse=True)
    assert sorted(ranked) == list(range(200))


@given(st.integers(0, 10**6), st.floats(0, 1), st.floats(0, 1))
def test_a_service_area_lies_around_its_node_and_within_the_square(seed: int, x: float, y: float) -> None:
    west, south, east, north = area_around(Random(seed), x, y, 0.04, 0.06)
    assert 0 <= west <= x <= east <= 1
    assert 0 <= south <= y <= north <= 1
    assert 0.02 - 1e-9 <= east - west <= 0.06 + 1e-9
    if 0.03 <= x <= 0.97:
        assert east - west >= 0.04 - 1e-9


def test_squares_cover_everything_once() -> None:
    areas = squares(20)
    assert len(set(areas)) == 400
    assert sum((east - west) * (north - south) for west, south, east, north in areas) == pytest.approx(1)


def test_a_layout_is_a_topology_to_start_with() -> None:
    layout = waxman(Random(1), 120, 240)
    places, given_states = on_plane(layout, PLANE.to_point, 10_000.0)
    assert list(places)[:2] == ["r000", "r001"]
    tree = tree_at("r000", LinkStates(given_states))
    assert tree.routers == tuple(places)


def test_the_same_seed_is_the_same_topology() -> None:
    assert waxman(Random(4), 50, 100).links == waxman(Random(4), 50, 100).links != waxman(Random(5), 50, 100).links
    assert hot_tree(Random(4), 50, 7.0).links == hot_tree(Random(4), 50, 7.0).links
