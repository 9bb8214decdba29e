"""Windows cover their time frame, and percentiles are those of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput, InvalidTime
from nearcast.metrics import BANDS, Windows, bands, bands_of_matrix, box_plot, grand_mean, grouped_percentiles
from nearcast.model.time import MICROSECONDS

numbers = st.floats(-1e6, 1e6)
values = st.lists(st.tuples(st.integers(-1, 3), numbers | st.just(np.nan)), max_size=40)


@given(st.integers(-50, 50), st.integers(0, 100), st.integers(1, 30), st.lists(st.integers(-100, 200)))
def test_every_instant_of_the_frame_lies_in_exactly_one_window(
    since: int, length: int, width: int, instants: list[int]
) -> None:
    windows = Windows(since, since + length, width)
    ends = [*windows.starts[1:], windows.until] if windows.count else []
    for time, found in zip(instants, windows.index(np.array(instants, np.int64)), strict=True):
        held = [
            number for number, (start, end) in enumerate(zip(windows.starts, ends, strict=True)) if start <= time < end
        ]
        assert [found] == (held or [-1])
    assert windows.seconds.sum() * MICROSECONDS == pytest.approx(length)


def test_windows_are_half_open_and_so_is_their_frame() -> None:
    windows = Windows(10, 30, 10)
    assert windows.index(np.array([9, 10, 19, 20, 29, 30])).tolist() == [-1, 0, 0, 1, 1, -1]
    assert Windows(10, 35, 10).seconds.tolist() == [1e-5, 1e-5, 0.5e-5]


@given(values)
def test_bands_are_the_percentiles_of_numpy_and_null_where_there_is_nothing(pairs: list[tuple[int, float]]) -> None:
    windows = Windows(0, 40, 10)
    table = bands(windows, np.array([n for n, _ in pairs], np.int64), np.array([v for _, v in pairs], float))
    assert table.column_names == ["start", "count", "mean", "p5", "p25", "p50", "p75", "p95"]
    for number, row in enumerate(table.to_pylist()):
        inside = [value for window, value in pairs if window == number and not np.isnan(value)]
        expected: list[Any] = [None] * 6
        if inside:
            expected = [pytest.approx(value) for value in (np.mean(inside), *np.percentile(inside, BANDS))]
        assert [row["count"], row["mean"], *list(row.values())[3:]] == [len(inside), *expected]


def test_a_matrix_has_a_row_for_each_window() -> None:
    table = bands_of_matrix(Windows(0, 20, 10), np.array([[1.0, 3.0, np.nan], [5.0, 5.0, 5.0]]))
    assert table["count"].to_pylist() == [2, 3]
    assert table["mean"].to_pylist() == [2.0, 5.0]


def test_percentiles_of_no_values_are_nan() -> None:
    assert np.isnan(grouped_percentiles(np.zeros(0, np.int64), np.zeros(0), 2, BANDS)).all()


@given(st.lists(numbers, min_size=1, max_size=30))
def test_a_box_has_its_whiskers_at_the_outer_percentiles(some: list[float]) -> None:
    box = box_plot(np.array([*some, np.nan]))
    assert box is not None
    assert box.count == len(some)
    assert box.mean == pytest.approx(np.mean(some))
    expected = np.percentile(some, [2.5, 25, 50, 75, 97.5])
    assert (box.low, box.lower_quartile, box.median, box.upper_quartile, box.high) == tuple(expected)


def test_no_values_make_no_box() -> None:
    assert box_plot(np.array([np.nan])) is None


def test_the_grand_mean_deviates_as_a_sample_does() -> None:
    result = grand_mean([1.0, 2.0, 3.0])
    assert (result.seeds, result.mean, result.deviation) == (3, 2.0, 1.0)
    assert grand_mean([4.0]).deviation is None
    assert grand_mean([4.0]).interval is None
    # Student's t with two degrees of freedom: 4.303.
    assert result.interval == pytest.approx(4.303 / 3**0.5, abs=1e-3)
    many = grand_mean([0.0, 1.0] * 20)
    assert many.deviation is not None
    assert many.interval == pytest.approx(2.023 * many.deviation / 40**0.5, rel=2e-3)
    with pytest.raises(InvalidInput, match="at least one run"):
        grand_mean([])
    with pytest.raises(InvalidInput, match="a number of each"):
        grand_mean([1.0, float("nan")])


def test_windows_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidTime, match="positive length"):
        Windows(0, 10, 0)
    with pytest.raises(InvalidTime, match="before they begin"):
        Windows(10, 0)
