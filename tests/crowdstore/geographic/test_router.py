"""Routers in the simulator: who hears what, who is told that it was in vain, and how many copies that takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crowdstore.geographic.geography import Geography, cells, crowd

from nearcast.crowdstore.geographic.grid import Cell, rank
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.geographic.messages import PORT, Beacon, Packet, Target, Told
from nearcast.crowdstore.geographic.presence import Presence
from nearcast.errors import InvalidSettings
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import wifi_g

COLUMNS, ROWS = 6, 4
ALL = [Cell(column, row) for row in range(ROWS) for column in range(COLUMNS)]


def connected(populated: set[Cell]) -> dict[Cell, None]:
    """The part of it in which the first cell is."""
    found, queue = {min(populated): None}, [min(populated)]
    while queue:
        cell = queue.pop()
        for each in sorted(populated):
            if each not in found and max(abs(each.column - cell.column), abs(each.row - cell.row)) == 1:
                found[each] = None
                queue.append(each)
    return found


@st.composite
def populations(draw: st.DrawFn) -> dict[Cell, int]:
    chosen = connected(draw(st.sets(st.sampled_from(ALL), min_size=1, max_size=20)))
    return {cell: draw(st.integers(1, 3)) for cell in chosen}


def members(geography: Geography, cell: Cell) -> set[str]:
    return {name for name in geography.names if geography.router(name).cell == cell}


@pytest.mark.parametrize("skip", [False, True])
@settings(max_examples=15)
@given(populations(), st.data())
def test_messages_reach_all_members_of_their_cells_or_of_the_nearest_ones(
    skip: bool, population: dict[Cell, int], data: st.DataObject
) -> None:
    geography = crowd(population, COLUMNS, ROWS, skip=skip)
    if skip:
        geography.run(30)  # until all who are in reach have been heard steadily
    for number in range(6):
        source = data.draw(st.sampled_from(geography.names))
        targets = data.draw(st.lists(st.sampled_from(ALL), min_size=1, max_size=4, unique=True))
        payload = b"%d" % number
        geography.router(source).route([Destination(cell) for cell in targets], payload)
        geography.run(1)
        expected: dict[str, set[Destination]] = {}
        for target in targets:
            for name in members(geography, min(population, key=lambda cell: rank(cell, target))):
                expected.setdefault(name, set()).add(Destination(target))
        got = geography.got(payload)
        assert {name: set(found) for name, found in got.items()} == expected
        assert all(len(found) == len(set(found)) for found in got.values())
    assert geography.total("lost") == geography.total("duplicates") == 0


_FULL = crowd(ALL, COLUMNS, ROWS, skip=False)
"""Where there is no void, and each hop goes to a cell around, the way does not depend on who in a cell a message goes through."""


@settings(max_examples=25)
@given(st.sampled_from(_FULL.names), st.lists(st.sampled_from(ALL), min_size=1, max_size=5, unique=True))
def test_one_message_to_several_takes_no_more_hops_than_several(source: str, targets: list[Cell]) -> None:
    before = _FULL.sent()
    _FULL.router(source).route([Destination(cell) for cell in targets], b"together")
    _FULL.run(1)
    together = _FULL.sent() - before
    for target in targets:
        _FULL.router(source).route([Destination(target)], b"alone")
    _FULL.run(1)
    assert together <= _FULL.sent() - before - together


@settings(max_examples=25)
@given(populations(), st.data())
def test_nodes_get_theirs_and_sources_hear_exactly_of_those_that_are_elsewhere(
    population: dict[Cell, int], data: st.DataObject
) -> None:
    geography = crowd(population, COLUMNS, ROWS)
    source = data.draw(st.sampled_from(geography.names))
    nodes = data.draw(st.lists(st.sampled_from([*geography.names, "nobody"]), min_size=1, max_size=4, unique=True))
    there = [Destination(geography.router(node).cell or ALL[0], node) for node in nodes if node != "nobody"]
    nowhere = [Destination(cell, "nobody") for cell in data.draw(st.sets(st.sampled_from(ALL), max_size=3))]
    geography.router(source).route([*there, *nowhere], b"x")
    geography.run(1)
    assert geography.got(b"x") == {str(each.node): [each] for each in there}
    assert sorted(geography.diary(source).refusals) == sorted((each, b"x") for each in nowhere)


def test_one_copy_where_ways_agree() -> None:
    row = [Cell(column, 1) for column in range(5)]
    geography = crowd([*row, Cell(5, 0), Cell(5, 2)], 6, 3)
    before = geography.sent()
    geography.router("n000").route([Destination(Cell(5, 0)), Destination(Cell(5, 2)), Destination(Cell(3, 1))], b"x")
    geography.run(1)
    # Four along the row, on which one of them is delivered, and one to either end.
    assert geography.sent() - before == 6
    assert len(geography.got(b"x")) == 3


def test_round_a_bay_and_back_with_a_refusal() -> None:
    bay = cells("""
        ######
        #....#
        #....#
        #....#
    """)
    geography = crowd(bay, 6, 4)
    ends = {geography.router(name).cell: name for name in geography.names}
    geography.router(ends[Cell(0, 0)]).route([Destination(Cell(5, 0)), Destination(Cell(5, 0), "nobody")], b"x")
    geography.run(1)
    assert set(geography.got(b"x")) == {ends[Cell(5, 0)]}
    assert geography.diary(ends[Cell(0, 0)]).refusals == [(Destination(Cell(5, 0), "nobody"), b"x")]


def test_who_has_nobody_in_the_cells_around_sends_through_whom_it_hears() -> None:
    """The last in the south-east hears the one two cells north of it, which is farther from the goal in the south-west."""
    geography = crowd(
        cells("""
            .###.
            #...#
            #....
            #...#
        """),
        5,
        4,
    )
    here = {geography.router(name).cell: name for name in geography.names}
    island, far = here[Cell(4, 0)], here[Cell(0, 0)]
    assert not {*geography.router(island).heard()} & {*geography.router(island).grid.neighbours(Cell(4, 0))}
    geography.router(island).route([Destination(Cell(0, 0)), Destination(Cell(0, 0), far)], b"x")
    geography.router(far).route([Destination(Cell(4, 0)), Destination(Cell(4, 0), island)], b"y")
    geography.run(1)
    for payload, receiver in ((b"x", far), (b"y", island)):
        cell = geography.router(receiver).cell
        assert cell is not None
        got = geography.got(payload)
        assert {name: set(found) for name, found in got.items()} == {
            receiver: {Destination(cell), Destination(cell, receiver)}
        }
        assert len(got[receiver]) == 2


def test_members_hear_what_is_told_in_their_cell_and_nobody_else_does() -> None:
    geography = crowd({Cell(0, 0): 3, Cell(1, 0): 2}, 2, 1)
    first, second, third, other, _ = geography.names
    assert geography.router(second).members() == (first, third)
    assert geography.router(third).leader() == first
    assert [geography.router(name).leads for name in geography.names] == [True, False, False, True, False]
    geography.router(second).tell_cell(b"x")
    geography.run(1)
    assert set(geography.got(b"x")) == {first, third}
    assert geography.router(other).heard() == (Cell(0, 0),)


def test_who_leaves_its_cell_forwards_no_more_until_it_stands() -> None:
    # The one in the middle is the only way between the two ends.
    geography = Geography(5, 1, [(20, 20), (60, 20), (100, 20)])
    geography.run(8)
    _, middle, last = geography.names
    assert ("settled", Cell(1, 0)) in geography.diary(middle).happened
    geography.world.motion.put(1, 140.0, 20.0)
    geography.run(1.5)
    assert geography.router(middle).cell is None
    assert ("unsettled", Cell(1, 0)) in geography.diary(middle).happened
    assert ("emptied", Cell(1, 0)) in geography.diary(last).happened
    # It still sends, and hears what is for it.
    geography.router(middle).route([Destination(Cell(2, 0))], b"x")
    geography.router(last).route([Destination(Cell(3, 0), middle)], b"y")
    geography.run(0.5)
    assert set(geography.got(b"x")) == {last}
    assert set(geography.got(b"y")) == {middle}
    geography.run(8)
    assert geography.router(middle).cell == Cell(3, 0)
    assert ("populated", Cell(3, 0)) in geography.diary(last).happened
    geography.router(last).route([Destination(Cell(3, 0))], b"z")
    geography.run(1)
    assert set(geography.got(b"z")) == {middle}


def test_nothing_goes_through_somebody_who_moves() -> None:
    geography = Geography(3, 1, [(20, 20), (60, 20), (100, 20)])
    geography.run(8)
    first, middle, _ = geography.names
    moving = geography.router(middle)
    geography.world.motion.put(1, 60.0, 5_000.0)
    geography.run(1.5)
    assert moving.cell == Cell(1, 0), "beyond the border of the area it is still nearest to its cell"
    geography.world.motion.put(1, 90.0, 20.0)
    geography.run(1.1)
    assert moving.cell is None
    moving._receive(first, Packet(first, 1, 0, 9, 0, (Target(2),), b"x"))
    geography.run(1)
    assert geography.got(b"x") == {}


def test_beacons_expire() -> None:
    geography = crowd({Cell(0, 0): 2, Cell(1, 0): 1}, 2, 1)
    first, second, third = geography.names
    geography.world.hosts[second].fail()
    geography.world.hosts[third].fail()
    geography.run(4)
    assert geography.router(first).members() == (second,)
    geography.run(6)
    assert not geography.router(first).members()
    assert not geography.router(first).heard()
    assert {("left", second), ("emptied", Cell(1, 0))} <= set(geography.diary(first).happened)
    assert geography.router(first).statistics().heard == 0
    assert geography.router(first).nearest(Cell(1, 0))


def test_a_failed_member_is_replaced_by_another_before_it_is_missed() -> None:
    geography = crowd({Cell(0, 0): 1, Cell(1, 0): 3}, 2, 1)
    first, *others = geography.names
    geography.world.hosts[others[0]].fail()
    geography.world.hosts[others[1]].fail()
    for number in range(3):
        geography.router(first).route([Destination(Cell(1, 0))], b"%d" % number)
        geography.run(0.1)
        assert set(geography.got(b"%d" % number)) == {others[2]}
    assert 1 <= geography.total("retried") <= 2
    # And a node that failed is refused.
    geography.router(first).route([Destination(Cell(1, 0), others[0])], b"x")
    geography.run(0.1)
    assert geography.diary(first).refusals == [(Destination(Cell(1, 0), others[0]), b"x")]


def test_a_radio_tells_what_was_not_acknowledged_so_another_member_gets_it() -> None:
    geography = Geography(
        2,
        1,
        [(30, 20), (50, 20), (55, 20)],
        network=lambda simulation, motion: RadioNetwork(simulation, wifi_g(data_rate=6_000_000), motion),
    )
    geography.run(8)
    first, second, third = geography.names
    geography.world.hosts[second].fail()
    for payload in (b"x", b"y"):  # one of them would have gone to the one that failed
        geography.router(first).route([Destination(Cell(1, 0))], payload)
        geography.run(0.2)
        assert set(geography.got(payload)) == {third}
    assert geography.total("retried") == 1


def test_nobody_stands_in_for_a_cell_whose_only_member_was_in_vain_just_now() -> None:
    geography = crowd({Cell(0, 0): 1, Cell(1, 0): 1}, 2, 1)
    first, second = geography.names
    geography.world.hosts[second].fail()
    geography.router(first).route([Destination(Cell(1, 0))], b"x")
    geography.run(0.1)
    assert geography.got(b"x") == {}
    geography.run(10)
    geography.router(first).route([Destination(Cell(1, 0))], b"y")
    geography.run(0.1)
    assert geography.got(b"y") == {first: [Destination(Cell(1, 0))]}


def test_a_host_that_returns_is_not_taken_for_itself() -> None:
    geography = crowd({Cell(0, 0): 1, Cell(1, 0): 1}, 2, 1)
    first, second = geography.names
    for payload in (b"x", b"y"):
        geography.router(first).route([Destination(Cell(1, 0))], payload)
        geography.run(1)
        geography.world.hosts[first].fail()
        geography.world.hosts[first].join()
        geography.run(8)
    assert [what for *_, what in geography.diary(second).arrivals] == [b"x", b"y"]


@settings(max_examples=50)
@given(
    st.one_of(
        st.builds(Beacon, st.integers(0, 65535)),
        st.builds(
            Packet, st.sampled_from(["n001", "n000", "x"]), st.integers(0, 9), st.integers(0, 32767), st.integers(0, 300),
            st.integers(0, 32767),
            st.lists(st.builds(Target, st.one_of(st.integers(0, 3), st.integers(0, 32767)), st.sampled_from([None, "n000", "x"]),
                st.none() | st.tuples(st.integers(0, 5), st.integers(0, 5))), min_size=1, max_size=4).map(tuple),
            st.binary(max_size=9), st.booleans()),
        st.builds(Told, st.just("x"), st.integers(0, 9), st.integers(0, 32767), st.integers(0, 3),
            st.lists(st.integers(0, 32767), min_size=1, max_size=3).map(tuple), st.binary(max_size=9)),
    )
)  # fmt: skip
def test_hostile_messages_do_no_harm(message: Beacon | Packet | Told) -> None:
    geography = crowd({Cell(0, 0): 2, Cell(1, 0): 1}, 2, 1)
    first, _, third = geography.names
    for name in ("x", first):
        geography.router(third)._receive(name, message)
        geography.run(1)
    assert geography.diary(first).refusals == []
    geography.run(2)
    geography.router(first).route([Destination(Cell(1, 0))], b"really")
    geography.run(1)
    assert set(geography.got(b"really")) == {third}


def test_a_stopped_router_is_silent_and_may_start_again() -> None:
    geography = crowd({Cell(0, 0): 1, Cell(1, 0): 1}, 2, 1)
    first, second = geography.names
    router = geography.router(first)
    router.stop()
    router.route([Destination(Cell(1, 0))], b"x")
    router.tell_cell(b"x")
    geography.run(10)
    assert geography.got(b"x") == {}
    assert geography.router(second).heard() == ()
    assert PORT not in geography.network.links[first].open_ports
    router.start()
    geography.run(8)
    router.route([Destination(Cell(1, 0))], b"y")
    geography.run(1)
    assert set(geography.got(b"y")) == {second}


def test_impossible_settings() -> None:
    with pytest.raises(InvalidSettings):
        Presence(beacon=0)
