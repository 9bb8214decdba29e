"""Formulas over tags mean what the model says, in their normal form too."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.crowdstore.formula import DEPTH, LONGEST, Conjunction, Formula, quoted
from nearcast.errors import FormulaTooLarge, InvalidPredicate
from nearcast.model.evaluation import evaluate

TAGS = ("goal", "save", "penalty", "fan zone", 'a"b', "!")


texts = st.recursive(
    st.sampled_from(TAGS).map(quoted) | st.sampled_from(("goal", "save")),
    lambda inner: st.one_of(
        inner.map(lambda one: f"!{one}"),
        inner.map(lambda one: f"( {one})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} & {two[1]})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
    ),
    max_leaves=8,
)


@given(texts, st.frozensets(st.sampled_from(TAGS)))
def test_normal_form_accepts_what_the_model_accepts(text: str, tags: frozenset[str]) -> None:
    formula = Formula.parse(text)
    assert formula.accepts(tags) == (evaluate(formula.predicate, {"tags": tags}) is True)


@given(texts)
def test_no_conjunction_is_implied_by_another_or_contradicts_itself(text: str) -> None:
    conjunctions = Formula.parse(text).conjunctions
    for one in conjunctions:
        assert not one.present & one.absent
        assert not any(o != one and o.present <= one.present and o.absent <= one.absent for o in conjunctions)


def test_negation_binds_more_than_and_and_that_more_than_or() -> None:
    assert Formula.parse("!a & b | c").conjunctions == (
        Conjunction(frozenset("b"), frozenset("a")),
        Conjunction(frozenset("c"), frozenset()),
    )


@pytest.mark.parametrize("text", ["", " ", "a &", "& a", "(a", "a)", "a b", "!", 'a & "', '""', "a | | b"])
def test_what_is_no_formula_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(InvalidPredicate, match=r"no formula of tags .* at \d+"):
        Formula.parse(text)


def test_brackets_without_end_are_refused() -> None:
    with pytest.raises(InvalidPredicate, match=str(DEPTH)):
        Formula.parse("(" * 1_000 + "a")


@pytest.mark.parametrize("text", ["a" * (LONGEST + 1), "ä" * (LONGEST // 2 + 1)])
def test_formulas_that_fit_into_no_frame_are_refused(text: str) -> None:
    assert Formula.parse(text[: LONGEST // 2]).text == text[: LONGEST // 2]
    with pytest.raises(InvalidPredicate, match=str(LONGEST)):
        Formula.parse(text)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_any_tag_can_bequoted(name: str) -> None:
    found = Formula.parse(f"!{quoted(name)} | {quoted('other ' + name)}")
    assert not found.accepts([name])
    assert found.accepts([name, f"other {name}"])


def test_a_formula_that_nobody_could_be_told_is_refused() -> None:
    with pytest.raises(InvalidPredicate, match="half a character"):
        Formula.parse('goal | "\ud83d"')


SIGNS = [sign for sign in map(chr, range(0x30, 0x250)) if sign.isalpha() and sign not in "abcdefghijklmnop"]
PAIRS = "(a|b)&(c|d)&(e|f)&(g|h)&(i|j)&(k|l)&(m|n)&(o|p)"


@pytest.mark.parametrize(
    "text",
    [
        "&".join([PAIRS, *SIGNS[:200]]),
        "&".join([*SIGNS[:200], PAIRS]),
        PAIRS + "|x",
        "|".join(SIGNS[:300]),
        "&".join(f"({a}|{b})" for a, b in zip(SIGNS[:40], SIGNS[40:80], strict=True)),
        f"!({'|'.join(f'{a}&{b}' for a, b in zip(SIGNS[:40], SIGNS[40:80], strict=True))})",
    ],
)
def test_formulas_of_too_many_alternatives_are_refused(text: str) -> None:
    with pytest.raises(FormulaTooLarge, match="several subscriptions"):
        Formula.parse(text)


def test_the_dearest_formulas_that_are_taken_cost_little() -> None:
    # Of all products nearly each contradicts itself, or is there already.
    every = "&".join(f"({tag}|!{tag})" for tag in "abcdef")
    begun = time.process_time()
    for text in ("&".join([f"({every}|x)"] * 22), "&".join(SIGNS[:300]), "&".join(["(a|b)"] * 170), PAIRS):
        assert Formula.parse(text).conjunctions
    assert time.process_time() - begun < 1.0
