"""The index of messages that wait leaves nobody out, and lets most be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import areas, atoms, far_points, formulas, names, points
from tests.overlay.contexts import any_values, plug_in_atoms, plug_ins

from nearcast.errors import FormulaTooLarge
from nearcast.matching.context_columns import Questions, questions, surely
from nearcast.model.area import Box
from nearcast.model.cql2 import parse
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION, Context
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import And, Comparison, In, Literal, Predicate, Property, Spatial
from nearcast.overlay.temporal.concerned import Concerned
from nearcast.overlay.values.possible import possibly


@pytest.fixture(autouse=True)
def _plug_ins() -> Iterator[None]:
    with plug_ins():
        yield


values = st.sampled_from([0, 1, 1.0, True, "x", "X", "/v", "/v/car", ""])
equalities: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Comparison, st.just("="), names.map(Property), values.map(Literal)),
    st.builds(In, names.map(Property), st.frozensets(values.map(Literal), min_size=1, max_size=3)),
)
reaches: st.SearchStrategy[Predicate] = st.builds(
    Spatial, st.sampled_from(["s_within", "s_intersects"]), st.just(POSITION), areas
)
asked = st.one_of(
    formulas(st.one_of(atoms, equalities, plug_in_atoms), max_leaves=4),
    st.tuples(formulas(st.one_of(atoms, equalities), max_leaves=3), reaches).map(And),
)
contexts: st.SearchStrategy[Context] = st.tuples(
    st.dictionaries(names, st.one_of(any_values, values)),
    st.one_of(st.just({}), st.one_of(points, far_points, areas).map(lambda place: {POSITION: place})),
).map(lambda parts: {**parts[0], **parts[1]})


def conjuncts(predicate: Predicate) -> Questions:
    try:
        return questions(disjunctive_normal_form(predicate, 16))
    except FormulaTooLarge:
        return ()


@given(
    messages=st.lists(asked, min_size=1, max_size=5), context=contexts, optional=st.frozensets(names), data=st.data()
)
def test_nobody_is_left_out(
    messages: list[Predicate], context: Context, optional: frozenset[str], data: st.DataObject
) -> None:
    index, wanted = Concerned(), {str(number): conjuncts(each) for number, each in enumerate(messages)}
    for name, each in wanted.items():
        index.add(name, each)
    gone = data.draw(st.sets(st.sampled_from(sorted(wanted))))
    for name in gone:
        index.remove(name)
    found = list(index.by(context))
    assert len(found) == len(set(found))
    assert gone.isdisjoint(found)
    for judge in (surely, possibly):
        meeting = {
            name
            for name, each in wanted.items()
            if any(all(judge(term.literal, context, optional) for term in conjunct) for conjunct in each)
        }
        assert meeting - gone <= set(found)


@pytest.mark.parametrize(
    ("to", "found"),
    [
        ("role = 'staff'", True),
        ("role = 'guest'", False),
        ("role IN ('guest', 'staff')", True),
        ("age > 3", True),
        ("mood > 3", False),
        ("age = 30 OR mood = 1", True),
        ("age = 31 AND mood IS NULL", False),
        ("mood IS NULL", True),
        ("S_WITHIN(position, BBOX(8.6, 49.8, 8.7, 49.9))", True),
        ("S_WITHIN(position, BBOX(9.6, 49.8, 9.7, 49.9))", False),
        ("role LIKE 's%' AND S_WITHIN(position, BBOX(9.6, 49.8, 9.7, 49.9))", False),
    ],
)
def test_messages_for_others_are_not_looked_at(to: str, found: bool) -> None:
    index = Concerned()
    index.add("e", conjuncts(parse(to)))
    assert list(index.by({"role": "staff", "age": 30, "position": Point(49.85, 8.65)})) == (["e"] if found else [])


def test_who_is_somewhere_in_an_area_may_be_anywhere() -> None:
    index = Concerned()
    index.add("e", conjuncts(parse("S_WITHIN(position, BBOX(8.6, 49.8, 8.7, 49.9))")))
    assert list(index.by({"position": Box(8.0, 49.0, 9.0, 50.0)})) == ["e"]
    assert list(index.by({"age": 3})) == []
    index.remove("e")
    assert list(index.by({"position": Point(49.85, 8.65)})) == []
