"""On a connected network without load, whoever the definition names gets an event, once, and nobody else."""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.proximity.town import PLANE, Town, at

from nearcast.model.area import Area, Circle, Outline, Rectangle
from nearcast.model.delivery import receivers
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.predicate import Predicate
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.event_type import EventType
from nearcast.proximity.nucleus import Handler

TYPES = [EventType.of(f"town/{name}", {"level": "integer"}) for name in "abc"]
WALKERS, PRODUCERS = 10, 4
FILTERS = (None, "level >= 2", "level < 2 OR level = 3")
BORDER = 1.0
"""Metres: whoever is so near to a border may have crossed it while a message was on its way."""

Producer = tuple[tuple[float, float], tuple[float, float] | None, int, Area]
"""Where it starts; how it moves, or none: it stands, and its proximity is anchored there; type; area."""

Walker = tuple[tuple[float, float], tuple[float, float], set[tuple[int, str | None]]]
"""Where it starts, how it moves, what it wants."""


def _place(random: Random) -> tuple[float, float]:
    return random.uniform(-200, 200), random.uniform(-200, 200)


def _velocity(random: Random) -> tuple[float, float]:
    return random.uniform(-25, 25), random.uniform(-25, 25)


def _area(random: Random) -> Area:
    size, other = random.uniform(60, 280), random.uniform(60, 280)
    triangle = Outline(((-size, -other), (size, -other), (0.0, other), (-size, -other)))
    return random.choice((Circle(size), Rectangle(2 * size, other), triangle))


def _producer(random: Random) -> Producer:
    return _place(random), random.choice((None, _velocity(random))), random.randrange(3), _area(random)


def _walker(random: Random) -> Walker:
    wanted = {(random.randrange(3), random.choice(FILTERS)) for _ in range(random.randrange(4))}
    return _place(random), _velocity(random), wanted


# A seed, and not parts that Hypothesis draws: it prefers the small and the empty, and then nobody crosses a border.
@examples(20)
@given(st.integers(0, 2**32))
def test_who_gets_what_is_what_the_definition_says(seed: int) -> None:
    """Nobody else, ever; all of them, if they were in the proximity when its last beacon came."""
    random = Random(seed)
    announcing = [_producer(random) for _ in range(PRODUCERS)]
    walking = [_walker(random) for _ in range(WALKERS)]
    raising = [(random.randrange(PRODUCERS), random.randrange(5), random.choice((0.02, 0.5, 0.95))) for _ in range(8)]
    names = {f"p{number}": place for number, (place, *_) in enumerate(announcing)}
    names |= {f"w{number}": place for number, (place, *_) in enumerate(walking)}
    # In range of each other wherever they are: the network is connected.
    town = Town(names, radius=5_000.0)
    history, got = History(), Counter[tuple[str, str]]()
    for number, (place, moving, kind, area) in enumerate(announcing):
        name = f"p{number}"
        if moving is not None:
            town.drive(name, place, moving)
        town[name].announce(TYPES[kind], area, at(*place) if moving is None else None)
    for number, (place, velocity, wanted) in enumerate(walking):
        name = f"w{number}"
        town.drive(name, place, velocity)
        history.moved(name, 0, at(*place))
        for kind, where in sorted(wanted, key=str):
            subject = TYPES[kind].subject
            town[name].subscribe(subject, _counting(got, name), where)
            history.subscribed(name, 0, Subscription(subject, where, id=f"{kind} {where}"))
    events: list[tuple[Event, int]] = []

    def raised(which: int, level: int) -> None:
        name, (_, _, kind, _) = f"p{which}", announcing[which]
        event = town[name].raise_event(TYPES[kind].subject, {"level": level})
        events.append((event, which))
        for walker in range(len(walking)):
            history.moved(f"w{walker}", event.published, town.place(f"w{walker}"))

    for number, (which, level, after) in enumerate(raising):
        town.at(1.0 + number + after, partial(raised, which, level))
    town.run(2.5 + len(raising))

    for event, which in events:
        due = receivers(history, event, town.simulation.now())
        last_beacon = event.published // MICROSECONDS
        place, moving, _, area = announcing[which]
        announced = area.anchored(at(*_gone(place, moving, last_beacon)))
        for walker, (start, velocity, _) in enumerate(walking):
            name = f"w{walker}"
            now = history.client(name).position.at(event.published)
            assert now is not None
            assert event.reach is not None
            if _doubtful(event.reach, now):
                continue
            copies = 0
            if name in due:
                held = [each.subscription for each in history.client(name).held]
                copies = sum(each.topic == event.topic and _takes(each.where, event) for each in held)
            known = at(*_gone(start, velocity, last_beacon))
            if _doubtful(announced, known) or not announced.covers(known):
                assert got[name, event.id] in (0, copies), (name, event)
            else:
                assert got[name, event.id] == copies, (name, event)


def _gone(start: tuple[float, float], velocity: tuple[float, float] | None, seconds: float) -> tuple[float, float]:
    (x, y), (vx, vy) = start, velocity or (0.0, 0.0)
    return x + vx * seconds, y + vy * seconds


def _counting(got: Counter[tuple[str, str]], name: str) -> Handler:
    """A handler of its own for each subscription."""

    def count(event: Event) -> None:
        got[name, event.id] += 1

    return count


def _takes(where: Predicate | None, event: Event) -> bool:
    return where is None or evaluate(where, event.properties()) is True


def _doubtful(area: Area, place: Point) -> bool:
    """Near the border, positions of one instant and of the next may differ."""
    x, y = PLANE.to_xy(place)
    around = [at(x + dx, y + dy) for dx in (-BORDER, 0, BORDER) for dy in (-BORDER, 0, BORDER)]
    return len({area.covers(point) for point in around}) > 1
