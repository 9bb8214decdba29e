"""STE: envelopes instead of circles, at the broker."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filtering.halves import TERRITORY, Ears, Step, World, events, expected, of, place, play, steps

from nearcast.filtering.client_half import Surroundings
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import ContextUpdate
from nearcast.filtering.registry import client_halves
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.runtime.ports import Fix

alphas = st.sampled_from([0.0, 0.1, 0.5, 1.5])


def update(time: int, at: Point, speed: float = 0.0, heading: float | None = None) -> ContextUpdate:
    return ContextUpdate(time, at.lat, at.lon, speed, heading)


def at(x: float, y: float) -> Event:
    return Event("e", "news", 0, place=place(x, y))


def _around(radius: float, name: str) -> Subscription:
    return Subscription("news", area=Circle(radius), id=name)


@given(script=st.lists(steps, max_size=14), published=st.lists(events, min_size=1, max_size=4))
def test_without_looking_ahead_it_is_radial(script: list[Step], published: list[Event]) -> None:
    radial, ste = Ears().make(of("RADIAL")), Ears().make(of("STE", alpha=0.0))
    play(radial, World(), script)
    play(ste, World(), script)
    for event in published:
        assert ste.receivers(event, None) == radial.receivers(event, None)


@given(
    script=st.lists(steps, max_size=14),
    published=st.lists(events, min_size=1, max_size=4),
    lower=alphas,
    higher=alphas,
)
def test_who_is_found_looking_ahead_is_found_looking_farther(
    script: list[Step], published: list[Event], lower: float, higher: float
) -> None:
    lower, higher = sorted((lower, higher))
    near, far = Ears().make(of("STE", alpha=lower)), Ears().make(of("STE", alpha=higher))
    play(near, World(), script)
    play(far, World(), script)
    for event in published:
        assert set(near.receivers(event, None)) <= set(far.receivers(event, None))


one = st.just("ada")
walks = st.one_of(
    st.tuples(st.just("subscribe"), one, st.builds(_around, st.sampled_from([30.0, 125.0]), st.sampled_from("ab"))),
    st.tuples(st.just("unsubscribe"), one, st.sampled_from("ab")),
    st.tuples(
        st.just("hear"),
        one,
        st.builds(
            update, st.just(0), st.just(place(0, 0)), st.sampled_from([0.0, 1.5, 10.0]), st.sampled_from([0.0, 90.0])
        ),
    ),
)


@given(st.lists(walks, min_size=3, max_size=8))
def test_whatever_a_walker_does_its_envelopes_are_those_of_its_last_step_and_its_subscriptions(
    script: list[Step],
) -> None:
    half, world, spec = Ears().make(of("STE", alpha=0.5)), World(), of("STE", alpha=0.5)
    play(half, world, script)
    for event in (at(x, y) for x in (0, 40, 110, 280) for y in (0, 40, 110, 280)):
        assert set(half.receivers(event, None)) == expected(spec, world, event)


@pytest.mark.parametrize("angle", [0.0, 15.0, 45.0])
def test_it_looks_where_the_client_goes_and_widens(angle: float) -> None:
    half = Ears().make(of("STE", alpha=1.0, angle=angle))
    half.adopt("ada", ClientContext())
    half.subscribe("ada", Subscription("news", area=Circle(100.0)))
    half.hear("ada", update(1, place(0, 0), 5.0, 90.0))  # 300 m to the east
    assert half.receivers(at(299, 0), None) == ["ada"]
    assert half.receivers(at(301, 0), None) == []
    assert half.receivers(at(-99, 0), None) == ["ada"]
    assert half.receivers(at(-101, 0), None) == []
    assert half.receivers(at(200, 99), None) == ["ada"]
    assert half.receivers(at(200, 150), None) == (["ada"] if angle >= 15.0 else [])
    assert half.receivers(at(200, 160), None) == (["ada"] if angle >= 45.0 else [])
    half.hear("ada", update(2, place(0, 0)))  # it stands
    assert half.receivers(at(101, 0), None) == []
    assert half.receivers(at(99, 0), None) == ["ada"]


def test_each_subscription_has_an_envelope_of_its_own() -> None:
    half = Ears().make(of("STE", alpha=1.0, angle=0.0))
    half.adopt("ada", ClientContext())
    wide = Subscription("news", "severity >= 3", Circle(300.0), id="wide")
    half.subscribe("ada", Subscription("news", area=Circle(50.0), id="narrow"))
    half.subscribe("ada", wide)
    half.hear("ada", update(1, place(0, 0), 5.0, 0.0))
    mild, bad = (Event("e", "news", 0, {"severity": n}, place=place(200, 200)) for n in (1, 5))
    assert (half.receivers(mild, None), half.receivers(bad, None)) == ([], ["ada"])
    half.unsubscribe("ada", "wide")
    assert half.receivers(bad, None) == []  # the envelope went with its subscription
    half.subscribe("ada", wide)
    assert half.receivers(bad, None) == ["ada"]
    half.unsubscribe("ada", "narrow")
    half.subscribe("ada", Subscription("news", id="wide"))
    assert half.receivers(mild, None) == ["ada"]  # and an envelope of before does not stand in the way of no area


def test_recall_rises_and_precision_falls_with_the_way_that_it_looks_ahead() -> None:
    """Random walks, reported every 10 s; sizes as in the documents' city."""
    random = Random(4)
    figures = []
    for alpha in (0.0, 0.05, 0.15, 0.5, 1.5):
        half, walkers = Ears().make(of("STE", alpha=alpha)), Random(5)
        truth: dict[str, tuple[float, float]] = {}
        for number in range(300):
            name, x, y = f"c{number}", walkers.uniform(-650, 650), walkers.uniform(-650, 650)
            heading, age = walkers.choice([0.0, 90.0, 180.0, 270.0]), walkers.uniform(0, 10)
            half.adopt(name, ClientContext())
            half.subscribe(name, Subscription("news", area=Circle(125.0)))
            half.hear(name, update(0, place(x, y), 4.0, heading))
            east, north = {0.0: (0, 1), 90.0: (1, 0), 180.0: (0, -1), 270.0: (-1, 0)}[heading]
            truth[name] = x + 4.0 * age * east, y + 4.0 * age * north
        concerned = found = both = 0
        random.seed(6)
        for _ in range(200):
            x, y = random.uniform(-650, 650), random.uniform(-650, 650)
            near = {c for c, (cx, cy) in truth.items() if (cx - x) ** 2 + (cy - y) ** 2 <= 124.9**2}
            reached = set(half.receivers(at(x, y), None))
            concerned, found, both = concerned + len(near), found + len(reached), both + len(near & reached)
        figures.append((both / concerned, both / found))
    recalls, precisions = zip(*figures, strict=True)
    assert list(recalls) == sorted(recalls)
    assert list(precisions) == sorted(precisions, reverse=True)
    # Behind, nothing reaches farther than the circle: with 40 m at most, a strip of it is always missing for who looks nowhere.
    assert recalls[0] < 0.92
    assert recalls[-1] > 0.99


def test_clients_say_how_they_move() -> None:
    said: list[object] = []
    client = client_halves(TERRITORY, Surroundings(said.append, lambda: None, lambda: 0.0))(of("STE"))
    client.moved(Fix(1, place(0, 0), 0.0, 1.5, 270.0))
    assert said == [update(1, place(0, 0), 1.5, 270.0)]


def test_envelopes_are_counted_like_circles() -> None:
    ears, world = Ears(), World()
    half = ears.make(of("STE"))
    play(half, world, [("subscribe", name, Subscription("news", area=Circle(100.0))) for name in ("ada", "bob")])
    half.hear("ada", update(1, place(0, 0), 5.0, 0.0))
    half.receivers(at(0, 50), None)
    assert ears.tally.counted == 2
