"""Each predicate, with somebody who comes and goes at instants that decide it: also those at which nothing happens."""

from __future__ import annotations

import pytest
from tests.overlay.temporal.waiting import WaitingTown
from tests.overlay.temporal.worlds import inside

from nearcast.model.temporal import CONTEXTCAST_RELATIONS, WITH_TOLERANCE
from nearcast.overlay.temporal.settings import TemporalSettings

CHAIN = [(0, 1), (1, 2)]
A, B, Z = 30.0, 60.0, 5.0
DECIDED = {
    # relation: (comes, goes, when that is decided) in seconds after the message; none: not before it is over
    "before": (10.0, 20.0, 20.0),
    "after": (70.0, 90.0, 70.0),
    "equals": (28.0, 62.0, 62.0),
    "meets": (10.0, 32.0, 32.0),
    "met_by": (62.0, 90.0, 62.0),
    "ends_in": (10.0, 50.0, 50.0),
    "starts_in": (40.0, 90.0, B),
    "overlaps": (10.0, 90.0, A),
    "excludes": (10.0, 20.0, 20.0),
    "during": (35.0, 50.0, 50.0),
    "contains": (10.0, 90.0, B),
}


@pytest.mark.parametrize("moving", [False, True])
@pytest.mark.parametrize("relation", CONTEXTCAST_RELATIONS)
def test_it_comes_when_it_is_decided_and_not_before(relation: str, moving: bool) -> None:
    """``moving``: from one access network into the next meanwhile, which makes no difference."""
    comes, goes, decided = DECIDED[relation]
    town = WaitingTown(3, CHAIN, TemporalSettings(settling=3.0), check_wire=True)
    ada, bob = town.person("ada"), town.person("bob")
    ada.register("me", {"role": "staff"})
    bob.register("me", {"role": "guest"})
    bob.go("r002", inside(2))
    town.run(5)
    event = town.message(relation, A, B, Z if relation in WITH_TOLERANCE else 0.0, lifetime=200.0)
    start = town.now
    town.publish(0, event)

    def until(seconds: float) -> None:
        town.run(seconds - (town.now - start) / 1_000_000)

    until(comes)
    ada.go("r001", inside(1))
    if moving:
        until((comes + min(goes, decided if decided > comes else goes)) / 2)
        ada.go("r002", inside(2))
    if (town.now - start) / 1_000_000 < decided <= goes:
        until(decided)
        assert ada.got == []
    until(goes)
    ada.go(None, None)
    town.run(1)
    ada.go("r000", None)
    ada.deregister("me")
    until(max(goes, decided) + 15)
    assert (ada.got, bob.got) == (["e"], [])
    until(300)
    assert town.expected(event) == ["ada"]
    assert (town.holding(), ada.got, bob.got) == ([], ["e"], [])


@pytest.mark.parametrize("relation", ["ends_in", "starts_in", "during", "contains", "meets", "met_by"])
def test_a_border_within_is_neither_a_beginning_nor_an_end(relation: str) -> None:
    """There before it all and there after it: at no time did somebody come or go, although two nodes saw that."""
    town = WaitingTown(3, CHAIN, TemporalSettings(settling=3.0))
    ada = town.person("ada")
    ada.register("me", {"role": "staff"})
    ada.go("r001", inside(1))
    town.run(5)
    event = town.message(relation, A, B, Z if relation in WITH_TOLERANCE else 0.0)
    town.publish(0, event)
    for _ in range(10):
        town.run(10)
        ada.go("r002" if ada.device._node == "r001" else "r001", None)
    town.run(60)
    assert town.expected(event) == (["ada"] if relation == "contains" else [])
    assert ada.got == (["e"] if relation == "contains" else [])


def test_what_has_changed_meanwhile_without_making_a_difference_makes_none_at_the_end() -> None:
    """Who leaves at the very instant at which the message ends, long after his context has become another that it is for as well."""
    town = WaitingTown(3, CHAIN, TemporalSettings(settling=3.0))
    ada = town.person("ada")
    ada.register("me", {"role": "staff"})
    town.run(5)
    event = town.message("contains", A, B)
    town.publish(0, event)
    town.run(10)
    ada.go("r001", inside(1))
    town.run(10)
    ada.register("me", {"role": "staff", "mood": 2})
    town.run(40)
    ada.go(None, None)  # exactly at b; contains asks for more
    town.run(60)
    ada.go("r000", None)
    town.run(30)
    assert (ada.got, town.expected(event)) == ([], [])
