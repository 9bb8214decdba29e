"""On a crowd that stands still and loses nothing, everybody hears of exactly what the definition says, once: whatever mechanism runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd, grid
from tests.crowdstore.data_centric.venue import dcs
from tests.crowdstore.lossy import connected
from tests.effort import examples

from nearcast.crowdstore.formula import Formula
from nearcast.crowdstore.storage import Failure
from nearcast.model.time import EVER, MICROSECONDS, TimeFrame
from nearcast.transition.specification import MechanismSpec

STEP = 2
TAGS = ("a", "b", "c", "d")
TRICKY = (
    "!a",  # nothing that must be there
    "!(a | b | c)",
    "(a | c) & !(b & c)",
    "a & b | a & c | b & d",  # one object may satisfy all of them
    "a | !a",  # everything
    "a & !b | !a & b",
)


@dataclass(frozen=True)
class Ground:
    """Where a crowd stands, and what it runs."""

    mechanism: MechanismSpec
    places: list[tuple[float, float]] | None = None
    """None: anywhere, in reach of each other."""

    joined: float = 25.0

    def crowd(self, random: Random) -> Crowd:
        places = self.places or connected(random, 6)
        crowd = Crowd(places, self.mechanism, seed=random.randrange(1_000))
        crowd.run(self.joined)
        return crowd


def _cells(*empty: int) -> Ground:
    """4 x 3 cells, the first four with two members."""
    places = [place for number, place in enumerate(grid(4, 3)) if number not in empty]
    return Ground(dcs(4, 3), [*places, *((x + 7.0, y - 9.0) for x, y in places[:4])])


GROUNDS = [
    pytest.param(Ground(MechanismSpec("PL/SG")), id="PL/SG"),
    pytest.param(_cells(), id="DCS"),
    pytest.param(_cells(5, 6), id="DCS with a void"),
    pytest.param(Ground(dcs(20, 20)), id="DCS, six hosts in 400 cells"),
]


def _formulas() -> st.SearchStrategy[str]:
    return st.sampled_from(TRICKY) | st.recursive(
        st.sampled_from(TAGS),
        lambda inner: st.one_of(
            st.builds("!({})".format, inner),
            st.builds("({}) & ({})".format, inner, inner),
            st.builds("({}) | ({})".format, inner, inner),
        ),
        max_leaves=4,
    )


hosts = st.integers(0, 5).map("n{}".format)
bounds = st.integers(-4, 4) | st.none()
operations = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), hosts, st.frozensets(st.sampled_from(TAGS), min_size=1)),
        st.tuples(st.just("subscribe"), hosts, st.tuples(_formulas(), bounds, bounds)),
        st.tuples(st.sampled_from(["unpublish", "unsubscribe", "pause"]), hosts, st.integers(0, 9)),
        st.tuples(st.just("download"), hosts, st.integers(0, 9)),
    ),
    max_size=20,
)


def _frame(crowd: Crowd, since: int | None, until: int | None) -> TimeFrame:
    """Bounds at the very instants of operations: of this one, earlier and later ones."""
    now, step = crowd.simulation.now(), STEP * MICROSECONDS
    start = None if since is None else now + since * step
    end = None if until is None else now + until * step
    return EVER if start is not None and end is not None and end <= start else TimeFrame(start, end)


class Script:
    """Publications and subscriptions may come at the same instant; what withdraws something comes when that has been heard of."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.begun: Counter[str] = Counter()
        self.wanted: list[bytes] = []

    def operate(self, what: str, host: str, argument: Any) -> None:
        crowd = self.crowd
        if what == "publish":
            # Owners use the same names.
            name = f"o{sum(key.owner == host for key in crowd.things)}"
            crowd.publish(host, name, *sorted(argument), content=f"{host} {name}".encode())
        elif what == "subscribe":
            formula, since, until = argument
            if not Formula.parse(formula).conjunctions:
                return
            crowd.subscribe(host, formula, _frame(crowd, since, until))
        else:
            crowd.run(STEP)
            there = [key for key, thing in crowd.things.items() if thing.withdrawn is None]
            wished = [key for key, wish in crowd.wishes.items() if wish.ended is None]
            if what == "unpublish" and there:
                chosen = there[argument % len(there)]
                crowd.unpublish(chosen.owner, chosen.name)
            elif what == "unsubscribe" and wished:
                crowd.unsubscribe(wished[argument % len(wished)].owner, wished[argument % len(wished)])
            elif what == "download" and there:
                chosen = there[argument % len(there)]
                crowd.download(host, crowd.things[chosen].metadata)
                self.wanted.append(f"{chosen.owner} {chosen.name}".encode())
            else:
                return
            crowd.run(STEP)
        self.begun[what] += 1


@pytest.mark.parametrize("ground", GROUNDS)
@examples(12)
@given(script=operations, random=st.randoms(use_true_random=False))
def test_everybody_hears_of_what_matches_once_and_of_nothing_else(
    ground: Ground, script: list[tuple[str, str, Any]], random: Random
) -> None:
    crowd = ground.crowd(random)
    played = Script(crowd)
    for step in script:
        played.operate(*step)
    crowd.run(5 * STEP)
    heard = Counter(crowd.heard.notified)
    assert set(heard) == crowd.expected()
    assert set(heard.values()) <= {1}
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)
    assert Counter(what for what, _ in crowd.heard.outcomes) == played.begun
    assert [outcome.content for what, outcome in crowd.heard.outcomes if what == "download"] == played.wanted


@pytest.mark.parametrize("ground", GROUNDS)
def test_what_was_unpublished_never_appears_afterwards(ground: Ground) -> None:
    crowd = ground.crowd(Random(1))
    made = crowd.publish("n0", "x", "a", "b")
    crowd.publish("n1", "x", "a")  # of the same name
    crowd.run(STEP)
    crowd.unpublish("n0", "x")
    crowd.run(STEP)
    now = crowd.simulation.now()
    for formula in ("a", "b", "a | b", "!c"):
        for frame in (EVER, TimeFrame(None, now), TimeFrame(made.published, made.published + 1)):
            crowd.subscribe("n2", formula, frame)
    crowd.download("n3", made)
    crowd.run(60)
    assert {key for _, key in crowd.heard.notified} == {key for key in crowd.things if key.owner == "n1"}
    downloads = [outcome.failure for what, outcome in crowd.heard.outcomes if what == "download"]
    assert downloads == [Failure.NOT_FOUND]


@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("first", ["publish", "subscribe"])
def test_at_the_seams_of_a_frame(ground: Ground, first: str) -> None:
    """It contains its beginning, and not its end; at one instant, the order makes no difference."""
    crowd = ground.crowd(Random(2))
    now = crowd.simulation.now()

    def subscribe() -> None:
        for since, until in (
            (now, None),
            (now + 1, None),
            (None, now),
            (None, now + 1),
            (now, now + 1),
            (now - 1, now),
        ):
            crowd.subscribe("n0", "a", TimeFrame(since, until))

    if first == "subscribe":
        subscribe()
    crowd.publish("n5", "x", "a")
    if first == "publish":
        subscribe()
    crowd.run(10)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    frames = [crowd.wishes[key].frame for key, _ in crowd.heard.notified]
    assert len(frames) == 3
    assert all(frame.contains(now) for frame in frames)
