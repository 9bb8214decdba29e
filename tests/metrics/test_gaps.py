"""Gaps of recall after an instant are found to the bin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import World, as_table, event, notification, worlds

from nearcast.errors import InvalidInput, InvalidTime
from nearcast.metrics import aligned_recall, pairs, per_event, recall_gap

MS = 1_000
AT = 5_000 * MS


def steady(gaps: list[tuple[int, int]], every: int = 5 * MS) -> Any:
    """One event each ``every`` microseconds, due to two clients; none is notified within the gaps (relative to AT)."""
    rows, told = [], []
    for number, time in enumerate(range(AT - 1_000 * MS, AT + 1_000 * MS, every)):
        rows.append(event(f"e{number}", time, None, ["ada", "bob"]))
        if not any(start <= time - AT < end for start, end in gaps):
            told += [notification(f"e{number}", "ada"), notification(f"e{number}", "bob")]
    return per_event(pairs(as_table("events", rows), as_table("notifications", told)))


def aligned(gaps: list[tuple[int, int]], **more: Any) -> Any:
    return aligned_recall(steady(gaps), AT, before=1_000 * MS, after=1_000 * MS, **more)


@given(st.integers(0, 40), st.integers(1, 10))
def test_a_gap_of_whole_bins_is_measured_exactly(first: int, number: int) -> None:
    start, end = first * 20 * MS, (first + number) * 20 * MS
    gap = recall_gap(aligned([(start, end)]), below=0.1)
    assert (gap.duration, gap.first, gap.last) == (end - start, start, end)
    assert gap.missed == 2 * (end - start) // (5 * MS)


def test_a_gap_before_the_instant_lowers_the_baseline_and_is_none_itself() -> None:
    bins = aligned([(-500 * MS, 0)])
    assert bins.recall_before == 0.5
    gap = recall_gap(bins, below=0.1)
    assert gap.threshold == pytest.approx(0.4)
    assert (gap.duration, gap.first, gap.last, gap.missed) == (0, None, None, 0)
    assert recall_gap(bins, below=0.1, baseline=1.0).duration == 0


def test_gaps_apart_add_up() -> None:
    gap = recall_gap(aligned([(0, 100 * MS), (400 * MS, 440 * MS)]), below=0.5)
    assert (gap.duration, gap.first, gap.last) == (140 * MS, 0, 440 * MS)


def test_bins_without_events_are_no_gap() -> None:
    sparse = aligned_recall(steady([], every=50 * MS), AT, before=1_000 * MS, after=1_000 * MS)
    assert np.isnan(sparse.recall).any()
    assert recall_gap(sparse, below=0.0).duration == 0


def test_runs_are_added_before_they_are_judged() -> None:
    with_gap, without = aligned([(0, 100 * MS)]), aligned([])
    both = with_gap + without
    assert both.recall[both.offsets == 0] == 0.5
    assert recall_gap(both, below=0.4).duration == 100 * MS
    assert recall_gap(both, below=0.6).duration == 0
    with pytest.raises(InvalidInput, match="same length"):
        with_gap + aligned([], length=50 * MS)


@given(worlds(), st.integers(0, 40), st.integers(1, 5))
def test_bins_hold_the_events_published_in_them(world: World, at: int, length: int) -> None:
    table = per_event(pairs(*world.tables()))
    bins = aligned_recall(table, at, before=4 * length, after=3 * length, length=length)
    assert bins.offsets.tolist() == [place * length for place in range(-4, 3)]
    for start, due, correct in zip(bins.offsets, bins.due, bins.correct, strict=True):
        times = {row["event"]: row["time"] for row in world.events}
        inside = [row for row in table.to_pylist() if at + start <= times[row["event"]] < at + start + length]
        assert (due, correct) == (sum(row["due"] for row in inside), sum(row["correct"] for row in inside))


def test_what_cannot_be_aligned_is_refused() -> None:
    table = steady([])
    with pytest.raises(InvalidTime, match="whole numbers of bins"):
        aligned_recall(table, AT, before=30 * MS, after=40 * MS)
    with pytest.raises(InvalidInput, match="give a baseline"):
        recall_gap(aligned_recall(table, AT, before=0, after=40 * MS), below=0.1)
