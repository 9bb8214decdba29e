"""Messages to the past, against the definition of delivery: people change, walk, leave and return; all ways to ask find the same."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.overlay.temporal.worlds import Town, inside, square

from nearcast.model.event import Event
from nearcast.model.temporal import RELATIONS, WITH_TOLERANCE, TemporalPredicate, message_class
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.temporal.messages import FULLY, NOT_AT_ALL
from nearcast.overlay.temporal.settings import TemporalSettings

DEPTHS = (FULLY, 2, 3, NOT_AT_ALL)
TO = (
    "a = 1", "a = 0 OR b = 1", "a > 0 AND b IS NULL", "NOT (a = 1)", "a IN (0, 2) AND b < 2", "TRUE", "b = 1 OR b = 0",
    "a IS NULL", "S_WITHIN(position, BBOX(0.0, 0.0, 0.02, 0.01))", "a = 1 AND S_WITHIN(position, BBOX(0.01, 0.0, 0.03, 0.01))",
    "S_DISJOINT(position, BBOX(0.0, 0.0, 0.015, 0.01))", "position IS NULL", "a = 1 AND NOT S_WITHIN(position, BBOX(0.02, 0.0, 0.03, 0.01))",
)  # fmt: skip


def tree(random: Random, size: int) -> list[tuple[int, int]]:
    order = random.sample(range(size), size)
    return [(order[child], order[random.randrange(child)]) for child in range(1, size)]


def context(random: Random) -> dict[str, Any]:
    return {name: random.randrange(3) for name in "ab" if random.random() < 0.7}


def lived(
    random: Random, *, depth: int, size: int = 6, steps: int = 40, settings: TemporalSettings | None = None
) -> tuple[Town, list[Instant]]:
    """A town with a past, and the instants at which something happened."""
    settings = settings or TemporalSettings(depth=depth, settling=6.0)
    town = Town(
        size, tree(random, size), settings, trusted=(1, 3), without_access=(size - 2,), seed=random.randrange(99)
    )
    homes = [number for number in range(size) if number != size - 2]
    for number, name in enumerate(("ada", "bob", "cyd")):
        town.person(name, (1, 3)[number % 2], contexts=("me", "car"), changing=number != 1)
    instants = [town.now]
    for _ in range(steps):
        person = town.people[random.choice(sorted(town.people))]
        match random.randrange(8):
            case 0 | 1 | 2:
                person.register(random.choice(("me", "car")), context(random))
            case 3 if person.contexts:
                person.deregister(random.choice(sorted(person.contexts)))
            case 4 | 5:
                home = random.choice(homes)
                # Some hear a node from outside of its area, and some say nothing of where they are.
                place = random.choice([inside(home), inside(home, 0.0), inside(home, 1.7), inside(home), None])
                person.go(town.names[home], place)
            case 6:
                person.walk(random.choice([inside(random.randrange(size)), inside(random.randrange(size), 0.2)]))
            case 7 if random.random() < 0.5:
                person.go(None, None)
        instants.append(town.now)
        if random.random() < 0.8:
            town.run(random.choice([0.000_001, 0.05, 1.0, 7.0, 20.0]))
    town.run(50)
    return town, instants


def predicate(random: Random, instants: list[Instant], now: Instant) -> TemporalPredicate:
    while True:
        relation = random.choice(RELATIONS)
        a, b = sorted(random.choice(instants) + random.choice([-MICROSECONDS, -1, 0, 0, 1, MICROSECONDS]) for _ in "ab")
        z = random.choice([1, 2, 2 * MICROSECONDS, 20 * MICROSECONDS]) if relation in WITH_TOLERANCE else 0
        bounds = (a if random.random() < 0.9 else None, b if random.random() < 0.9 else None)
        found = TemporalPredicate(relation, *bounds, z)
        if message_class(found, now) == "historical":
            return found


def worth_sending(town: Town, random: Random, instants: list[Instant], name: str) -> Event:
    """Most predicates that are drawn are true of nobody; some of those that are sent shall be."""
    for _ in range(random.choice([1, 10, 10])):
        reach = random.choice([None, None, square(random.randrange(3), random.randrange(1, 4))])
        event = town.event(random.choice(TO), predicate(random, instants, town.now), reach=reach, name=name)
        if town.expected(event):
            break
    return event


def everybody_is_found(
    town: Town, random: Random, instants: list[Instant], *, messages: int = 6, first: int = 0
) -> None:
    events: list[Event] = []
    expected = {}
    for number in range(first, first + messages):
        event = worth_sending(town, random, instants, f"e{number}")
        town.publish(random.randrange(len(town.names)), event)
        expected[event.id] = town.expected(event)
        events.append(event)
        town.run(1)
    town.run(60)
    town.wires.loss = 0.0
    for person in town.people.values():
        if person.device._node is None:
            person.go("r000", None)
    town.run(30)
    for event in events:
        assert town.receivers(event) == expected[event.id], (event.to, event.when, event.reach)


@pytest.mark.parametrize("depth", DEPTHS)
@examples(12)
@given(seed=st.integers(0, 1_000_000))
def test_all_who_were_there_are_found_and_nobody_else(depth: int, seed: int) -> None:
    random = Random(seed)
    town, instants = lived(random, depth=depth)
    everybody_is_found(town, random, instants)


@examples(6)
@given(seed=st.integers(0, 1_000_000), depth=st.sampled_from(DEPTHS))
def test_also_where_messages_are_lost_while_they_are_asked_for(seed: int, depth: int) -> None:
    random = Random(seed)
    town, instants = lived(random, depth=depth)
    town.wires.loss = 0.15
    everybody_is_found(town, random, instants)
