"""Newcomers ask a member of their cell for all that it keeps; who is alone finds out (THYME 5.7)."""

from __future__ import annotations

import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.samples import gone, indexed, part
from tests.crowdstore.data_centric.venue import JOINED, cell_of, dcs, in_cell, storage, tag_at, walk
from tests.crowdstore.lossy import lossy

from nearcast.crowdstore.data_centric.messages import State


def test_who_is_alone_finds_out() -> None:
    crowd = Crowd([in_cell(0, 0)], dcs(3, 3))
    crowd.run(5)
    assert not storage(crowd, "n0").joining.complete
    crowd.run(10)
    assert storage(crowd, "n0").joining.complete
    made = crowd.publish("n0", "x", "t")
    crowd.subscribe("n0", "t & !u")
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected() != set()
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)
    crowd.download("n0", made)
    crowd.run(1)
    assert crowd.heard.outcomes[-1][1].content == b"content"


@pytest.mark.parametrize("count", [0, 1, 500])
def test_a_newcomer_has_all_that_the_cell_keeps(count: int) -> None:
    crowd = Crowd([in_cell(0, 0), in_cell(0, 0, 1), in_cell(1, 0)], dcs(2, 1))
    crowd.run(JOINED)
    now = crowd.simulation.now()
    for number in range(count):
        for name in ("n0", "n1"):
            there = storage(crowd, name).desk.state
            there.put(indexed("x", f"{number}", (f"{number}", tag_at(crowd, 0)), {tag_at(crowd, 0)}), now)
            there.put(part("y", f"{number}", 0, tag_at(crowd, 0)), now)
            there.put(gone("z", f"{number}", False, now), now)
    walk(crowd, "n2", 0)
    while not (cell_of(crowd, "n2") == (0, 0) and storage(crowd, "n2").joining.complete):
        crowd.run(0.1)
        assert crowd.simulation.now() < now + 20_000_000
    entries = storage(crowd, "n2").desk.state.entries
    assert entries == storage(crowd, "n0").desk.state.entries
    assert len(entries) == 3 * count


def test_when_nobody_answers_another_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd([in_cell(0, 0), in_cell(0, 0, 1), in_cell(1, 0)], dcs(2, 1))
    crowd.run(JOINED)
    storage(crowd, "n1").desk.state.put(
        indexed("x", "o", (tag_at(crowd, 0),), {tag_at(crowd, 0)}), crowd.simulation.now()
    )
    monkeypatch.setattr(storage(crowd, "n0").joining, "asked", lambda _: None)
    walk(crowd, "n2", 0)
    crowd.run(16)
    assert storage(crowd, "n2").joining.complete
    assert ("i", "x", "o") in storage(crowd, "n2").desk.state.entries


def test_a_crowd_that_starts_together_has_joined_after_a_while_whatever_is_lost() -> None:
    crowd = Crowd(
        [in_cell(column, 0, number) for column in range(3) for number in range(3)], dcs(3, 1), network=lossy(0.3)
    )
    crowd.run(60)
    assert all(storage(crowd, name).joining.complete for name in crowd.stores)


def test_only_who_was_asked_says_when_a_newcomer_has_been_told_all(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd([in_cell(0, 0), in_cell(0, 0, 1), in_cell(1, 0)], dcs(2, 1))
    crowd.run(JOINED)
    for name in ("n0", "n1"):
        monkeypatch.setattr(storage(crowd, name).joining, "asked", lambda _: None)
    walk(crowd, "n2", 0)
    there = storage(crowd, "n2")
    while there.joining._asked is None:
        crowd.run(0.1)
    assert there.joining._asked == "n0"
    there._receive("liar", State((), 0, 1))
    there._receive("n0", State((), 0, 0))
    there._receive("n0", State((), 5, 3))
    assert not there.joining.complete
    for number in (2, 0, 0, 1):
        there._receive("n0", State((), number, 3))
    assert there.joining.complete
    crowd.run(30)
    assert there.joining.complete


def test_who_leaves_before_it_has_joined_begins_anew_elsewhere() -> None:
    crowd = Crowd([in_cell(0, 0), in_cell(1, 0), in_cell(2, 0)], dcs(3, 1))
    crowd.run(JOINED)
    tag = tag_at(crowd, 0)
    crowd.publish("n2", "x", tag)
    crowd.run(5)
    walk(crowd, "n2", 0)
    while cell_of(crowd, "n2") != (0, 0):
        crowd.run(0.1)
    walk(crowd, "n2", 1)
    crowd.run(20)
    assert storage(crowd, "n2").joining.complete
    assert set(storage(crowd, "n2").desk.state.entries) == set(storage(crowd, "n1").desk.state.entries)
    crowd.subscribe("n1", tag)
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected()


def test_nothing_happens_after_the_end() -> None:
    crowd = Crowd([in_cell(0, 0), in_cell(0, 0, 1), in_cell(1, 0)], dcs(2, 1), remembering=True)
    crowd.run(4)  # in the middle of joining
    crowd.publish("n0", "x", "t")
    crowd.subscribe("n0", "!t")
    crowd.download("n0", crowd.publish("n2", "y", "u"))
    crowd.run(0.01)
    ended = crowd.stores["n0"]
    crowd.world.hosts["n0"].leave()
    crowd.run(60)
    assert ended.statistics().under_way == 0
    crowd.world.hosts["n0"].join()
    crowd.run(40)
    assert storage(crowd, "n0").joining.complete
    crowd.subscribe("n1", "t")
    crowd.run(5)
    # What belongs to it is known again.
    assert ("n0", "x") in {(key.owner, key.name) for _, key in crowd.heard.notified}
