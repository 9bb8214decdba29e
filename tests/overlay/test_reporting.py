"""What the network is told of positions: exactly, by service area, by distance."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.routing_changes import edges_of
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidSettings
from nearcast.matching.entries import surely
from nearcast.model.area import Box, Circle
from nearcast.model.geometry import Point, distance
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.reporting import ByDistance, Cells, Exact, Reporting, ServiceArea
from nearcast.overlay.routing.router import Router
from nearcast.overlay.values.possible import possibly

SIDE = 0.01  # degrees


def square(number: int) -> Box:
    """Service areas side by side, from west to east."""
    return Box(8.0 + number * SIDE, 49.0, 8.0 + (number + 1) * SIDE, 49.0 + SIDE)


def overlay_of(size: int, reporting: Any, seed: int = 1) -> Overlay:
    return Overlay(size, lambda: Reference(judge=possibly), reporting, seed=seed)


def network_updates(overlay: Overlay) -> int:
    return sum(router.statistics().knowledge.updates_sent for router in overlay.routers)


def test_inside_one_area_nobody_is_told_and_crossing_costs_two_updates() -> None:
    overlay = overlay_of(3, lambda number: ServiceArea(square(number)))
    overlay.connect([(0, 1), (1, 2)])
    handle = overlay.register(0, {"position": Point(49.005, 8.001), "age": 30})
    overlay.run(10)
    before = network_updates(overlay)
    for step in range(1, 9):
        overlay.update(handle, {"position": Point(49.005, 8.001 + step * SIDE / 10), "age": 30})
    overlay.run(10)
    assert network_updates(overlay) == before
    overlay.remove(handle)
    overlay.register(1, {"position": Point(49.005, 8.011), "age": 30})
    overlay.run(10)
    assert network_updates(overlay) == before + 2 * 2  # two updates, on two links


@given(
    lat=st.floats(-90, 90),
    lon=st.floats(-180, 180),
    degrees=st.sampled_from([0.01, 0.1, 1.0, 7.0, 90.0]),
)
def test_a_cell_stands_for_every_position_in_it(lat: float, lon: float, degrees: float) -> None:
    here = Point(lat, lon)
    cell = Cells(degrees).reported({"position": here, "mode": "car"}, None)["position"]
    assert isinstance(cell, Box)
    assert cell.covers(here)
    assert cell.north - cell.south <= degrees * 1.001
    assert cell.east - cell.west <= degrees * 1.001


def test_within_a_cell_nothing_is_reported_and_without_a_position_neither() -> None:
    cells = Cells(0.01)
    first = cells.reported({"position": Point(52.501, 13.401)}, None)
    assert cells.reported({"position": Point(52.509, 13.409)}, first) == first
    assert cells.reported({"position": Point(52.511, 13.409)}, first) != first
    assert cells.reported({"mode": "car"}, None) == {"mode": "car"}
    with pytest.raises(InvalidSettings):
        Cells(0)


def test_a_position_outside_of_the_area_stays_exact() -> None:
    reporting = ServiceArea(square(0))
    outside = {"position": Point(48.9, 8.0)}
    assert reporting.reported(outside, None) == outside
    coarse = {"position": Circle(50.0, Point(49.005, 8.005))}
    assert reporting.reported(coarse, None) == coarse
    assert reporting.reported({"position": Point(49.0, 8.0)}, None) == {"position": square(0)}


@given(st.data(), st.integers(2, 5), st.integers(0, 2**32))
@settings(max_examples=30)
def test_with_service_areas_nobody_is_missed_and_nobody_else_gets_it(data: st.DataObject, size: int, seed: int) -> None:
    overlay = overlay_of(size, lambda number: ServiceArea(square(number)), seed)
    overlay.connect(data.draw(edges_of(size)))
    random = Random(seed)

    def somewhere(router: int) -> Point:
        return Point(49.0 + random.random() * SIDE, 8.0 + (router + random.random()) * SIDE)

    for _ in range(6):
        router = random.randrange(size)
        handle = overlay.register(router, {"position": somewhere(router), "age": random.randrange(3)})
        for _ in range(random.randrange(3)):
            overlay.update(handle, {"position": somewhere(router), "age": random.randrange(3)})
    overlay.run(60)
    for _ in range(5):
        corner = somewhere(random.randrange(size))
        east = corner.lon + random.random() * SIDE
        to = f"S_WITHIN(position, BBOX({corner.lon}, 49, {east}, {corner.lat})) AND age > {random.randrange(3)}"
        sender = random.randrange(size)
        event = overlay.publish(sender, to)
        overlay.run(20)
        assert overlay.got(event) == overlay.expected(sender, event)
        assert set(overlay.copies(event).values()) <= {1}


@given(st.integers(0, 2**32), st.sampled_from([0.0, 20.0, 250.0]))
def test_by_distance_the_network_is_wrong_by_so_many_metres_at_most(seed: int, metres: float) -> None:
    random, reporting = Random(seed), ByDistance(metres)
    last, at, reports = None, Point(49.0, 8.0), 0
    for _ in range(100):
        at = Point(at.lat + random.uniform(-1, 1) * 1e-4, at.lon + random.uniform(-1, 1) * 1e-4)
        report = reporting.reported({"position": at}, last)
        reports += report != last
        last = report
        position = report["position"]
        assert isinstance(position, Point)
        assert distance(position, at) <= metres
    assert reports == 100 if metres == 0 else reports < 100


def test_by_distance_another_attribute_that_changes_brings_the_position_along() -> None:
    reporting = ByDistance(100.0)
    first = {"position": Point(49.0, 8.0), "age": 1}
    nearby = {"position": Point(49.0001, 8.0), "age": 1}
    assert reporting.reported(nearby, first) == first
    assert reporting.reported({**nearby, "age": 2}, first) == {**nearby, "age": 2}
    assert reporting.reported({**nearby, "age": True}, first) == {**nearby, "age": True}


def missed(reporting: Reporting) -> tuple[int, int]:
    """Of walkers who should get a message, how many do not, when routers know them by their last report."""
    random = Random(5)
    overlay = Overlay(4, Reference, lambda _: reporting, seed=5, check_wire=False)
    overlay.connect([(0, 1), (1, 2), (2, 3)])
    walkers: dict[str, Point] = {}
    for number in range(24):
        at = Point(49.0 + random.random() * SIDE, 8.0 + random.random() * SIDE)
        walkers[overlay.register(number % 4, {"position": at})] = at
    lost = wanted = 0
    for _ in range(25):
        for handle, at in walkers.items():
            moved = Point(at.lat + random.gauss(0, 3e-4), at.lon + random.gauss(0, 3e-4))
            walkers[handle] = moved
            overlay.update(handle, {"position": moved})
        overlay.run(10)
        center = Point(49.0 + random.random() * SIDE, 8.0 + random.random() * SIDE)
        event = overlay.publish(0, f"S_DWITHIN(position, POINT({center.lon} {center.lat}), 200)")
        overlay.run(10)
        expected = set(overlay.expected(0, event))
        wanted += len(expected)
        lost += len(expected - set(overlay.got(event)))
    return lost, wanted


def test_by_distance_some_are_missed_and_exactly_nobody_is() -> None:
    assert missed(Exact())[0] == 0
    few, wanted = missed(ByDistance(20.0))
    many, _ = missed(ByDistance(250.0))
    assert 0 <= few < many < wanted


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, Aggregated])
def test_coarse_reports_need_tables_that_ask_what_is_possible(knowledge: Any) -> None:
    area = ServiceArea(square(0))
    with pytest.raises(InvalidSettings, match="possibly"):
        Router(knowledge(judge=surely), area)
    Router(knowledge(judge=possibly), area)
    Router(knowledge(judge=surely), ByDistance(20.0))


@pytest.mark.parametrize("make", [lambda: ByDistance(-1.0), lambda: ServiceArea(Circle(50.0))])
def test_what_cannot_be_is_refused(make: Any) -> None:
    with pytest.raises(InvalidSettings):
        make()
