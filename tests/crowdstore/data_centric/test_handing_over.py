"""Cells empty and fill: what one of them has answered for is still found (THYME 5.8.2)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.samples import indexed
from tests.crowdstore.data_centric.venue import JOINED, cell_of, dcs, in_cell, storage, tag_at, walk
from tests.crowdstore.geographic.geography import cells
from tests.effort import examples

from nearcast.crowdstore.data_centric.entries import Part
from nearcast.crowdstore.data_centric.messages import Handed
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.router import CellRouter
from nearcast.model.time import TimeFrame

SETTLED = 20.0
"""Seconds after which somebody who has walked is a member elsewhere, and all is handed over."""


def _row(*columns: int, width: int = 4, **parameters: float | bool) -> Crowd:
    """``n0``, ``n1``, ... in cells of one row."""
    places = [in_cell(column, 0, number) for number, column in enumerate(columns)]
    crowd = Crowd(places, dcs(width, 1, **parameters))
    crowd.run(JOINED)
    return crowd


def _all_is_found(crowd: Crowd, tag: str, reader: str, writer: str) -> None:
    """What was published before, by whoever subscribes now; and what is published now, by whoever subscribed before."""
    crowd.subscribe(reader, tag)
    crowd.run(5)
    crowd.publish(writer, f"new {crowd.simulation.now()}", tag)
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected()
    assert len(crowd.heard.notified) == len({*crowd.heard.notified})
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)


def _handed(crowd: Crowd) -> int:
    return sum(int(store.statistics().storage.handed) for store in crowd.stores.values())


def test_when_the_last_member_walks_away_its_keys_are_where_they_are_looked_for() -> None:
    crowd = _row(0, 1, 2)
    tag = tag_at(crowd, 1)
    crowd.publish("n2", "before", tag)
    crowd.subscribe("n0", tag)
    crowd.run(5)
    walk(crowd, "n1", 2)
    crowd.run(SETTLED)
    assert cell_of(crowd, "n1") == Cell(2, 0)
    _all_is_found(crowd, tag, "n2", "n1")


def test_also_when_the_last_two_leave_at_the_same_moment() -> None:
    crowd = _row(0, 1, 1, 2)
    tag = tag_at(crowd, 1)
    made = crowd.publish("n1", "before", tag)
    crowd.subscribe("n0", tag)
    crowd.run(5)
    walk(crowd, "n1", 0)
    walk(crowd, "n2", 2)
    crowd.run(SETTLED)
    _all_is_found(crowd, tag, "n3", "n1")
    # The copies, too: with whoever left.
    assert made.key in crowd.stores["n2"].nucleus.held


def test_who_leaves_others_behind_hands_nothing_over_and_holds_no_copies_for_them() -> None:
    crowd = _row(0, 1, 1, 2)
    tag = tag_at(crowd, 1)
    made = crowd.publish("n1", "before", tag)
    crowd.run(5)
    assert made.key in crowd.stores["n2"].nucleus.held
    walk(crowd, "n2", 2)
    crowd.run(SETTLED)
    assert made.key not in crowd.stores["n2"].nucleus.held
    assert _handed(crowd) == 0
    _all_is_found(crowd, tag, "n3", "n2")


def test_the_first_member_of_a_cell_gets_its_keys_from_who_stood_in_for_it() -> None:
    crowd = _row(0, 0, 2)
    tag = tag_at(crowd, 3)
    crowd.publish("n0", "before", tag)
    crowd.subscribe("n1", tag)
    crowd.run(5)
    assert storage(crowd, "n2").desk.state.entries
    walk(crowd, "n1", 3)
    crowd.run(SETTLED)
    assert not [entry for entry in storage(crowd, "n2").desk.state.entries if entry[0] in "ip"]
    assert [entry[0] for entry in storage(crowd, "n1").desk.state.entries] == ["i", "p"]
    _all_is_found(crowd, tag, "n2", "n0")


def test_what_is_handed_over_while_the_acting_member_still_joins_is_told_when_it_has() -> None:
    crowd = _row(2, 1, 0, 0, width=3)
    tag = tag_at(crowd, 1)
    wish = crowd.subscribe("n3", tag)
    crowd.run(5)
    walk(crowd, "n0", 1)
    while cell_of(crowd, "n0") != Cell(1, 0):
        crowd.run(0.1)
    crowd.run(0.5)
    assert not storage(crowd, "n0").joining.complete
    # Cell 0 kept it for cell 1, and another cell a subscription, as after standing in for it.
    found = indexed("gone", "x", [tag], [tag])
    storage(crowd, "n2")._handing_over._send(Cell(1, 0), [found])
    crowd.run(60)
    assert (wish, found.key) in crowd.heard.notified


def test_a_subscription_that_is_handed_over_then_hears_of_what_its_cell_has_told_others_before() -> None:
    crowd = _row(2, 1, 0, 0, width=3)
    tag, now = tag_at(crowd, 1), crowd.simulation.now()
    # It was made before, and kept elsewhere when the object came.
    wish = crowd.subscribe("n3", tag, TimeFrame(now, None))
    crowd.run(5)
    (part,) = [e for e in storage(crowd, "n1").desk.state.entries.values() if isinstance(e, Part)]
    storage(crowd, "n1").desk.state.drop(part)
    made = crowd.publish("n2", "x", tag)
    crowd.run(5)
    assert crowd.heard.notified == []
    walk(crowd, "n0", 1)
    while cell_of(crowd, "n0") != Cell(1, 0):
        crowd.run(0.1)
    assert not storage(crowd, "n0").joining.complete
    storage(crowd, "n2")._handing_over._send(Cell(1, 0), [part])
    crowd.run(60)
    assert crowd.heard.notified == [(wish, made.key)]


@pytest.mark.parametrize("together", [False, True])
def test_who_settles_across_a_gap_hears_of_conjunctions_without_a_key(together: bool) -> None:
    crowd = _row(0, 0, 0, 0)
    crowd.subscribe("n0", "!unwanted")
    crowd.run(5)
    walk(crowd, "n2", 2)
    if together:  # each takes the other for somebody who knows
        walk(crowd, "n3", 2, number=2)
    crowd.run(2 * SETTLED)
    assert cell_of(crowd, "n2") == Cell(2, 0)
    crowd.publish("n1", "x", tag_at(crowd, 2))
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected() != set()


def test_who_settles_alone_hears_of_them_when_it_hears_somebody() -> None:
    crowd = _row(0, 0, 0, 0, width=8)
    crowd.subscribe("n0", "!unwanted")
    crowd.run(5)
    walk(crowd, "n2", 7)
    crowd.run(2 * SETTLED)
    assert not any(entry[0] == "p" for entry in storage(crowd, "n2").desk.state.entries)
    for name, column in (("n1", 2), ("n3", 5)):
        walk(crowd, name, column)
        crowd.run(2 * SETTLED)
    crowd.publish("n1", "x", tag_at(crowd, 7))
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected() != set()


def test_made_up_members_fill_nothing() -> None:
    crowd = _row(0, 1)
    there = storage(crowd, "n0")
    assert isinstance(there.desk.router, CellRouter)
    for number in range(100):
        there.desk.router.hear(f"liar{number}", 0)
    assert len(there._handing_over._since) == 100
    crowd.run(SETTLED)
    assert not there._handing_over._since


def test_the_first_member_hears_of_conjunctions_without_a_key_and_of_what_was_withdrawn() -> None:
    crowd = _row(0, 1, 2)
    crowd.subscribe("n0", "!unwanted")
    tag = tag_at(crowd, 3)
    crowd.publish("n1", "withdrawn", tag, "x")
    crowd.run(5)
    crowd.unpublish("n1", "withdrawn")
    crowd.run(5)
    walk(crowd, "n1", 3)
    crowd.run(SETTLED)
    kinds = sorted(entry[0] for entry in storage(crowd, "n1").desk.state.entries)
    assert kinds == ["g", "p"]
    _all_is_found(crowd, tag, "n2", "n1")


def test_all_wander_one_after_the_other_and_nothing_is_lost() -> None:
    crowd = _row(0, 1, 2, 3)
    tags = [tag_at(crowd, column) for column in range(4)]
    for number, tag in enumerate(tags):
        crowd.publish(f"n{number}", "before", tag)
        crowd.subscribe(f"n{3 - number}", tag)
    crowd.run(5)
    for host, column in (("n3", 2), ("n0", 1), ("n1", 2), ("n0", 2), ("n2", 1), ("n3", 1), ("n0", 0), ("n1", 3)):
        walk(crowd, host, column)
        crowd.run(SETTLED)
    for number, tag in enumerate(tags):
        _all_is_found(crowd, tag, f"n{number}", f"n{3 - number}")


@examples(8)
@example([(0, 0, 1, 4), (2, 0, 0, 1)])  # the only other member left while the first was still joining
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 1), st.sampled_from([1, 4, 20])),
        min_size=1,
        max_size=8,
    )
)
def test_nothing_that_was_answered_for_is_lost_whoever_walks_where(moves: list[tuple[int, int, int, int]]) -> None:
    """All stay in reach of each other: 160 x 80 m, with one host that stands in the middle of each row."""
    places = [in_cell(number % 4, number // 4) for number in (0, 3, 4, 7, 1, 5, 2, 6)]
    crowd = Crowd(places, dcs(4, 2))
    crowd.run(JOINED)
    tags = [tag_at(crowd, column, row) for column in range(4) for row in range(2)]
    for number, tag in enumerate(tags):
        crowd.publish(f"n{number}", "before", tag)
        crowd.subscribe(f"n{7 - number}", tag)
    crowd.run(5)
    for node, column, row, pause in moves:
        walk(crowd, f"n{node}", column, row, number=node)
        crowd.run(pause)
    crowd.run(2 * SETTLED)
    for number, tag in enumerate(tags):
        crowd.subscribe(f"n{7 - number}", tag)
    crowd.run(15)
    for number, tag in enumerate(tags):
        crowd.publish(f"n{number}", "after", tag)
    crowd.run(15)
    assert {*crowd.heard.notified} == crowd.expected()


VOID = """
    ###########
    #.........#
    #.........#
    #.........#
    ##.......##
