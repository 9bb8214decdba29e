"""The past comes in batches: first so many of so many, further ones on request (THYME 5.4.3)."""

from __future__ import annotations

import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import JOINED, dcs, in_cell, storage, tag_at

from nearcast.crowdstore.data_centric.messages import Found
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.objects import ObjectKey
from nearcast.model.time import TimeFrame


def _row(batch: int) -> Crowd:
    crowd = Crowd([in_cell(column, 0) for column in range(4)], dcs(4, 1, batch=batch))
    crowd.run(JOINED)
    return crowd


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_so_many_at_once_and_more_when_asked_for(batch: int) -> None:
    crowd = _row(batch)
    tag = tag_at(crowd, 1)
    for number in range(20):
        crowd.publish("n0", f"{number:02}", tag)
        crowd.run(0.1)
    key = crowd.subscribe("n3", tag, TimeFrame(None, crowd.simulation.now()))
    crowd.run(2)
    for round_ in range(1, 22):
        assert len(crowd.heard.notified) == min(20, batch * round_)
        crowd.stores["n3"].more(key)
        crowd.run(2)
    # In the order in which they were published.
    assert [published.name for _, published in crowd.heard.notified] == [f"{number:02}" for number in range(20)]
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n3"].statistics().duplicates == 0


def test_of_what_is_published_later_one_hears_at_once_whatever_is_left_of_the_past() -> None:
    crowd = _row(batch=2)
    tag = tag_at(crowd, 1)
    for number in range(6):
        crowd.publish("n0", f"{number}", tag)
    key = crowd.subscribe("n3", tag)
    crowd.run(2)
    crowd.publish("n2", "new", tag)
    crowd.run(2)
    assert [published.name for _, published in crowd.heard.notified].count("new") == 1
    for _ in range(3):
        crowd.stores["n3"].more(key)
        crowd.run(2)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def test_conjunctions_and_cells_have_each_their_own_past() -> None:
    crowd = _row(batch=2)
    first, second = tag_at(crowd, 1), tag_at(crowd, 2)
    for number in range(5):
        crowd.publish("n0", f"a{number}", first)
        crowd.publish("n0", f"b{number}", second)
        crowd.publish("n0", f"c{number}", first, second)
    crowd.run(2)
    now = crowd.simulation.now()
    both = crowd.subscribe("n3", f"{first} | {second}", TimeFrame(None, now))
    all_of_them = crowd.subscribe("n2", "!other", TimeFrame(None, now))
    for _ in range(8):
        crowd.run(2)
        crowd.stores["n3"].more(both)
        crowd.stores["n2"].more(all_of_them)
    crowd.run(2)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def test_an_answer_that_comes_again_does_not_set_anybody_back() -> None:
    crowd = _row(batch=2)
    tag = tag_at(crowd, 1)
    for number in range(6):
        crowd.publish("n0", f"{number}", tag)
        crowd.run(0.1)
    key = crowd.subscribe("n3", tag, TimeFrame(None, crowd.simulation.now()))
    crowd.run(2)
    crowd.stores["n3"].more(key)
    crowd.run(2)
    there = storage(crowd, "n3")
    items = [
        entry.item for number in range(2) if (entry := storage(crowd, "n1").desk.state.indexed(_key(crowd, number)))
    ]
    there._receive("n1", Found(1, *Cell(1, 0), key, 0, 6, tuple(items)))  # the first answer, late
    crowd.stores["n3"].more(key)
    crowd.run(2)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def _key(crowd: Crowd, number: int) -> ObjectKey:
    return list(crowd.things)[number]


def test_what_could_not_be_asked_for_can_be_asked_for_again() -> None:
    crowd = _row(batch=2)
    tag = tag_at(crowd, 1)
    for number in range(4):
        crowd.publish("n0", f"{number}", tag)
    crowd.run(2)
    key = crowd.subscribe("n3", tag, TimeFrame(None, crowd.simulation.now()))
    crowd.run(2)
    silent = storage(crowd, "n1")
    silent_arrived = silent.arrived
    silent.arrived = lambda *_: None  # type: ignore[method-assign]
    crowd.stores["n3"].more(key)
    crowd.run(20)
    assert len(crowd.heard.notified) == 2
    silent.arrived = silent_arrived  # type: ignore[method-assign]
    crowd.stores["n3"].more(key)
    crowd.run(2)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def test_a_hundred_objects_with_much_to_say_of_each_still_arrive() -> None:
    """All of them together are longer than a message may be."""
    crowd = _row(batch=100)
    tag = tag_at(crowd, 1)
    for number in range(100):
        metadata = crowd.stores["n0"].publish(f"{number}", b"", [tag], summary=bytes(1_050))
        assert metadata.published
    crowd.run(5)
    key = crowd.subscribe("n3", tag, TimeFrame(None, crowd.simulation.now()))
    crowd.run(5)
    assert crowd.heard.outcomes[-1][1].ok
    assert 40 <= len(crowd.heard.notified) < 100
    crowd.stores["n3"].more(key)
    crowd.run(5)
    assert len({*crowd.heard.notified}) == len(crowd.heard.notified) == 100
