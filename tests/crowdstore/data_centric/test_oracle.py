"""On a crowd that stands still and loses nothing, everybody hears of exactly what the definition says, once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd, grid
from tests.crowdstore.data_centric.venue import JOINED, dcs

from nearcast.crowdstore.formula import Formula
from nearcast.model.time import MICROSECONDS, TimeFrame

TAGS = ("a", "b", "c", "d")


def _formulas() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(TAGS),
        lambda inner: st.one_of(
            st.builds("!({})".format, inner),
            st.builds("({}) & ({})".format, inner, inner),
            st.builds("({}) | ({})".format, inner, inner),
        ),
        max_leaves=4,
    )


@st.composite
def _frames(draw: st.DrawFn) -> TimeFrame:
    """Also with bounds at the very instant of a publication: operations come at whole multiples of ten seconds."""
    since = draw(st.none() | st.integers(0, 12))
    until = draw(st.none() | st.integers(1, 13))
    if since is not None and until is not None and until <= since:
        until = since + 1
    start = round(JOINED * MICROSECONDS)
    at = [None if bound is None else start + bound * 10 * MICROSECONDS for bound in (since, until)]
    return TimeFrame(*at)


_operations = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(0, 11), st.sets(st.sampled_from(TAGS), min_size=1)),
        st.tuples(st.just("subscribe"), st.integers(0, 11), st.tuples(_formulas(), _frames())),
        st.tuples(st.sampled_from(["unpublish", "unsubscribe"]), st.integers(0, 11), st.just(None)),
    ),
    max_size=12,
)


@pytest.mark.parametrize("empty", [(), (5, 6)], ids=["all cells have a member", "a void"])
@settings(max_examples=15)
@given(_operations)
def test_everybody_hears_what_the_definition_says(
    empty: tuple[int, ...], operations: list[tuple[str, int, Any]]
) -> None:
    places = [place for number, place in enumerate(grid(4, 3)) if number not in empty]
    places += [(x + 7.0, y - 9.0) for x, y in places[:4]]  # cells with two members
    crowd = Crowd(places, dcs(4, 3))
    crowd.run(JOINED)
    for number, (operation, node, what) in enumerate(operations):
        host = f"n{node % len(places)}"
        if operation == "publish":
            crowd.publish(host, f"o{number}", *sorted(what))
        elif operation == "subscribe" and Formula.parse(what[0]).conjunctions:
            crowd.subscribe(host, *what)
        elif operation == "unpublish":
            there = [key for key, thing in crowd.things.items() if thing.withdrawn is None]
            if there:
                crowd.unpublish(there[node % len(there)].owner, there[node % len(there)].name)
        elif operation == "unsubscribe":
            wanted = [key for key, wish in crowd.wishes.items() if wish.ended is None]
            if wanted:
                crowd.unsubscribe(wanted[node % len(wanted)].owner, wanted[node % len(wanted)])
        crowd.run(10)
    crowd.run(10)
    heard = Counter(crowd.heard.notified)
    assert set(heard) == crowd.expected()
    assert all(times == 1 for times in heard.values())
    assert [outcome for _, outcome in crowd.heard.outcomes if not outcome.ok] == []
    assert len(crowd.heard.outcomes) == len(crowd.things) + len(crowd.wishes) + sum(
        thing.withdrawn is not None for thing in crowd.things.values()
    ) + sum(wish.ended is not None for wish in crowd.wishes.values())
