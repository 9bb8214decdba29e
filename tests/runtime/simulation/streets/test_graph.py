"""Routes are shortest ways along streets, whatever order the streets came in and whatever was asked before."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, count, pairwise

import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput, InvalidMap, InvalidPosition
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Bounds
from nearcast.runtime.simulation.streets.graph import AttractionPoint, Place, StreetGraph
from nearcast.runtime.simulation.streets.pieces import XY, Line, clipped

ORIGIN = Point(49.87, 8.65)
Piece = tuple[XY, XY]

corners = st.tuples(st.integers(0, 9).map(lambda k: 31.0 * k), st.integers(0, 9).map(lambda k: 17.0 * k))
streets = st.lists(st.lists(corners, min_size=2, max_size=4), min_size=1, max_size=30).filter(
    lambda lines: any(a != b for line in lines for a, b in pairwise(line))
)
places = st.tuples(st.floats(-50, 330), st.floats(-50, 210))


def graph_of(lines: Sequence[Line]) -> StreetGraph:
    return StreetGraph(lines, origin=ORIGIN)


def length_of(way: list[XY]) -> float:
    return sum(math.dist(a, b) for a, b in pairwise(way))


def pieces_of(graph: StreetGraph) -> list[Piece]:
    return [piece for edge in graph.edges for piece in pairwise(edge.geometry)]


def distance_to_piece(place: XY, piece: Piece) -> float:
    return float(shapely.distance(shapely.Point(place), shapely.LineString(piece)))


def shortest(graph: StreetGraph, start: Place, end: Place) -> float:
    """Dijkstra once more, over all corners, with both places as corners of their own on the pieces where they are.

    Where streets lie on top of each other or cross without meeting, a place is only on the one it names.
    """
    ways: dict[XY | Place, list[tuple[float, XY | Place]]] = defaultdict(list)
    for number, edge in enumerate(graph.edges):
        for piece, (a, b) in enumerate(pairwise(edge.geometry)):
            here = [place for place in (start, end) if (place.edge, place.piece) == (number, piece)]
            stops: list[tuple[float, XY | Place]] = [
                (0.0, a),
                *((math.dist(a, p[3:5]), p) for p in here),
                (math.dist(a, b), b),
            ]
            for (near, p), (far, q) in combinations(stops, 2):
                ways[p].append((abs(far - near), q))
                ways[q].append((abs(far - near), p))
    distance: dict[XY | Place, float] = {}
    queue: list[tuple[float, int, XY | Place]] = [(0.0, 0, start)]
    pushed = count(1)
    while queue:
        so_far, _, here_now = heapq.heappop(queue)
        if here_now not in distance:
            distance[here_now] = so_far
            for step, there in ways[here_now]:
                heapq.heappush(queue, (so_far + step, next(pushed), there))
    return distance[end]


@given(streets, places, places)
def test_a_route_is_as_long_as_the_shortest_way_and_never_shorter_than_the_straight_line(
    lines: list[list[XY]], origin: XY, target: XY
) -> None:
    graph = graph_of(lines)
    here, there = graph.nearest(*origin), graph.nearest(*target)
    straight, off = math.dist(origin, target), here.off + there.off
    along_streets = shortest(graph, here, there)
    route = graph.route(origin, target)
    assert route[0] == origin
    assert route[-1] == target
    assert length_of(route) == pytest.approx(straight if straight <= off else off + along_streets, abs=1e-6)
    assert length_of(route) >= straight - 1e-9
    assert all(a != b for a, b in pairwise(route))


@given(streets, places, places)
def test_between_its_first_and_last_piece_a_route_stays_on_streets(
    lines: list[list[XY]], origin: XY, target: XY
) -> None:
    graph = graph_of(lines)
    pieces = pieces_of(graph)
    for a, b in pairwise(graph.route(origin, target)[1:-1]):
        middle = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
        assert any(all(distance_to_piece(place, piece) < 1e-6 for place in (a, middle, b)) for piece in pieces)


@given(streets, places)
def test_the_nearest_place_is_on_a_street_and_none_is_nearer(lines: list[list[XY]], place: XY) -> None:
    graph = graph_of(lines)
    found = graph.nearest(*place)
    edge = graph.edges[found.edge]
    assert found.off == pytest.approx(min(distance_to_piece(place, piece) for piece in pieces_of(graph)), abs=1e-9)
    assert distance_to_piece((found.x, found.y), edge.geometry[found.piece : found.piece + 2]) < 1e-9  # type: ignore[arg-type]
    assert found.along == pytest.approx(
        edge.along[found.piece] + math.dist(edge.geometry[found.piece], (found.x, found.y)), abs=1e-9
    )


@given(streets)
def test_all_metres_are_kept_once_or_reported_as_dropped(lines: list[list[XY]]) -> None:
    graph = graph_of(lines)
    drawn = {frozenset((a, b)) for line in lines for a, b in pairwise(line) if a != b}
    statistics = graph.statistics()
    total = sum(math.dist(*piece) for piece in drawn)
    assert statistics.metres + statistics.dropped_metres == pytest.approx(total)
    assert (statistics.dropped_parts > 0) == (statistics.dropped_metres > 0)
    assert statistics.metres >= total / (statistics.dropped_parts + 1) - 1e-6  # the largest part is what was kept


@given(streets)
def test_everything_kept_is_connected_and_no_unbranched_way_is_divided(lines: list[list[XY]]) -> None:
    graph = graph_of(lines)
    beyond = defaultdict(set)
    for edge in graph.edges:
        assert edge.start != edge.end
        assert (edge.geometry[0], edge.geometry[-1]) == (graph.nodes[edge.start], graph.nodes[edge.end])
        beyond[edge.start].add(edge.end)
        beyond[edge.end].add(edge.start)
    reached, fresh = {0}, [0]
    while fresh:
        new = beyond[fresh.pop()] - reached
        reached |= new
        fresh += new
    assert reached == set(range(len(graph.nodes)))
    # A node of two edges is only there where a ring needs one: both of its edges belong to a way back to one junction.
    for node, others in beyond.items():
        if sum(node in (edge.start, edge.end) for edge in graph.edges) == 2:
            assert len(others) == 1


@given(streets, st.randoms(use_true_random=False), places, places)
def test_the_order_and_direction_in_which_streets_come_does_not_matter(
    lines: list[list[XY]], random: object, origin: XY, target: XY
) -> None:
    graph = graph_of(lines)
    statistics = graph.statistics()
    # Of several parts of equal length, rounding decides which one is called the largest.
    assume(statistics.metres > statistics.dropped_metres)
    shuffled = [line[::-1] if random.random() < 0.5 else line for line in lines]  # type: ignore[attr-defined]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = graph_of(shuffled)
    assert (other.nodes, other.edges) == (graph.nodes, graph.edges)
    assert other.route(origin, target) == graph.route(origin, target)


def lattice(size: int, step: float = 50.0) -> list[list[XY]]:
    """Full of ties: all monotone ways between two corners are equally long."""
    at = [step * k for k in range(size)]
    return [[(x, y) for x in at] for y in at] + [[(x, y) for y in at] for x in at]


def test_whoever_is_nearer_to_the_target_than_to_a_street_goes_straight() -> None:
    graph = graph_of([[(0.0, 0.0), (100.0, 0.0)]])
    assert graph.route((10.0, 30.0), (60.0, 30.0)) == [(10.0, 30.0), (60.0, 30.0)]
    assert graph.route((10.0, 30.0), (80.0, 30.0)) == [(10.0, 30.0), (10.0, 0.0), (80.0, 0.0), (80.0, 30.0)]


def test_a_route_to_where_one_is_has_one_way_point() -> None:
    graph = graph_of([[(0.0, 0.0), (100.0, 0.0)]])
    assert graph.route((40.0, 0.0), (40.0, 0.0)) == [(40.0, 0.0)]
    assert graph.route((40.0, 7.0), (40.0, 7.0)) == [(40.0, 7.0)]


def test_around_a_ring_the_shorter_side_is_taken_even_within_one_street() -> None:
    ring: list[XY] = [(0.0, 0.0), (0.0, 100.0), (100.0, 100.0), (100.0, 0.0)]
    graph = graph_of([[*ring, ring[0]], [(0.0, 0.0), (-50.0, 0.0)]])
    assert graph.route((10.0, 0.0), (0.0, 10.0)) == [(10.0, 0.0), (0.0, 0.0), (0.0, 10.0)]
    assert graph.route((90.0, 0.0), (100.0, 30.0)) == [(90.0, 0.0), (100.0, 0.0), (100.0, 30.0)]


def test_streets_that_cross_without_a_common_corner_do_not_meet() -> None:
    bridge: list[Line] = [[(0.0, 50.0), (100.0, 50.0)], [(50.0, 0.0), (50.0, 100.0)], [(100.0, 50.0), (50.0, 100.0)]]
    graph = StreetGraph(bridge, origin=ORIGIN)
    assert (50.0, 100.0) in graph.route((10.0, 50.0), (50.0, 10.0))


def test_clipping_ends_streets_at_the_border() -> None:
    inside = clipped(
        [[(-100.0, 0.0), (100.0, 0.0)], [(0.0, 10.0), (0.0, 60.0)], [(80.0, 80.0), (90.0, 90.0)]],
        Bounds.around(100.0, 100.0),
    )
    assert sorted(sorted(map(tuple, line)) for line in inside) == [
        [(-50.0, 0.0), (50.0, 0.0)],
        [(0.0, 10.0), (0.0, 50.0)],
    ]


def test_other_attraction_points_leave_the_streets_as_they_are() -> None:
    graph = graph_of([[(0.0, 0.0), (100.0, 0.0)]])
    hot = AttractionPoint("market", 20.0, 5.0, radius=50.0, weight=3.0)
    other = graph.with_points([hot])
    assert (graph.points, other.points) == ((), (hot,))
    assert other.edges is graph.edges
    assert other.statistics().attraction_points == 1


def test_bad_input_is_refused_with_a_reason() -> None:
    graph = graph_of([[(0.0, 0.0), (100.0, 0.0)]])
    with pytest.raises(InvalidMap, match="no street to walk on"):
        graph_of([])
    with pytest.raises(InvalidMap, match="no street to walk on"):
        graph_of([[(1.0, 1.0), (1.0, 1.0)]])
    with pytest.raises(InvalidMap, match="a corner that is no place"):
        graph_of([[(0.0, 0.0), (math.nan, 1.0)]])
    with pytest.raises(InvalidPosition, match="no place"):
        graph.route((math.nan, 0.0), (1.0, 1.0))
    with pytest.raises(InvalidPosition, match="'a' is at"):
        AttractionPoint("a", math.inf, 0.0)
    with pytest.raises(InvalidPosition, match="radius of attraction point 'a'"):
        AttractionPoint("a", 0.0, 0.0, radius=0.0)
    with pytest.raises(InvalidInput, match="weight 0"):
        AttractionPoint("a", 0.0, 0.0, weight=0.0)
    with pytest.raises(InvalidInput, match="two attraction points are called 'a'"):
        graph.with_points([AttractionPoint("a", 0.0, 0.0), AttractionPoint("a", 1.0, 0.0)])


def test_routes_do_not_depend_on_what_was_asked_before() -> None:
    asked: list[tuple[XY, XY]] = [
        ((50.0 * a, 50.0 * b + 3.0), (50.0 * b, 50.0 * c)) for a in range(5) for b in range(5) for c in range(5)
    ]
    fresh = [StreetGraph(lattice(5), origin=ORIGIN).route(*way) for way in asked]
    graph = StreetGraph(lattice(5), origin=ORIGIN)
    assert [graph.route(*way) for way in reversed(asked)] == fresh[::-1]
