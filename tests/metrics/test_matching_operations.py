"""Operations per event: ratios of how much counters grew."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import Row, as_table

from nearcast.metrics import Windows, increases, match_operations
from nearcast.metrics.matching import EVENTS_MATCHED, OPERATIONS_COUNTED, OPERATIONS_DONE


def samples(metric: str, values: dict[int, float]) -> list[Row]:
    return [{"time": time, "metric": metric, "value": value} for time, value in values.items()]


def test_each_window_has_the_ratio_of_its_own_differences() -> None:
    rows = [
        *samples(EVENTS_MATCHED, {10: 100, 20: 100, 30: 150}),
        *samples(OPERATIONS_COUNTED, {10: 2500, 20: 2500, 30: 3000}),
        *samples(OPERATIONS_DONE, {10: 100, 20: 100, 30: 150}),
        *samples("clients up", {10: 7}),
    ]
    table = match_operations(as_table("metrics", rows), Windows(0, 30, 10))
    assert table["events"].to_pylist() == [100, 0, 50]
    assert table["counted_per_event"].to_pylist() == [25.0, None, 10.0]
    assert table["done_per_event"].to_pylist() == [1.0, None, 1.0]


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 100), max_size=8), st.integers(1, 40))
def test_a_counter_that_only_grows_grows_by_its_difference_at_the_ends_of_a_window(
    steps: dict[int, int], length: int
) -> None:
    times = sorted(steps)
    counter = dict(zip(times, np.cumsum([steps[time] for time in times]).tolist(), strict=True))
    windows = Windows(0, 60, length)
    # Rows may come in any order.
    found = increases(as_table("metrics", samples("c", dict(reversed(counter.items())))), "c", windows)

    def value(at: int) -> float:
        return next((counter[time] for time in reversed(times) if time <= at), 0.0)

    starts = [int(start) for start in windows.starts]
    # What was counted by the very beginning belongs to no window.
    expected = [value(min(60, start + length)) - value(start) for start in starts]
    assert found.tolist() == expected


def test_a_counter_that_falls_has_started_anew() -> None:
    table = as_table("metrics", samples("c", {10: 50, 20: 60, 30: 5, 40: 9}))
    assert increases(table, "c", Windows(0, 40, 10)).tolist() == [50, 10, 5, 4]


def test_what_was_never_sampled_has_no_ratio() -> None:
    table = match_operations(as_table("metrics", []), Windows(0, 20, 10))
    assert table["counted_per_event"].to_pylist() == [None, None]
