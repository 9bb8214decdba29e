"""Who was cut off asks for what it missed, by numbers, and gets what the producer still keeps (STEAM 4.3)."""

from __future__ import annotations

from tests.proximity.town import Town, at

from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.cache import MOST_KEPT, Cache
from nearcast.proximity.event_type import EventType

KEPT = EventType.of("news", {"number": "integer"}, persistence=60.0)
LOST = EventType.of("news", {"number": "integer"})


def numbers(town: Town, name: str) -> list[object]:
    return [event.attributes["number"] for event in town.got[name]]


def cut_off(event_type: EventType, *, moving: bool = False) -> Town:
    """Bob is cut off while 3, 4 and 5 of ten events are raised, one a second."""
    town = Town({"ada": (0, 0), "bob": (50, 0), "eve": (60, 10)})
    for name in ("bob", "eve"):
        town.listen(name, "news")
    town["ada"].announce(event_type, Circle(100), None if moving else at(0, 0))
    for number in range(10):
        town.raise_at(1.5 + number, "ada", "news", {"number": number})
    town.at(4.0, lambda: setattr(town.disc, "cut", lambda a, b: "bob" in (a, b)))
    town.at(7.0, lambda: setattr(town.disc, "cut", lambda _a, _b: False))
    town.run(13.0)
    return town


def test_events_missed_behind_a_partition_are_recovered_once_each() -> None:
    town = cut_off(KEPT)
    assert sorted(numbers(town, "bob"), key=str) == list(range(10))
    assert town["bob"].statistics().recovered == 3
    assert numbers(town, "eve") == list(range(10)), "who heard them before is not disturbed"
    assert town["eve"].statistics().duplicates == 3


def test_a_proximity_that_moves_may_be_forgotten_meanwhile_and_nothing_is_lost() -> None:
    town = cut_off(KEPT, moving=True)
    assert sorted(numbers(town, "bob"), key=str) == list(range(10))


def test_without_persistence_what_is_missed_is_lost() -> None:
    town = cut_off(LOST)
    assert numbers(town, "bob") == [0, 1, 2, 6, 7, 8, 9]
    assert town.sent("missed events") == 0
    assert town["ada"].statistics().cached == 0


def test_ordered_events_are_recovered_in_order() -> None:
    ordered = EventType.of("news", {"number": "integer"}, persistence=60.0, order="producer")
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob", "news")
    town["ada"].announce(ordered, Circle(100))
    # One event is lost; the next beacon, within the patience of a second, tells of it.
    for number in range(6):
        town.raise_at(1.5 + number, "ada", "news", {"number": number})
    town.at(3.4, lambda: setattr(town.disc, "cut", lambda _a, _b: True))
    town.at(3.6, lambda: setattr(town.disc, "cut", lambda _a, _b: False))
    town.run(9.0)
    assert numbers(town, "bob") == list(range(6))
    assert town["bob"].statistics().recovered == 1


def test_what_was_raised_while_it_was_outside_is_not_due_and_not_asked_for() -> None:
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob", "news")
    town["ada"].announce(KEPT, Circle(100), at(0, 0))
    for number in range(10):
        town.raise_at(1.5 + number, "ada", "news", {"number": number})
    town.at(4.1, lambda: town.put("bob", 150, 0))
    town.at(7.1, lambda: town.put("bob", 50, 0))
    town.run(13.0)
    assert numbers(town, "bob") == [0, 1, 2, 7, 8, 9]  # 6 comes before the beacon that brings it back
    assert town.sent("missed events") == 0


def test_what_it_gets_again_it_judges_by_where_it_was() -> None:
    """Cut off, it leaves the proximity and returns: what was raised meanwhile was not for it."""
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob", "news")
    # The proximity moves: bob cannot know that it has left it, and asks.
    town["ada"].announce(KEPT, Circle(100))
    for number in range(10):
        town.raise_at(1.5 + number, "ada", "news", {"number": number})
    town.at(4.1, lambda: setattr(town.disc, "cut", lambda _a, _b: True))
    town.at(5.01, lambda: town.put("bob", 250, 0))
    town.at(6.95, lambda: town.put("bob", 50, 0))
    town.at(8.1, lambda: setattr(town.disc, "cut", lambda _a, _b: False))
    town.run(14.0)
    # 3 was raised at 4.5 s while it was inside, 4 and 5 while it was not, 6 at 7.5 s when it was inside again.
    assert sorted(numbers(town, "bob"), key=str) == [0, 1, 2, 3, 6, 7, 8, 9]


def test_questions_and_answers_go_over_several_hops() -> None:
    names = {f"n{number}": (150.0 * number, 0.0) for number in range(4)}
    town = Town(names)
    for name in ("n1", "n2", "n3"):
        town.listen(name, "news")
    town["n0"].announce(KEPT, Circle(600))
    for number in range(6):
        town.raise_at(1.5 + number, "n0", "news", {"number": number})
    town.at(3.1, lambda: setattr(town.disc, "cut", lambda a, b: "n3" in (a, b)))
    town.at(5.1, lambda: setattr(town.disc, "cut", lambda _a, _b: False))
    town.run(10.0)
    assert sorted(numbers(town, "n3"), key=str) == list(range(6))


def test_the_cache_keeps_for_so_long_and_no_more_than_so_many() -> None:
    cache = Cache()
    for number in range(MOST_KEPT + 10):
        cache.keep(number, Event(f"e{number}", "news", number), persistence=10.0)
    cache.keep(0, Event("none", "other", 0), persistence=0.0)
    cache.keep(1, Event("brief", "brief", 0, lifetime=MICROSECONDS), persistence=10.0)
    assert len(cache) == MOST_KEPT + 1
    assert [number for number, _ in cache.again("news", 0, 12, 5 * MICROSECONDS)] == [10, 11, 12]
    assert cache.again("news", 0, 12, 5 * MICROSECONDS + 1) == [], "one answer is for all who ask at once"
    assert cache.again("brief", 0, 9, 2 * MICROSECONDS) == []
    assert cache.again("news", 0, 5_000, 11 * MICROSECONDS) == []
    assert cache.again("unheard of", 0, 9, 0) == []
