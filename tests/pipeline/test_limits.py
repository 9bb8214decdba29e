"""How a backlog is shared by the micro-batches of a stream, and that the clock beside it waits for the last of them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from nearcast.pipeline.clock import ClockReader
from nearcast.pipeline.limits import MOST_ROWS, Offsets, limited
from nearcast.pipeline.source import options


@pytest.mark.parametrize(
    ("start", "end", "most", "taken"),
    [
        ({"0": 0, "1": 5}, {"0": 4, "1": 5}, 9, {"0": 4, "1": 5}),
        ({"0": 0, "1": 0}, {"0": 30, "1": 10}, 4, {"0": 3, "1": 1}),
        ({"0": 0, "1": 0, "2": 0}, {"0": 9, "1": 9, "2": 1}, 1, {"0": 1, "1": 0, "2": 0}),
        ({"0": 7}, {"0": 8, "1": 2}, 2, {"0": 8, "1": 1}),
        ({"0": 7, "gone": 3}, {"0": 9}, 1, {"0": 8, "gone": 3}),
    ],
)
def test_a_limit_is_shared_by_the_partitions(start: Offsets, end: Offsets, most: int, taken: Offsets) -> None:
    assert limited(start, end, most) == taken


@pytest.mark.parametrize("table", options.READABLE)
def test_every_table_has_the_same_limit_unless_told_otherwise(table: str) -> None:
    assert options.reading({"table": table, "lake": "x"}).most_offsets == MOST_ROWS
    for name in ("maxRowsPerTrigger", "maxOffsetsPerTrigger"):
        assert options.reading({"table": table, "lake": "x", name: "2000000"}).most_offsets == 2_000_000


class Backlog:
    """A stream beside the clock, as far as the clock knows it."""

    def __init__(self, end: int, most: int) -> None:
        self.end = end
        self._most = most

    def initialOffset(self) -> Offsets:  # noqa: N802 - Spark's names
        return {"offset": 0}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:  # noqa: N802
        assert isinstance(limit, ReadAllAvailable)
        return {"offset": max(self.end, start["offset"])}

    def getDefaultReadLimit(self) -> ReadMaxRows:  # noqa: N802
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """It grows no more."""


def seconds(reader: ClockReader, batches: int) -> list[int]:
    """What the clock says in each batch; 0: nothing."""
    at, said = reader.initialOffset(), []
    for _ in range(batches):
        then, at = at, reader.latestOffset(at, ReadAllAvailable())
        said.append(sum(tick.second for tick in reader.partitions(then, at)))
    return said


def test_a_clock_is_silent_until_the_streams_beside_it_have_no_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.5)
    beside: list[Any] = [Backlog(100, 40), Backlog(30, 40)]
    reader = ClockReader(running=True, beside=beside)
    assert seconds(reader, 4) == [0, 0, 1000, 0], "with 40, 40 and the last 20; then no time has passed"
    beside[0].end = 130  # the last batch may take it, but who knows whether the others see all of it
    assert seconds(reader, 5) == [0, 0, 0, 1000, 0]


def test_a_clock_goes_on_beside_a_stream_that_fills_most_of_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    backlog: Any = Backlog(0, 1000)
    reader = ClockReader(running=True, beside=[backlog])
    at = reader.initialOffset()
    for _ in range(5):
        backlog.end += 600
        now += 1
        at = reader.latestOffset(at, ReadAllAvailable())
        assert at == {"second": int(now), "read": [{"offset": backlog.end}]}


def test_a_clock_that_stands_still_takes_the_steps_of_the_others_all_the_same() -> None:
    backlog: Any = Backlog(70, 40)
    reader = ClockReader(running=False, beside=[backlog])
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == {"second": 0, "read": [{"offset": 40}]}


def test_a_clock_that_has_not_waited_for_others_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1000.5)
    beside: list[Any] = [Backlog(10, 40)]
    reader = ClockReader(running=True, beside=beside)
    assert reader.latestOffset({"second": 7}, ReadAllAvailable()) == {"second": 1000, "read": [{"offset": 10}]}


def test_a_clock_that_stands_still_says_nothing() -> None:
    assert seconds(ClockReader(running=False), 2) == [0, 0]
