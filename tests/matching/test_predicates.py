"""The index of predicates says what ``evaluate`` says."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from nearcast.matching import Matcher
from nearcast.matching.columns import ACCEPTED, OPEN, REJECTED
from nearcast.matching.predicates import BLOCK, PredicateIndex, columns_of, family_of
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.predicate import And, Comparison, Constant, In, IsNull, Literal, Not, Or, Predicate, Property
from nearcast.model.subscription import Subscription
from nearcast.model.values import COMPARISONS, Path

VALUES: dict[str, list[Any]] = {
    "number": [0, 1, 2, 2.5, 3, -1.0, 2**53, 2**53 + 1, -(2**53) - 1, 1e300],
    "text": ["", "a", "b", "A", "1"],
    "truth": [True, False],
    "instant": [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=i) for i in range(4)]
    + [datetime(9000, 1, 1, tzinfo=UTC) + timedelta(microseconds=i) for i in range(3)],
}
NAMES = ("p", "q", "r", "s", "t")


def a_value(rng: random.Random) -> Any:
    return rng.choice(VALUES[rng.choice(list(VALUES))])


def an_atom(rng: random.Random) -> Predicate:
    name = Property(rng.choice(NAMES))
    kind = rng.random()
    if kind < 0.6:
        return Comparison(rng.choice(COMPARISONS), name, Literal(a_value(rng)))
    if kind < 0.8:
        family = rng.choice(list(VALUES))
        return In(name, frozenset(Literal(rng.choice(VALUES[family])) for _ in range(rng.randint(1, 3))))
    return IsNull(name) if kind < 0.97 else Constant(rng.choice([True, False, None]))


def a_formula(rng: random.Random, depth: int = 2) -> Predicate:
    kind = rng.random()
    if depth == 0 or kind < 0.4:
        return an_atom(rng)
    if kind < 0.55:
        return Not(a_formula(rng, depth - 1))
    return (And if kind < 0.8 else Or)(tuple(a_formula(rng, depth - 1) for _ in range(2)))


def attributes(rng: random.Random) -> dict[str, Any]:
    given = {name: a_value(rng) for name in NAMES if rng.random() < 0.7}
    if rng.random() < 0.1:
        given["p"] = Path.parse("/a")
    return given


def verdict(index: PredicateIndex, number: int, row: Any) -> int:
    """What the arrays say, read the slow way."""
    state = index.state()
    first = int(state.first[number])
    if first < 0:
        return OPEN
    block = first // BLOCK
    truth = np.full(state.rows.shape[1], ~np.uint64(0))
    for d in range(state.dimension_span[block, 0], state.dimension_span[block, 1]):
        value = row[state.dimension[d]]
        known = state.constants[state.constant_start[d] : state.constant_start[d] + state.constant_count[d]]
        at = 0
        if not np.isnan(value):
            place = int(np.searchsorted(known, value))
            at = 1 + 2 * place + int(place < len(known) and known[place] == value)
        truth &= state.rows[state.row_start[d] + at]
    bits = range(first % BLOCK, first % BLOCK + int(state.conjunctions[number]))
    held = any(int(truth[bit >> 6]) >> (bit & 63) & 1 for bit in bits)
    return ACCEPTED if held else REJECTED


def assert_agrees(index: PredicateIndex, held: dict[int, Predicate], rng: random.Random, events: int) -> int:
    """Compares on random events; returns how many verdicts came from the index."""
    row, judged = np.empty(max(1, index.columns)), 0
    for _ in range(events):
        given = attributes(rng)
        if not columns_of(index, given, row):
            continue  # left to the model as a whole
        for number, predicate in held.items():
            answer = verdict(index, number, row)
            if answer != OPEN:
                judged += 1
                assert (answer == ACCEPTED) == (evaluate(predicate, given) is True), (predicate, given)
    return judged


def test_five_thousand_random_predicates_are_judged_as_the_model_judges_them() -> None:
    rng = random.Random(5)
    index = PredicateIndex()
    held = {index.add(predicate): predicate for predicate in (a_formula(rng) for _ in range(5_000))}
    assert len(index) == len(held)
    sample = dict(rng.sample(sorted(held.items(), key=lambda pair: pair[0]), 2_000))
    assert assert_agrees(index, sample, rng, 40) > 15_000


def test_predicates_come_and_go_and_their_places_are_used_again() -> None:
    rng = random.Random(6)
    index = PredicateIndex()
    held: dict[int, Predicate] = {}
    for _ in range(12):
        for _ in range(60):
            predicate = a_formula(rng)
            number = index.add(predicate)
            if number in held:
                assert held[number] == predicate
                index.remove(number)
            held[number] = predicate
        for number in rng.sample(sorted(held), 40):
            assert index.remove(number)
            del held[number]
        assert len(index) == len(held)
        assert_agrees(index, held, rng, 4)
    bits = sum(block.used for block in index._blocks)
    for number in held:
        index.remove(number)
    again = [index.add(predicate) for predicate in held.values()]
    assert sum(block.used for block in index._blocks) == bits, "equally long runs take the places that are free"
    assert len(set(again)) == len(held)


def test_equal_predicates_are_one() -> None:
    index = PredicateIndex()
    first, second = index.add(parse("a = 1 AND b = 'x'")), index.add(parse("a = 1 AND b = 'x'"))
    assert first == second
    assert len(index) == 1
    assert not index.remove(first)
    assert index.remove(first)
    assert len(index) == 0


def test_a_predicate_that_is_never_true_fits_behind_a_full_block() -> None:
    index = PredicateIndex()
    for i in range(BLOCK):
        index.add(parse(f"a = {i}"))
    never = index.add(Constant(False))
    row = np.full(index.columns, 5.0)
    assert verdict(index, never, row) == REJECTED
    index.state()


@pytest.mark.parametrize("together", [3, 400], ids=["term by term", "by blocks"])
def test_the_kernels_judge_as_the_model_judges(together: int) -> None:
    rng = random.Random(together)
    for _ in range(1_200 // together):
        matcher = Matcher()
        predicates = {f"c{i}": a_formula(rng) for i in range(together)}
        for client, predicate in predicates.items():
            matcher.subscribe(client, Subscription(where=predicate))
        for _ in range(4):
            event = Event("e", "t", 0, attributes(rng))
            properties = event.properties()
            expected = {client for client, where in predicates.items() if evaluate(where, properties) is True}
            assert set(matcher.match(event)) == expected, event


def test_long_lists_do_not_multiply() -> None:
    numbers = ", ".join(str(i) for i in range(300))
    where = f"a IN ({numbers}) AND b IN ({numbers}) AND c IN ({numbers})"
    matcher = Matcher()
    matcher.subscribe("ada", Subscription(where=where))
    assert list(matcher.match(Event("e", "t", 0, {"a": 299, "b": 0, "c": 7}))) == ["ada"]
    assert list(matcher.match(Event("e", "t", 0, {"a": 299, "b": 300, "c": 7}))) == []
    assert matcher._filters.predicates.state().term_start[0] == -1, "only its block judges it"


def test_constants_that_nobody_names_any_more_are_forgotten() -> None:
    index = PredicateIndex()
    kept = index.add(parse("a > 5 AND a IN (5, 7)"))
    for i in range(50):
        index.remove(index.add(parse(f"a > {i} AND NOT a IN ({i}, {i}.5)")))
    state = index.state()
    first, last = state.dimension_span[0]
    known = [
        state.constants[state.constant_start[d] : state.constant_start[d] + state.constant_count[d]].tolist()
        for d in range(first, last)
    ]
    assert known == [[5.0, 7.0]]
    assert [verdict(index, kept, np.array([value])) for value in (5.0, 6.0, 7.0)] == [REJECTED, REJECTED, ACCEPTED]


@pytest.mark.parametrize(
    "text",
    ["a LIKE 'x%'", "a + 1 = 2", "casei(a) = 'x'", "a < 'x'", "tagged('x')", "published IS NULL", "a IN (1, 'x')"],
)
def test_what_is_no_comparison_with_constants_is_left_to_the_model(text: str) -> None:
    index = PredicateIndex()
    assert int(index.state().first[index.add(parse(text))]) == -1


def test_truth_values_have_no_order() -> None:
    index = PredicateIndex()
    number = index.add(Comparison("<", Property("a"), Literal(True)))
    assert int(index.state().first[number]) == -1


def test_values_that_double_precision_cannot_hold_are_left_to_the_model() -> None:
    assert family_of(2**53) == ("number", float(2**53))
    assert family_of(2**53 + 1) is None
    assert family_of(datetime(9000, 1, 1, tzinfo=UTC)) is None
    assert family_of(True) == ("boolean", 1.0)
    assert family_of(Path.parse("/a")) is None
