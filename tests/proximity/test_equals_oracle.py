"""On a connected network without load, whoever the definition names gets an event, once, and nobody else."""

from __future__ import annotations

from collections import Counter
from functools import partial

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
from nearcast.proximity.event_type import EventType
from nearcast.proximity.nucleus import Handler

TYPES = [EventType.of(f"town/{name}", {"level": "integer"}) for name in "abc"]
WALKERS, PRODUCERS = 8, 3
FILTERS = (None, "level >= 2", "level < 2 OR level = 3")
BORDER = 1.0
"""Metres: whoever is so near to a border may have crossed it while a message was on its way."""

places = st.tuples(st.floats(-250, 250), st.floats(-250, 250))
velocities = st.tuples(st.floats(-8, 8), st.floats(-8, 8))
sizes = st.floats(30, 280)


@st.composite
def areas(draw: st.DrawFn) -> Area:
    size, other = draw(sizes), draw(sizes)
    if draw(st.booleans()):
        return Circle(size)
    if draw(st.booleans()):
        return Rectangle(size, other)
    return Outline(((-size, -other), (size, -other), (0.0, other), (-size, -other)))


@st.composite
def producers(draw: st.DrawFn) -> tuple[tuple[float, float], tuple[float, float] | None, int, Area]:
    """Where it starts; how it moves, or that it stands and its proximity is anchored there; type; area."""
    moving = draw(st.none() | velocities)
    return draw(places), moving, draw(st.integers(0, 2)), draw(areas())


walkers = st.tuples(places, velocities, st.sets(st.tuples(st.integers(0, 2), st.sampled_from(FILTERS)), max_size=3))


@examples(25)
@given(
    st.lists(producers(), min_size=1, max_size=PRODUCERS),
    st.lists(walkers, min_size=1, max_size=WALKERS),
    st.lists(st.tuples(st.integers(0, PRODUCERS - 1), st.integers(0, 4)), min_size=1, max_size=8),
)
def test_who_gets_what_is_what_the_definition_says(
    announcing: list[tuple[tuple[float, float], tuple[float, float] | None, int, Area]],
    walking: list[tuple[tuple[float, float], tuple[float, float], set[tuple[int, str | None]]]],
    raising: list[tuple[int, int]],
) -> None:
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
    events: list[Event] = []

    def raised(which: int, level: int) -> None:
        name, (_, _, kind, _) = f"p{which}", announcing[which]
        event = town[name].raise_event(TYPES[kind].subject, {"level": level})
        events.append(event)
        for walker in range(len(walking)):
            history.moved(f"w{walker}", event.published, town.place(f"w{walker}"))

    for number, (which, level) in enumerate(raising):
        # Just after a beacon: everybody knows in which proximities it is.
        town.at(1.02 + number, partial(raised, which % len(announcing), level))
    town.run(2.0 + len(raising))

    for event in events:
        due = receivers(history, event, town.simulation.now())
        for walker in range(len(walking)):
            name = f"w{walker}"
            if _doubtful(event, history.client(name).position.at(event.published)):
                continue
            wanted_by = sum(
                1 for held in history.client(name).held
                if held.subscription.topic == event.topic and name in due and _takes(held.subscription.where, event)
            )  # fmt: skip
            assert got[name, event.id] == wanted_by, (name, event)


def _counting(got: Counter[tuple[str, str]], name: str) -> Handler:
    """A handler of its own for each subscription."""

    def count(event: Event) -> None:
        got[name, event.id] += 1

    return count


def _takes(where: Predicate | None, event: Event) -> bool:
    return where is None or evaluate(where, event.properties()) is True


def _doubtful(event: Event, place: Point | None) -> bool:
    """Near the border of the reach, positions of one instant and of the next may differ."""
    assert event.reach is not None
    assert place is not None
    x, y = PLANE.to_xy(place)
    around = [at(x + dx, y + dy) for dx in (-BORDER, 0, BORDER) for dy in (-BORDER, 0, BORDER)]
    return len({event.reach.covers(point) for point in around}) > 1
