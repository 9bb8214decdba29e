"""Dips, drops and bursts around a transition."""

from __future__ import annotations

import pytest
from tests.experiment.synthetic import Around, measures
from tests.experiment.synthetic import Part as Of

from nearcast.experiment.checks import Outcome
from nearcast.experiment.values import (
    Value,
    burst,
    concordance,
    depth,
    difference,
    dip,
    distance,
    drop,
    gap,
    kilobits,
    least,
    mean,
    most,
    quotient,
    recall,
    span,
)


def around(**what: object) -> Outcome:
    return {"run": measures({"all": Of()}, {"T1": Around(**what)})}  # type: ignore[arg-type]


@pytest.mark.parametrize("milliseconds", [0, 50, 200, 1000])
def test_a_dip_is_as_long_as_events_reach_nobody(milliseconds: int) -> None:
    assert dip("run", "T1")(around(dip=milliseconds)) == pytest.approx(milliseconds)


def test_a_scheme_that_reaches_fewer_is_no_dip() -> None:
    assert dip("run", "T1")(around(before=1.0, after=0.6)) == 0.0
    assert dip("run", "T1")(around(before=0.6, after=1.0)) == 0.0


def test_a_dip_is_measured_against_the_lower_of_both_schemes() -> None:
    assert dip("run", "T1")(around(before=1.0, after=0.6, dip=100)) == pytest.approx(100.0)


def test_a_drop_is_what_the_first_second_lacks() -> None:
    assert drop("run", "T1", 1.0)(around(after=0.9, first_second=0.8)) == pytest.approx(0.1)
    assert drop("run", "T1", 1.0)(around(after=0.9)) == pytest.approx(0.0)


def test_the_depth_of_a_dip_is_what_recall_lacks_at_its_lowest() -> None:
    assert depth("run", "T1")(around(after=0.9, before=1.0, first_second=0.7)) == pytest.approx(0.2)
    assert depth("run", "T1")(around(dip=100)) == pytest.approx(1.0)
    assert depth("run", "T1")(around()) == pytest.approx(0.0)


def test_a_burst_is_how_many_times_there_is_more_than_around_it() -> None:
    found = around(bursts={"upload context": 3.0})
    assert burst("run", "T1", "upload context")(found) == pytest.approx(3.0 / 0.05)
    found["run"].marks[0].control["upload context"][0] = 60
    found["run"].marks[0].control["upload context"][12] = 100
    assert burst("run", "T1", "upload context")(found) == pytest.approx(3.0)


def test_regular_reports_are_no_burst() -> None:
    found = around(bursts={"upload context": 1.0})
    for second in range(0, 15, 5):
        found["run"].marks[0].control["upload context"][second] = 100
    assert burst("run", "T1", "upload context")(found) == pytest.approx(1.0)


def test_a_few_messages_after_none_are_no_burst() -> None:
    assert burst("run", "T1", "upload context")(around(bursts={"upload context": 0.05})) == pytest.approx(1.0)


@pytest.mark.parametrize("milliseconds", [0, 50, 200, 1000])
def test_a_gap_begins_at_the_transition(milliseconds: int) -> None:
    found = around(dip=milliseconds)
    assert gap("run", "T1")(found) == pytest.approx(milliseconds)
    correct = found["run"].marks[0].correct
    correct[98:100] = [0, 0]  # events that were on their way
    assert gap("run", "T1")(found) == pytest.approx(milliseconds)
    assert dip("run", "T1")(found) == pytest.approx(milliseconds + 100)


def test_traffic_of_a_kind_that_never_was_is_none_at_all() -> None:
    assert burst("run", "T1", "download context")(around()) == 0.0
    assert kilobits("run", "download")(around()) == 0


def test_traffic_is_added_up_by_how_its_names_begin() -> None:
    found = {"run": measures({"all": Of(rates={"upload context": 1.0, "upload event": 2.0, "download event": 4.0})})}
    assert kilobits("run", "upload")(found) == pytest.approx(3.0)
    assert kilobits("run", "upload", "download")(found) == pytest.approx(7.0)
    assert quotient(kilobits("run", "upload context"), kilobits("run", "upload"))(found) == pytest.approx(1 / 3)


def test_values_can_be_compared_and_what_is_unknown_stays_unknown() -> None:
    found = {"a": measures({"all": Of(recall=0.7)}), "b": measures({"all": Of(recall=0.9)})}
    assert difference(recall("a"), recall("b"))(found) == pytest.approx(-0.2)
    assert distance(recall("a"), recall("b"))(found) == pytest.approx(0.2)
    assert difference(recall("a"), lambda _: None)(found) is None
    assert quotient(recall("a"), lambda _: 0.0)(found) is None


def given(value: float | None) -> Value:
    return lambda _outcome: value


def test_of_several_values_none_may_be_unknown() -> None:
    several = [given(1.0), given(4.0), given(2.5)]
    assert [of(several)({}) for of in (least, most, span, mean)] == [1.0, 4.0, 3.0, 2.5]
    assert [of([*several, given(None)])({}) for of in (least, most, span, mean)] == [None] * 4


def test_concordance_is_the_share_of_twos_in_the_same_order() -> None:
    def of(*pairs: tuple[float | None, float | None]) -> float | None:
        return concordance([(given(one), given(other)) for one, other in pairs])({})

    assert of((1, 10), (2, 20), (3, 30)) == 1.0
    assert of((1, 30), (2, 20), (3, 10)) == 0.0
    assert of((1, 10), (2, 30), (3, 20)) == pytest.approx(2 / 3)
    assert of((1, 10), (2, 10)) == 0.0, "no more is not more"
    assert of((1, 10), (1, 20), (2, 30)) == 1.0, "twos that are alike say nothing"
    assert of((1, 10), (1, 20)) is None
    assert of((1, 10), (2, None)) is None
