"""Messages to both sides of now."""

from __future__ import annotations

import pytest
from tests.overlay.temporal.waiting import WaitingTown
from tests.overlay.temporal.worlds import inside, square

from nearcast.model.area import Box
from nearcast.overlay.temporal.messages import FULLY, NOT_AT_ALL
from nearcast.overlay.temporal.settings import TemporalSettings

CHAIN = [(0, 1), (1, 2), (2, 3), (3, 4)]
MINUTES = 60.0


@pytest.mark.parametrize("depth", [FULLY, 2, NOT_AT_ALL])
def test_who_was_there_and_who_comes_later_get_it_once(depth: int) -> None:
    """The document's example: sent at 10:45, for all who are there between 10:15 and 11:15."""
    town = WaitingTown(5, CHAIN, TemporalSettings(depth=depth, settling=3.0), trusted=(0, 4), check_wire=True)
    early, staying, late, too_late, returning = (
        town.person(name, trusted=number % 2 * 4)
        for number, name in enumerate(("early", "staying", "late", "too late", "returning"))
    )
    for person in town.people.values():
        person.register("me", {"role": "staff"})
    for person in (early, staying, returning):
        person.go("r002", inside(2))
    town.run(40 * MINUTES)  # 10:25, if they came at 9:45
    for person in (early, returning):
        person.go("r003", inside(3))
    town.run(20 * MINUTES)
    event = town.message("overlaps", -30 * MINUTES, 30 * MINUTES, reach=square(2))
    town.publish(0, event)
    town.run(30)
    assert [person.got for person in (early, staying, late, returning)] == [["e"], ["e"], [], ["e"]]
    town.run(10 * MINUTES)
    late.go("r002", inside(2))
    returning.go("r002", inside(2))
    town.run(30)
    assert late.got == ["e"]
    town.run(30 * MINUTES)
    too_late.go("r002", inside(2))
    town.run(10 * MINUTES)
    assert [person.got for person in town.people.values()] == [["e"], ["e"], ["e"], [], ["e"]]
    assert town.expected(event) == ["early", "late", "returning", "staying"]
    assert town.holding() == []


def test_a_question_to_the_past_leaves_the_message_where_it_passes() -> None:
    """Pre-dispersal: when somebody comes, the message is there already, and no copy is sent for it."""
    town = WaitingTown(5, CHAIN, TemporalSettings(settling=3.0))
    ada = town.person("ada")
    ada.register("me", {"role": "staff"})
    town.run(5)
    town.publish(0, town.message("overlaps", -10, 100, reach=Box(0.032, 0.0, 0.038, 0.01)))
    town.run(5)
    assert town.holding() == ["r000", "r001", "r002", "r003"]
    ada.go("r003", inside(3))
    town.run(10)
    assert (town.keeps(), ada.got) == (0, ["e"])


def test_a_message_to_the_past_alone_is_kept_nowhere() -> None:
    town = WaitingTown(5, CHAIN, TemporalSettings(settling=3.0))
    town.publish(0, town.message("overlaps", -10, -5, reach=square(3)))
    town.run(1)
    assert town.holding() == []


def test_where_somebody_came_from_is_asked_of_the_past() -> None:
    """Who has been there since before a, elsewhere at first, has not come within [a, b], although the message is one for the future."""
    town = WaitingTown(5, CHAIN, TemporalSettings(settling=3.0))
    ada, bob = town.person("ada"), town.person("bob")
    for person in (ada, bob):
        person.register("me", {"role": "staff"})
    ada.go("r001", inside(1))
    town.run(100)
    ada.go("r002", inside(2))
    bob.go("r002", inside(2))
    town.run(10)
    event = town.message("starts_in", -50, 50)
    town.publish(4, event)
    town.run(200)
    assert town.expected(event) == ["bob"]
    assert (ada.got, bob.got) == ([], ["e"])
