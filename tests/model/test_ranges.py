"""Calculating with ranges: no value that a range stands for is forgotten."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import numbers, operands

from nearcast.model import ranges
from nearcast.model.cql2 import parse
from nearcast.model.evaluation import evaluate
from nearcast.model.predicate import Arithmetic, IsNull, Not, Operand
from nearcast.model.scalar import scalar
from nearcast.model.values import Range


@given(
    st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "%", "div", "^"]), operands, operands),
    st.lists(numbers, min_size=1, max_size=4),
    st.lists(numbers, min_size=1, max_size=4),
)
def test_whatever_the_values_are_the_answer_of_the_range_covers_theirs(
    operand: Operand, some: list[Any], others: list[Any]
) -> None:
    coarse = {"a": Range(min(some), max(some)), "b": Range(min(others), max(others)), "c": 0}
    found = ranges.result(operand, coarse)
    for a in some:
        for b in others:
            exact = {"a": a, "b": b, "c": 0}
            value = scalar(operand, exact)
            if value is None:
                assert found is None or found.unknown
            elif isinstance(value, (int, float)):
                assert found is not None
                assert found.low <= value <= found.high
            for literal in (IsNull(operand), Not(IsNull(operand))):
                if evaluate(literal, exact):
                    assert evaluate(literal, coarse), "some value inside makes it true"


@pytest.mark.parametrize(
    ("text", "speed", "possible", "negated"),
    [
        ("1 / speed", Range(3, 9), False, True),
        ("1 / speed", Range(0, 9), True, True),
        ("1 / speed", Range(-1, 9), True, True),
        ("1 / speed", Range(0, 0), True, False),
        ("1 / (speed - 4)", Range(3, 9), True, True),
        ("1 / (speed - 4)", Range(5, 9), False, True),
        ("speed % 0", Range(5, 9), True, False),
        ("speed * speed", Range(0, 1e200), True, True),
        ("1 / speed", Range(5e-324, 1.0), True, True),
        ("speed ^ 0.5", Range(-1, 1), True, True),
        ("speed + 1", Range(0, 1), False, True),
    ],
)
def test_where_zero_may_be_there_may_be_no_result(text: str, speed: Range, possible: bool, negated: bool) -> None:
    assert evaluate(parse(f"{text} IS NULL"), {"speed": speed}) is possible
    assert evaluate(parse(f"{text} IS NOT NULL"), {"speed": speed}) is negated