"""


def test_somebody_settles_nearer_to_an_empty_cell_out_of_sight_of_who_stands_in_for_it() -> None:
    there = cells(VOID)
    crowd = Crowd([in_cell(*cell) for cell in [*there, Cell(10, 0)]], dcs(11, 5))
    newcomer = f"n{len(there)}"
    crowd.run(JOINED)
    tag = tag_at(crowd, 5, 0)
    crowd.publish("n0", "before", tag)
    crowd.subscribe("n1", tag)
    crowd.run(5)
    standing_in = next(name for name in crowd.stores if cell_of(crowd, name) == Cell(1, 0))
    assert ("i", "n0", "before") in storage(crowd, standing_in).desk.state.entries
    walk(crowd, newcomer, 8, 0)
    crowd.run(90)
    assert ("i", "n0", "before") in storage(crowd, newcomer).desk.state.entries
    assert ("i", "n0", "before") not in storage(crowd, standing_in).desk.state.entries
    _all_is_found(crowd, tag, "n3", "n0")


def test_as_in_the_paper_nothing_is_handed_over() -> None:
    crowd = _row(0, 1, 2, hand_over=False)
    tag = tag_at(crowd, 1)
    crowd.publish("n2", "before", tag)
    crowd.run(5)
    walk(crowd, "n1", 2)
    crowd.run(SETTLED)
    crowd.subscribe("n2", tag)
    crowd.run(5)
    assert not crowd.heard.notified
    assert _handed(crowd) == 0


def test_a_member_that_fails_loses_nothing_that_another_has() -> None:
    crowd = _row(0, 1, 1, 2)
    tag = tag_at(crowd, 1)
    crowd.publish("n3", "before", tag)
    crowd.subscribe("n0", tag)
    crowd.run(5)
    crowd.world.hosts["n1"].fail()
    crowd.run(SETTLED)
    _all_is_found(crowd, tag, "n3", "n3")


def test_what_comes_while_keys_are_handed_over_stays_until_it_is_handed_over_too() -> None:
    crowd = _row(0, 0, 2)
    tag = tag_at(crowd, 3)
    crowd.publish("n0", "before", tag)
    crowd.run(5)
    standing_in = storage(crowd, "n2")
    walk(crowd, "n1", 3)
    while not standing_in._handing_over._under_way:
        crowd.run(0.1)
    late = indexed("n0", "late", (tag,), {tag})
    standing_in._keeping.take(late)
    while standing_in._handing_over._under_way:
        crowd.run(0.1)
    assert late.identity in standing_in.desk.state.entries
    crowd.run(SETTLED)
    assert late.identity not in standing_in.desk.state.entries
    assert late.identity in storage(crowd, "n1").desk.state.entries


def test_who_is_elsewhere_by_then_says_nothing_to_its_new_cell() -> None:
    crowd = _row(0, 1, 1)
    there = storage(crowd, "n1")
    entry = indexed("n0", "x", (tag_at(crowd, 0),), {tag_at(crowd, 0)})
    there._keeping.take(entry)
    before = dict(there.desk.state.entries)
    there._handing_over._handed(Cell(0, 0), [entry], Cell(0, 0), True)
    assert there.desk.state.entries == before
    there._handing_over._handed(Cell(0, 0), [entry], Cell(1, 0), True)
    assert there.desk.state.entries != before


def test_what_comes_back_is_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member believes that another cell is nearer, but nobody there can be reached."""
    crowd = _row(0, 1)
    tag = tag_at(crowd, 3)
    crowd.publish("n0", "before", tag)
    crowd.run(5)
    there = storage(crowd, "n1")
    assert ("i", "n0", "before") in there.desk.state.entries
    monkeypatch.setattr(there.desk.router, "nearest", lambda _: False)
    crowd.run(40)
    assert _handed(crowd) > 0
    assert ("i", "n0", "before") in there.desk.state.entries


def test_members_drop_only_what_they_are_told_by_its_hash() -> None:
    crowd = _row(0, 1, 1)
    tag = tag_at(crowd, 0)
    there = storage(crowd, "n2")
    there._keeping.take(indexed("n0", "x", (tag, "other"), {tag}))
    there._told("n1", Handed(0, 0, (1, 2, 3)))
    there._told("n1", Handed(99, 0, (1, 2, 3)))
    assert ("i", "n0", "x") in there.desk.state.entries
