from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import formulas, predicates, properties

from nearcast.errors import FormulaTooLarge
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.normal_form import Conjunct, disjunctive_normal_form, negation_normal_form
from nearcast.model.predicate import And, Comparison, Constant, DistanceDecreases, Literal, Not, Or, Predicate, Property

variables = st.sampled_from("abc").map(lambda name: Comparison("=", Property(name), Literal(True)))
propositional = formulas(st.one_of(variables, st.sampled_from([True, False, None]).map(Constant)))


def holds(conjuncts: tuple[Conjunct, ...], given_properties: Any, approaching: Any = None) -> bool:
    """Whether one conjunct is true."""
    return any(evaluate(And(conjunct), given_properties, approaching) is True for conjunct in conjuncts)


def subformulas(predicate: Predicate) -> Iterator[Predicate]:
    yield predicate
    for term in (
        predicate.terms if isinstance(predicate, (And, Or)) else (predicate.term,) if isinstance(predicate, Not) else ()
    ):
        yield from subformulas(term)


@given(propositional)
def test_normal_forms_mean_the_same_for_all_truth_values(predicate: Predicate) -> None:
    nnf, dnf = negation_normal_form(predicate), disjunctive_normal_form(predicate, limit=100_000)
    for assignment in product((True, False, None), repeat=3):
        given_properties = {name: value for name, value in zip("abc", assignment, strict=True) if value is not None}
        expected = evaluate(predicate, given_properties)
        assert evaluate(nnf, given_properties) is expected
        assert holds(dnf, given_properties) is (expected is True)


@given(predicates, properties(), st.sampled_from([True, False, None]))
def test_normal_forms_mean_the_same_for_all_values_also_coarse_ones(
    predicate: Predicate,
    given_properties: dict[str, Any],
    nearer: bool | None,
) -> None:
    def approaching(_property: str | None) -> bool | None:
        return nearer

    expected = evaluate(predicate, given_properties, approaching)
    assert evaluate(negation_normal_form(predicate), given_properties, approaching) is expected
    assert holds(disjunctive_normal_form(predicate, limit=100_000), given_properties, approaching) is (expected is True)


@given(predicates)
def test_negations_stand_at_atoms_only(predicate: Predicate) -> None:
    for part in subformulas(negation_normal_form(predicate)):
        if isinstance(part, Not):
            assert not isinstance(part.term, (And, Or, Not, Constant))


@given(predicates)
def test_conjuncts_hold_literals_each_once_and_no_conjunct_twice(predicate: Predicate) -> None:
    conjuncts = disjunctive_normal_form(predicate, limit=100_000)
    assert len({frozenset(conjunct) for conjunct in conjuncts}) == len(conjuncts)
    for conjunct in conjuncts:
        assert len(set(conjunct)) == len(conjunct)
        for literal in conjunct:
            atom = literal.term if isinstance(literal, Not) else literal
            assert not isinstance(atom, (And, Or, Not, Constant))


def test_the_shape_is_that_of_the_writing() -> None:
    a, b, c = (parse(text) for text in ("a = 1", "b = 2", "c = 3"))
    assert disjunctive_normal_form(parse("a = 1 AND (b = 2 OR c = 3)")) == ((a, b), (a, c))
    assert disjunctive_normal_form(parse("NOT (a = 1 AND b = 2)")) == ((Not(a),), (Not(b),))
    assert disjunctive_normal_form(a) == ((a,),)
    assert disjunctive_normal_form(Constant(True)) == ((),)
    assert disjunctive_normal_form(Constant(False)) == ()
    assert disjunctive_normal_form(Not(Constant(None))) == ()
    assert disjunctive_normal_form(parse("a IN (1, 2, 3)")) == ((parse("a IN (3, 2, 1)"),),), "a list is one literal"


def test_a_contradiction_is_kept_because_a_coarse_value_may_meet_it() -> None:
    contradiction = parse("a = 1 AND NOT a = 1")
    assert len(disjunctive_normal_form(contradiction)) == 1


def _clauses(count: int) -> Predicate:
    return And(tuple(Or((DistanceDecreases(f"x{n}"), DistanceDecreases(f"y{n}"))) for n in range(count)))


def test_a_formula_that_explodes_is_refused_with_the_bound() -> None:
    assert len(disjunctive_normal_form(_clauses(8))) == 256
    with pytest.raises(
        FormulaTooLarge,
        match="has more than 256 conjuncts; split the filter, or write alternatives of one attribute with IN",
    ):
        disjunctive_normal_form(_clauses(9))
    with pytest.raises(FormulaTooLarge, match="more than 10 conjuncts"):
        disjunctive_normal_form(_clauses(4), limit=10)
    with pytest.raises(FormulaTooLarge):
        disjunctive_normal_form(Or(tuple(DistanceDecreases(f"x{n}") for n in range(257))))


def test_few_conjuncts_of_very_many_conditions_are_refused_too() -> None:
    conditions = tuple(DistanceDecreases(f"z{n}") for n in range(3_000))
    alternatives = tuple(Or((DistanceDecreases(f"x{n}"), DistanceDecreases(f"y{n}"))) for n in range(8))
    for large in (
        And(conditions),
        Or((And(conditions[:1_500]), And(conditions[1_400:]))),
        And((*alternatives, *conditions[:3])),
    ):
        with pytest.raises(FormulaTooLarge, match="more than 2560 conditions"):
            disjunctive_normal_form(large)
    assert len(disjunctive_normal_form(And(conditions[:2_500]))) == 1


def test_the_explosion_is_noticed_before_it_happens() -> None:
    start = time.process_time()
    with pytest.raises(FormulaTooLarge):
        disjunctive_normal_form(_clauses(2_000))
    with pytest.raises(FormulaTooLarge):
        disjunctive_normal_form(
            Not(Or(tuple(And((Not(DistanceDecreases(f"x{n}")), DistanceDecreases(f"y{n}"))) for n in range(2_000))))
        )
    assert time.process_time() - start < 20.0, "what it guards against takes years, and the machine may be slow"


def test_repeated_clauses_do_not_explode() -> None:
    clause = Or((DistanceDecreases("x"), DistanceDecreases("y")))
    assert len(disjunctive_normal_form(And((clause,) * 50))) == 3
