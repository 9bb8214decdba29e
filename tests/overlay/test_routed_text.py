"""What is written plainly is read as it was meant, so that nobody need look."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nearcast.model.area import Box
from nearcast.model.cql2 import parse
from nearcast.model.event import Event
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import And, Comparison, Literal, Not, Or, Predicate, Property, Spatial
from nearcast.overlay.routing.wire import _plain, routed

NAMES = st.sampled_from(("age", "position", "a b", "and", "x.y", 'q"uote', "speed_2"))
NUMBERS = st.one_of(st.integers(-(10**17), 10**17), st.floats(allow_nan=False, allow_infinity=False))
COMPARISONS = st.builds(
    Comparison,
    st.sampled_from(("=", "<>", "<", "<=", ">", ">=")),
    st.builds(Property, NAMES),
    st.builds(Literal, NUMBERS),
)


@st.composite
def rectangles(draw: st.DrawFn) -> Spatial:
    west, east = draw(st.floats(-180, 180)), draw(st.floats(-180, 180))
    south, north = sorted((draw(st.floats(-90, 90)), draw(st.floats(-90, 90))))
    return Spatial(
        draw(st.sampled_from(("s_within", "s_intersects", "s_disjoint"))), "position", Box(west, south, east, north)
    )


ATOMS = st.one_of(COMPARISONS, rectangles())
PREDICATES = st.recursive(
    st.one_of(ATOMS, st.builds(Not, ATOMS)),
    lambda of: st.builds(
        lambda kind, terms: kind(tuple(terms)), st.sampled_from((And, Or)), st.lists(of, min_size=2, max_size=3)
    ),
    max_leaves=5,
)


@given(PREDICATES)
def test_what_is_plain_is_read_as_it_was_written(predicate: Predicate) -> None:
    event = Event("e", "news", 0, to=predicate)
    if all(_plain(literal) for conjunct in event.conjuncts for literal in conjunct):
        assert disjunctive_normal_form(parse(routed(event, "r").to)) == event.conjuncts
