"""Messages skip cells where hosts farther away are heard steadily, and what a host tells its cell stands for a beacon."""

from __future__ import annotations

import pytest
from tests.crowdstore.geographic.geography import SETTLED, Geography

from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.geographic.presence import STEADY, Presence, Surroundings
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS

ROW = [(40.0 * column + 20.0, 20.0) for column in range(13)]
"""One host in the middle of each cell: the radio reaches the second one to either side, and not the third."""

STEADILY = 2.0 * 1.25 * (STEADY + 2)
"""Seconds after which everybody in reach has been heard without a gap."""


def _hops(geography: Geography, payload: bytes) -> int:
    before = geography.sent()
    geography.router("n000").route([Destination(Cell(12, 0))], payload)
    geography.run(1)
    assert set(geography.got(payload)) == {"n012"}
    return geography.sent() - before


def test_hops_are_half_as_many_once_those_farther_away_are_heard_steadily() -> None:
    geography = Geography(13, 1, ROW)
    geography.run(SETTLED)
    assert _hops(geography, b"early") == 12
    geography.run(STEADILY)
    assert _hops(geography, b"later") == 6


def test_the_papers_way_goes_from_cell_to_cell() -> None:
    geography = Geography(13, 1, ROW, presence=Presence(skip=False))
    geography.run(SETTLED + STEADILY)
    assert _hops(geography, b"x") == 12


def test_who_does_not_answer_is_not_skipped_to_for_a_while() -> None:
    geography = Geography(13, 1, ROW)
    geography.run(SETTLED + STEADILY)
    geography.world.hosts["n002"].fail()
    geography.router("n000")._transit.in_vain("n002", object())  # type: ignore[arg-type]
    assert _hops(geography, b"round") > 6


@pytest.mark.parametrize("lost", [None, 4], ids=["without a gap", "with one"])
def test_a_gap_begins_the_count_anew(lost: int | None) -> None:
    now = 0
    around = Surroundings(CellGrid(Point(0.0, 0.0), 400.0, 40.0), lambda: now, 2.0)
    for number in range(STEADY):
        now += 2 * MICROSECONDS
        if number != lost:
            around.beacon("far", 2 * 5)
    assert around.usable(Cell(5, 0)) == ["far"]
    assert around.steady(Cell(5, 0)) == (["far"] if lost is None else [])
    for _ in range(STEADY):
        now += 3 * MICROSECONDS  # as far apart as two that follow each other may be
        around.beacon("far", 2 * 5)
    assert around.steady(Cell(5, 0)) == ["far"]
    around.suspect("far")
    around.beacon("far", 2 * 5)
    assert around.usable(Cell(5, 0)) == ["far"]
    assert around.steady(Cell(5, 0)) == []


def test_who_tells_its_cell_something_needs_no_beacons_and_still_misses_who_has_gone() -> None:
    geography = Geography(1, 1, [(10.0, 10.0), (20.0, 20.0), (30.0, 30.0)])
    geography.run(SETTLED)
    talker, listener, leaver = geography.names
    before = geography.router(talker).tally.beacons
    for number in range(40):
        if number == 20:
            geography.world.hosts[leaver].fail()
        geography.router(talker).tell_cell(b"%d" % number)
        geography.run(1)
    assert geography.router(talker).tally.beacons == before
    assert geography.router(listener).members() == (talker,)
    assert geography.router(talker).members() == (listener,)
