"""Instants, durations and time frames."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidTime
from nearcast.model.time import (
    EVER,
    LARGEST,
    MICROSECONDS,
    TimeFrame,
    duration,
    duration_text,
    instant,
    moment,
    to_datetime,
    to_text,
)

HOUR = 3600 * MICROSECONDS
NOW = instant("2026-11-15T09:30:00Z")


@given(st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)))  # noqa: DTZ001 - bounds are naive
def test_instants_survive_text_and_datetime(moment_: datetime) -> None:
    at = instant(moment_)
    assert to_datetime(at) == moment_
    assert instant(to_text(at)) == at


def test_rfc_3339_in_all_its_forms() -> None:
    same = ["2026-11-15T09:30:00Z", "2026-11-15t09:30:00z", "2026-11-15 10:30:00+01:00", "2026-11-15T09:30:00.000000Z"]
    assert {instant(text) for text in same} == {NOW}
    assert instant("2026-11-15T09:30:00.0000019Z") == NOW + 1
    assert instant(datetime(2026, 11, 15, 11, 30, tzinfo=timezone(timedelta(hours=2)))) == NOW


@pytest.mark.parametrize(
    "value",
    ["", "tomorrow", "2026-11-15", "2026-13-01T00:00:00Z", "2026-11-15T09:30:00", True, LARGEST, datetime(2026, 1, 1)],  # noqa: DTZ001
)
def test_what_is_no_instant_is_refused(value: Any) -> None:
    with pytest.raises(InvalidTime):
        instant(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90 * MICROSECONDS), ("-2h", -2 * HOUR), ("+1h30m", HOUR * 3 // 2), ("250ms", 250_000), ("1.5h", HOUR * 3 // 2),
     ("1d", 24 * HOUR), ("2w", 14 * 24 * HOUR), ("10 min", HOUR // 6), ("10min", HOUR // 6), ("-1 h 30 min", -HOUR * 3 // 2)],
)  # fmt: skip
def test_durations(text: str, expected: int) -> None:
    assert duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "h", "2 hours", "1y", "1 mi", "1 h30", "5m in", "- 2h", "2  h", "--1s", "99999999999w"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidTime):
        duration(text)


def test_bounds_may_be_open_relative_or_absolute() -> None:
    assert moment(None, NOW) is None
    assert moment("..", NOW) is None
    assert moment("now", NOW) == NOW
    assert moment("-2h", NOW) == NOW - 2 * HOUR
    assert moment("2026-11-15T09:30:00Z", 0) == NOW
    assert TimeFrame.parse("-2h", "..", now=NOW) == TimeFrame(NOW - 2 * HOUR, None)


def test_a_frame_contains_its_start_and_not_its_end() -> None:
    frame = TimeFrame(10, 20)
    assert [frame.contains(at) for at in (9, 10, 19, 20)] == [False, True, True, False]
    assert EVER.contains(-LARGEST + 1)
    assert TimeFrame(10).contains(LARGEST - 1)
    assert not TimeFrame(None, 20).contains(20)


@pytest.mark.parametrize(("since", "until"), [(20, 10), (10, 10)])
def test_a_frame_that_ends_before_it_starts_is_refused(since: int, until: int) -> None:
    with pytest.raises(InvalidTime, match="not after its start"):
        TimeFrame(since, until)
    with pytest.raises(InvalidTime, match="not after its start"):
        TimeFrame.parse("-1h", "-2h", now=NOW)


@given(st.integers(-LARGEST // 1_000, LARGEST // 1_000))
def test_durations_survive_text(microseconds: int) -> None:
    assert duration(duration_text(microseconds)) == microseconds


def test_the_text_of_a_duration_has_its_largest_whole_unit() -> None:
    assert [duration_text(d) for d in (0, 1, -HOUR, 90 * 60 * MICROSECONDS)] == ["0.000ms", "0.001ms", "-1h", "90m"]
