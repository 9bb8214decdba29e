"""Subscribers that move: where they are is told, and what did not reach them comes later (THYME 5.4.4)."""

from __future__ import annotations

import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import JOINED, cell_of, dcs, in_cell, storage, tag_at, walk

from nearcast.crowdstore.data_centric.entries import Item, Part
from nearcast.crowdstore.data_centric.messages import Notify
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.interface import Destination

FAR = (40.0 * 30, 40.0 * 30)


def _row(**parameters: float) -> Crowd:
    """One host in each of four cells in a row, two in the last."""
    places = [in_cell(column, 0) for column in range(4)]
    crowd = Crowd([*places, in_cell(3, 0, 1)], dcs(4, 1, **parameters))
    crowd.run(JOINED)
    return crowd


def _part(crowd: Crowd, host: str) -> Part:
    return next(entry for entry in storage(crowd, host).desk.state.entries.values() if isinstance(entry, Part))


def test_who_settles_elsewhere_says_so_to_the_cells_of_its_subscriptions() -> None:
    crowd = _row()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n4", tag)
    crowd.run(5)
    assert _part(crowd, "n0").cell == Cell(3, 0)
    walk(crowd, "n4", 1)
    crowd.run(20)
    assert _part(crowd, "n0").cell == cell_of(crowd, "n4") == Cell(1, 0)
    crowd.publish("n3", "x", tag)
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected()
    assert storage(crowd, "n0").statistics().undelivered == 0


def test_what_does_not_reach_a_subscriber_comes_when_it_has_settled() -> None:
    crowd = _row()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n4", tag)
    crowd.run(5)
    crowd.world.motion.put(4, *FAR)
    crowd.run(10)
    crowd.publish("n2", "x", tag)
    crowd.run(5)
    assert not crowd.heard.notified
    statistics = storage(crowd, "n0").statistics()
    assert (statistics.undelivered, statistics.waiting, statistics.sent_again) == (1, 1, 0)
    walk(crowd, "n4", 2)
    crowd.run(25)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    statistics = storage(crowd, "n0").statistics()
    assert (statistics.waiting, statistics.sent_again) == (0, 1)


def test_who_is_not_answered_says_again_where_it_is() -> None:
    crowd = _row()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n4", tag)
    crowd.run(5)
    silent = storage(crowd, "n0")
    arrived = silent.arrived
    silent.arrived = lambda *_: None  # type: ignore[method-assign]
    walk(crowd, "n4", 2)
    crowd.run(35)  # longer than one operation is tried
    silent.arrived = arrived  # type: ignore[method-assign]
    crowd.run(10)
    assert _part(crowd, "n0").cell == cell_of(crowd, "n4") == Cell(2, 0)
    crowd.run(60)
    assert storage(crowd, "n4").statistics().under_way == 0


def test_nobody_waits_for_ever() -> None:
    crowd = _row(patience=30.0)
    tag = tag_at(crowd, 0)
    crowd.subscribe("n4", tag)
    crowd.run(5)
    crowd.world.motion.put(4, *FAR)
    crowd.run(10)
    crowd.publish("n2", "x", tag)
    crowd.run(29)
    assert storage(crowd, "n0").statistics().waiting == 1
    crowd.run(15)
    assert storage(crowd, "n0").statistics().waiting == 0
    walk(crowd, "n4", 2)
    crowd.run(25)
    assert not crowd.heard.notified


