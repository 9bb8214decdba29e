"""Minutes of a meeting, for all who were there: the document's example."""

from __future__ import annotations

import pytest
from tests.overlay.temporal.worlds import Town, inside, square

from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.temporal.messages import FULLY, NOT_AT_ALL
from nearcast.overlay.temporal.settings import TemporalSettings

CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]


@pytest.mark.parametrize("depth", [FULLY, 2, 3, NOT_AT_ALL])
def test_whoever_was_at_the_meeting_gets_the_minutes_once_and_who_is_away_finds_them_in_the_mailbox(depth: int) -> None:
    town = Town(5, CHAIN, TemporalSettings(depth=depth, settling=3.0), trusted=(0, 4), check_wire=True)
    ada, bob, cyd = town.person("ada"), town.person("bob", trusted=4), town.person("cyd")
    for person in (ada, bob):
        person.register("me", {"role": "staff"})
        person.go("r002", inside(2))
    cyd.register("me", {"role": "guest"})
    cyd.go("r002", inside(2))
    meeting = town.now
    town.run(600)
    ada.go("r003", inside(3))
    bob.go(None, None)
    cyd.go("r001", inside(1))
    ended = town.now
    town.run(3_600)
    minutes = town.event(
        "role = 'staff'", TemporalPredicate("overlaps", meeting, ended), reach=square(2), name="minutes"
    )
    town.publish(0, minutes)
    town.run(30)
    assert (ada.got, bob.got, cyd.got) == (["minutes"], [], [])
    assert town.mailbox.statistics().kept == 1
    bob.go("r004", inside(4))
    town.run(30)
    assert (ada.got, bob.got, cyd.got) == (["minutes"], ["minutes"], [])
    assert (town.mailbox.statistics().kept, town.mailbox.statistics().taken) == (0, 1)
    assert town.expected(minutes) == ["ada", "bob"]
