"""Verdicts: what holds, what does not, and what nobody can tell."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.experiment.synthetic import Part as Of
from tests.experiment.synthetic import measures

from nearcast.experiment.checks import Accepted, Check, Outcome, Part, at_least, at_most, between, judge, near
from nearcast.experiment.values import recall

NUMBERS = st.floats(-1e6, 1e6)


def outcome(value: float) -> Outcome:
    return {"run": measures({"all": Of(recall=value)})}


def check(*accepted: Accepted, not_checkable: str = "") -> Check:
    parts = tuple(Part(f"part {number}", each, recall("run")) for number, each in enumerate(accepted))
    return Check("X1", "recall is as it is", "text", parts, not_checkable=not_checkable)


def test_what_is_within_the_tolerance_is_reproduced_and_what_is_not_deviates() -> None:
    assert judge(check(near(0.7, 0.05)), [outcome(0.72)]).verdict == "reproduced"
    result = judge(check(near(0.7, 0.05)), [outcome(0.64)])
    assert result.verdict == "deviates"
    assert result.measured == 0.64
    assert "0.64" in result.why
    assert "0.65 .. 0.75" in result.why


def test_one_part_that_does_not_hold_is_enough() -> None:
    result = judge(check(at_least(0.5), at_most(0.6)), [outcome(0.7)])
    assert result.verdict == "deviates"
    assert [part.holds for part in result.parts] == [True, False]
    assert result.measured == {"part 0": 0.7, "part 1": 0.7}


def test_the_verdict_is_about_the_mean_over_the_seeds() -> None:
    result = judge(check(near(0.7, 0.05)), [outcome(0.5), outcome(0.9)])
    assert result.verdict == "reproduced"
    assert result.parts[0].measured == pytest.approx(0.7)
    assert result.parts[0].deviation == pytest.approx(math.sqrt(0.08), abs=1e-6)


def test_one_seed_has_no_deviation() -> None:
    assert judge(check(at_least(0.0)), [outcome(0.5)]).parts[0].deviation is None


def test_a_run_that_is_missing_for_one_seed_leaves_the_check_open() -> None:
    result = judge(check(at_least(0.0)), [outcome(0.5), {}])
    assert (result.verdict, result.measured) == ("not run", None)


def test_what_is_only_in_a_figure_is_not_checkable_whatever_was_checked_instead() -> None:
    for value, said in ((0.9, "met"), (0.1, "not met")):
        result = judge(check(at_least(0.5), not_checkable="only in figure 1"), [outcome(value)])
        assert result.verdict == "not checkable"
        assert f"checked instead, and {said}" in result.why


def test_a_value_is_judged_as_it_is_shown() -> None:
    assert judge(check(at_most(0.1)), [outcome(0.1 + 1e-9)]).verdict == "reproduced"


def test_a_result_is_json() -> None:
    text = json.dumps(judge(check(at_least(0.5)), [outcome(0.9)]).to_json(), allow_nan=False)
    assert set(json.loads(text)) >= {"id", "stated", "measured", "basis", "verdict", "why"}


@given(low=NUMBERS, high=NUMBERS, value=NUMBERS)
def test_borders_belong_to_what_is_accepted(low: float, high: float, value: float) -> None:
    low, high = sorted((low, high))
    accepted = between(low, high)
    assert low in accepted
    assert high in accepted
    assert (value in accepted) == (low <= value <= high)
    assert (value in at_least(low)) == (value >= low)
    assert (value in at_most(high)) == (value <= high)