def test_a_refusal_that_comes_after_the_new_place_is_no_reason_to_wait() -> None:
    """It was sent to the old cell; the subscriber said where it is; only then comes word that it was not in the old one."""
    crowd = _row()
    tag = tag_at(crowd, 0)
    key = crowd.subscribe("n4", tag)
    made = crowd.publish("n2", "x", tag)
    crowd.run(5)
    crowd.heard.notified.clear()
    crowd.stores["n4"].nucleus._wanted[key].told.clear()  # as if it had not come
    walk(crowd, "n4", 1)
    crowd.run(20)
    there = storage(crowd, "n0")
    late = Notify(Item(made, 0, 0), (key,))
    there._matching.undeliverable(Destination(Cell(3, 0), "n4"), late)
    crowd.run(2)
    assert {*crowd.heard.notified} == crowd.expected()
    # Where it was said to be, it is not: then it waits, and does not go to and fro.
    there._matching.undeliverable(Destination(Cell(1, 0), "n4"), late)
    crowd.run(1)
    assert there.statistics().waiting == 1


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.crowdstore.data_centric.matching.WAITING", 3)
    crowd = _row()
    made = crowd.publish("n2", "x", "t")
    for number in range(10):
        destination = Destination(Cell(3, 0), f"nobody {number}")
        storage(crowd, "n0")._matching.undeliverable(destination, Notify(Item(made, 0, 0), ()))
    assert storage(crowd, "n0").statistics().waiting == 3


def test_who_moves_still_publishes_subscribes_and_downloads() -> None:
    crowd = _row()
    tag = tag_at(crowd, 0)
    made = crowd.publish("n0", "before", tag)
    crowd.run(5)
    walk(crowd, "n4", 2)
    while cell_of(crowd, "n4") is not None:
        crowd.run(0.1)
    crowd.subscribe("n4", tag)
    crowd.publish("n4", "moving", tag)
    crowd.download("n4", made)
    crowd.run(1)
    assert cell_of(crowd, "n4") is None
    assert len(crowd.heard.outcomes) == 4
    crowd.run(20)
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)
    assert {*crowd.heard.notified} == crowd.expected()


def test_places_of_copies_follow_those_who_have_them() -> None:
    crowd = _row()
    tag = tag_at(crowd, 0)
    made = crowd.publish("n3", "x", tag)
    crowd.run(5)
    crowd.download("n1", made)
    crowd.run(25)

    def places() -> dict[str, tuple[int, int]]:
        found = storage(crowd, "n0").desk.state.indexed(made.key)
        assert found is not None
        return {place.node: place.cell for place in found.item.replicas}

    assert places() == {"n3": (3, 0), "n1": (1, 0)}
    walk(crowd, "n1", 2)
    walk(crowd, "n3", 2, number=5)
    crowd.run(25)
    assert places() == {"n3": (2, 0), "n1": (2, 0)}


def test_several_subscriptions_of_one_host_come_in_one_message_and_each_is_told() -> None:
    crowd = _row()
    tag = tag_at(crowd, 0)
    for _ in range(30):
        crowd.subscribe("n3", tag)
        crowd.subscribe("n4", f"{tag} | other")
    crowd.run(5)
    before = crowd.network.links["n0"].books["sent", "crowd-route"][0]
    crowd.publish("n0", "x", tag)
    crowd.run(3)
    assert crowd.network.links["n0"].books["sent", "crowd-route"][0] - before <= 4
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def test_thousands_of_subscribers_are_told_in_messages_that_others_read() -> None:
    """Neither their names nor their subscriptions fit into one."""
    crowd = _row()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n4", tag)
    crowd.run(5)
    there = storage(crowd, "n0")
    own = _part(crowd, "n0")
    for number in range(150):
        name = f"made up {number} " + "x" * 60
        subscription = type(own.subscription)(name, "s" * 40)
        part = Part(subscription, 0, name, tag, (tag,), (), None, None, 3, 0, own.version)
        assert there._keeping.take(part)
    for number in range(800):
        subscription = type(own.subscription)("n3", f"{number} " + "x" * 40)
        assert there._keeping.take(Part(subscription, 0, "n3", tag, (tag,), (), None, None, 3, 0, own.version))
    crowd.publish("n2", "x", tag)
    crowd.run(5)
    assert {*crowd.heard.notified} == crowd.expected()
    assert crowd.stores["n3"].statistics().late == 800
