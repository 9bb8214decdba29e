"""One member acts for its cell: also when it has just come, has just gone, or nobody knows yet who it is."""

from __future__ import annotations

import pytest
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import JOINED, cell_of, dcs, in_cell, storage, tag_at, walk

from nearcast.crowdstore.geographic.grid import Cell


def _crowd(**parameters: float) -> Crowd:
    """The first two in one cell, n2 and n3 in the next."""
    crowd = Crowd([in_cell(0, 0), in_cell(0, 0, 1), in_cell(1, 0), in_cell(1, 0, 1)], dcs(2, 1, **parameters))
    crowd.run(JOINED)
    return crowd


def _exactly(crowd: Crowd) -> None:
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def test_what_comes_while_the_acting_member_has_failed_is_told_by_the_next() -> None:
    crowd = _crowd()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n2", tag)
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.publish("n3", "x", tag)  # n1 hears it, and still believes that n0 acts
    crowd.run(15)
    assert crowd.heard.outcomes[-1][1].ok
    _exactly(crowd)


def test_what_comes_while_the_acting_member_still_joins_is_told_when_it_has() -> None:
    crowd = _crowd()
    tag = tag_at(crowd, 1)
    crowd.subscribe("n3", tag)
    crowd.run(5)
    walk(crowd, "n0", 1)
    while cell_of(crowd, "n0") != Cell(1, 0):
        crowd.run(0.1)
    # It is the first by name, so that n2 leaves everything to it; and it does not know the subscription yet.
    assert storage(crowd, "n2").desk.router.leader() == "n0"
    assert not storage(crowd, "n0").joining.complete
    crowd.publish("n3", "x", tag)
    crowd.run(20)
    assert crowd.heard.outcomes[-1][1].ok
    _exactly(crowd)


def test_one_member_answers_and_tells_and_the_others_do_not() -> None:
    crowd = _crowd()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n2", tag)
    crowd.run(5)
    for number in range(5):
        crowd.publish("n3", f"{number}", tag)
    crowd.run(5)
    assert [storage(crowd, name).statistics().notifications for name in ("n0", "n1")] == [5, 0]
    assert crowd.stores["n2"].statistics().duplicates == 0
    assert storage(crowd, "n3").statistics().repeated == 0
    _exactly(crowd)


def test_two_that_both_act_tell_twice_and_the_application_hears_once(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = _crowd()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n2", tag)
    crowd.run(5)
    monkeypatch.setattr(storage(crowd, "n1").desk.router, "leader", lambda: "n1")
    crowd.publish("n3", "x", tag)
    crowd.run(5)
    assert crowd.stores["n2"].statistics().duplicates == 1
    _exactly(crowd)


def test_an_operation_that_comes_again_is_no_news() -> None:
    crowd = _crowd()
    tag = tag_at(crowd, 0)
    crowd.subscribe("n2", tag)
    crowd.run(5)
    crowd.publish("n3", "x", tag)
    operations = storage(crowd, "n3")._operations
    (opened,) = operations._open.values()
    for _ in range(3):
        operations._send(opened)
    crowd.run(5)
    assert storage(crowd, "n0").statistics().notifications == 1
    assert crowd.stores["n2"].statistics().duplicates == 0
    _exactly(crowd)


def test_only_cells_that_have_not_answered_are_asked_again() -> None:
    crowd = _crowd()
    first, second = tag_at(crowd, 0), tag_at(crowd, 1)
    for name in ("n0", "n1"):
        crowd.world.hosts[name].fail()
    before = {name: storage(crowd, name).desk.router.statistics().tally.arrived for name in ("n2", "n3")}
    crowd.publish("n3", "x", first, second)
    crowd.run(5.9)  # asked again after three seconds; by then the failed ones are not missed yet
    operations = storage(crowd, "n3")._operations
    (opened,) = operations._open.values()
    assert list(opened.left) == [Cell(0, 0)]
    assert operations.repeated == 1
    arrived = storage(crowd, "n2").desk.router.statistics().tally.arrived - before["n2"]
    assert arrived <= 2, "the operation once, and the copy"
    crowd.run(10)  # then the own cell stands in for the other one
    assert crowd.heard.outcomes[-1][1].ok
