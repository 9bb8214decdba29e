"""The table of entries answers as the model does, entry by entry."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS, World, addressing, contexts

from nearcast.matching.entries import EntryTable, questions
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.area import Box, Circle, Rectangle
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.geometry import Point
from nearcast.model.normal_form import disjunctive_normal_form
from nearcast.model.predicate import And, Comparison, Literal, Predicate, Property, Spatial
from nearcast.model.values import OneOf, Range
from nearcast.overlay.values.coarse import Coarse, coarse, merged_all
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.possible import addressed, possibly

GROUPS = 4


def matched(context: dict[str, Any], predicate: Predicate) -> bool:
    return any(evaluate(And(conjunct), context) is True for conjunct in disjunctive_normal_form(predicate))


@given(st.data(), st.sampled_from(WORLDS))
def test_groups_and_keys_are_those_of_the_model(data: st.DataObject, world: World) -> None:
    table: EntryTable[int] = EntryTable()
    known: dict[int, tuple[int, dict[str, Any]]] = {}
    changes = st.tuples(st.integers(0, 12), st.integers(0, GROUPS - 1), st.one_of(st.none(), contexts(world)))
    for key, group, context in data.draw(st.lists(changes, max_size=25)):
        if context is None:
            table.remove(key)
            known.pop(key, None)
        else:
            table.put(key, group, context)
            known[key] = group, context
    assert len(table) == len(known)
    assert dict(table.items()) == {key: context for key, (_, context) in known.items()}
    for _ in range(3):
        predicate = data.draw(addressing(world))
        asked = questions(disjunctive_normal_form(predicate))
        expected = {key for key, (_, context) in known.items() if matched(context, predicate)}
        found = table.keys(asked)
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert table.groups(asked) == {known[key][0] for key in expected}
        assert table.meets(asked) == bool(expected)


OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
VALUES = (1, 2.5, Range(1, 3), Range(2, 2), Range(2**60, 2**61), OneOf({1, 4}), "2", True, 2**60)


@pytest.mark.parametrize("op", OPERATORS)
@pytest.mark.parametrize("number", [1, 2, 2.5, 3, 2**60])
def test_ranges_and_large_numbers_are_compared_as_the_model_compares(op: str, number: float) -> None:
    from nearcast.model.predicate import Not

    table: EntryTable[int] = EntryTable()
    for key, value in enumerate(VALUES):
        table.put(key, 0, {"x": value})
    atom = Comparison(op, Property("x"), Literal(number))
    for literal in (atom, Not(atom)):
        expected = {key for key, value in enumerate(VALUES) if evaluate(literal, {"x": value}) is True}
        assert set(table.keys(questions(((literal,),)))) == expected


@pytest.mark.parametrize("lat", [0.0, 49.8, 89.9, -89.99])
@pytest.mark.parametrize("lon", [8.6, 179.9999, -180.0])
def test_bounds_leave_nobody_out_near_poles_and_the_antimeridian(lat: float, lon: float) -> None:
    table: EntryTable[int] = EntryTable()
    places: list[Any] = []
    for north in (-0.02, -0.001, 0.0, 0.001, 0.02):
        for east in (-0.03, -0.001, 0.0, 0.001, 0.03):
            point = Point(max(-90.0, min(90.0, lat + north)), (lon + east + 180.0) % 360.0 - 180.0)
            places += [point, Circle(80.0, point), Rectangle(4_000.0, 100.0, point)]
    for key, place in enumerate(places):
        table.put(key, 0, {"position": place})
    here = Point(lat, lon)
    for area in (Circle(110.0, here), Circle(3_000.0, here), Rectangle(5_000.0, 200.0, here), Box(-180, -90, 180, 90)):
        literal = Spatial("s_within", "position", area)
        expected = {key for key, place in enumerate(places) if evaluate(literal, {"position": place}) is True}
        assert set(table.keys(questions(((literal,),)))) == expected


def test_equal_contexts_of_a_group_share_a_row_and_true_is_not_one() -> None:
    table: EntryTable[str] = EntryTable()
    for key in "abc":
        table.put(key, 0, {"position": Circle(5.0, Point(1, 1))})
    table.put("d", 1, {"position": Circle(5.0, Point(1, 1))})
    table.put("e", 0, {"flag": True})
    table.put("f", 0, {"flag": 1})
    assert (len(table), table.rows) == (6, 4)
    is_one = Comparison("=", Property("flag"), Literal(1))
    assert table.keys(questions(((is_one,),))) == ["f"]
    for key in "abc":
        table.remove(key)
    table.remove("nobody")
    assert (len(table), table.rows) == (3, 3)


def test_values_that_went_are_forgotten() -> None:
    table: EntryTable[int] = EntryTable()
    for number in range(200):
        table.put(7, 0, {"name": f"n{number}"})
    column = table._shared.columns._columns["name"]
    assert len(column.values) <= 2
    assert len(column._codes) == 1


@given(st.data(), st.sampled_from(WORLDS))
def test_a_table_that_asks_what_is_possible_answers_as_one_by_one(data: st.DataObject, world: World) -> None:
    """With attributes that some of those lack whom an entry stands for; and nobody whom it stands for is missed (Def. 4.3)."""
    table: EntryTable[int] = EntryTable(possibly)
    known: dict[int, Coarse] = {}
    members: dict[int, list[dict[str, Any]]] = {}
    for key, several in enumerate(data.draw(st.lists(st.lists(contexts(world), min_size=1, max_size=4), max_size=8))):
        whole = merged_all(map(coarse, several), Limits(data.draw(st.integers(1, 3))))
        if whole is not None:
            table.put(key, key % GROUPS, whole.attributes, whole.optional)
            known[key], members[key] = whole, several
    for _ in range(3):
        predicate = data.draw(addressing(world))
        conjuncts = disjunctive_normal_form(predicate)
        found = set(table.keys(questions(conjuncts)))
        assert found == {key for key, whole in known.items() if addressed(conjuncts, whole)}
        assert {key for key, several in members.items() if any(matched(each, predicate) for each in several)} <= found
        assert table.groups(questions(conjuncts)) == {key % GROUPS for key in found}


def test_what_some_lack_is_asked_for_with_and_without_it() -> None:
    table: EntryTable[str] = EntryTable(possibly)
    table.put("all have it", 0, {"age": Range(20, 30)})
    table.put("some lack it", 0, {"age": Range(20, 30)}, frozenset({"age"}))
    table.put("nobody has it", 0, {})
    assert table.rows == 3

    def keys(text: str) -> set[str]:
        return set(table.keys(questions(disjunctive_normal_form(parse(text)))))

    assert keys("age IS NULL") == {"some lack it", "nobody has it"}
    assert keys("age = 25") == {"all have it", "some lack it"}
    assert keys("NOT age = 25") == {"all have it", "some lack it"}
    assert keys("age = 31") == set()
    assert keys("age + 1 = 99") == {"all have it", "some lack it"}


@given(st.data(), st.sampled_from(WORLDS))
def test_tables_that_share_their_contexts_answer_as_if_they_did_not(data: st.DataObject, world: World) -> None:
    shared = SharedContexts()
    together: list[EntryTable[int]] = [EntryTable(shared=shared) for _ in range(3)]
    alone: list[EntryTable[int]] = [EntryTable() for _ in range(3)]
    asked = [questions(disjunctive_normal_form(data.draw(addressing(world)))) for _ in range(2)]
    notes: list[dict[str, Any]] = [{} for _ in range(4)]
    said = [data.draw(contexts(world)) for _ in notes]
    changes = st.tuples(st.integers(0, 2), st.integers(0, 5), st.one_of(st.none(), st.integers(0, len(said) - 1)))
    for number, key, which in data.draw(st.lists(changes, max_size=25)):
        if which is None:
            together[number].remove(key)
            alone[number].remove(key)
        else:
            together[number].put(key, which % 2, said[which], known=notes[which])
            alone[number].put(key, which % 2, said[which])
        for question in asked:
            for one, other in zip(together, alone, strict=True):
                assert set(one.keys(question)) == set(other.keys(question))
                assert one.groups(question) == other.groups(question)
                assert one.meets(question) == other.meets(question)
    for table in together:
        for key, _ in list(table.items()):
            table.remove(key)
    assert len(shared) == len(shared.columns) == 0, "what nobody holds is forgotten"


def test_as_many_answers_are_remembered_as_were_asked_for() -> None:
    shared = SharedContexts(remember=3)
    table: EntryTable[int] = EntryTable(shared=shared)
    table.put(1, 0, {"x": 4})
    asked = [questions(((Comparison("=", Property("x"), Literal(number)),),)) for number in range(8)]
    for _ in range(2):
        assert [table.keys(each) for each in asked] == [[], [], [], [], [1], [], [], []]
    assert len(shared._answers) == 3
