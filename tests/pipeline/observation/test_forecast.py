"""Forecasts of density are what their formula says, and their error is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.frames import BEGINNING, frame, rows

from nearcast.errors import InvalidTime
from nearcast.model.time import TimeFrame
from nearcast.pipeline.observation.forecast import DAY, HOUR, Seasons, forecast, forecast_error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS = 24


def density_of(values: Any, start: int = BEGINNING) -> Any:
    """``values[cell, hour]``; hours without anybody have no row."""
    cell, hour = np.nonzero(values)
    since = start + hour * 3_600_000_000
    return pa.table(
        {
            "since": pa.array(since, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "column": cell,
            "row": -cell,
            "clients": pa.array(values[cell, hour], pa.int64()),
        }
    )


def observed(hours: int) -> TimeFrame:
    return TimeFrame(BEGINNING, BEGINNING + hours * 3_600_000_000)


def smoothed(values: Any, alpha: float) -> Any:
    """The next day by the recursion of exponential smoothing, from the first day on."""
    expected = np.zeros((len(values), HOURS))
    end = values.shape[1]
    for ahead in range(HOURS):
        series = values[:, (end + ahead) % HOURS :: HOURS]
        level = series[:, 0].astype(float)
        for day in range(1, series.shape[1]):
            level = alpha * series[:, day] + (1 - alpha) * level
        expected[:, ahead] = level
    return expected


@pytest.mark.parametrize("alpha", [0.3, 1.0])
@pytest.mark.parametrize("hours", [24, 5 * 24, 3 * 24 + 7])
def test_the_next_day_is_smoothed_from_the_days_before(spark: SparkSession, hours: int, alpha: float) -> None:
    values = np.random.default_rng(hours).integers(0, 5, (6, hours))
    seasons = Seasons(DAY, HOUR, alpha)
    found = np.zeros((6, HOURS))
    for row in rows(forecast(frame(spark, density_of(values)), observed(hours), seasons), "since"):
        ahead = round((row["since"].timestamp() - BEGINNING / 1e6) / HOUR) - hours
        assert (row["until"] - row["since"]).total_seconds() == HOUR
        assert row["row"] == -row["column"]
        found[row["column"], ahead] = row["clients"]
    np.testing.assert_allclose(found, smoothed(values, alpha), atol=1e-12)


def test_what_lies_outside_of_the_stretch_is_not_used(spark: SparkSession) -> None:
    values = np.ones((1, 4 * HOURS), int)
    found = rows(forecast(frame(spark, density_of(values)), observed(2 * HOURS), Seasons()), "since")
    assert [row["clients"] for row in found] == [1.0] * HOURS
    assert found[0]["since"].timestamp() * 1e6 == BEGINNING + 2 * HOURS * 3_600_000_000


def test_the_error_is_the_mean_over_all_cells_and_hours(spark: SparkSession) -> None:
    values = np.random.default_rng(9).integers(0, 4, (5, 6 * HOURS))
    before, last = values[:, : 5 * HOURS], values[:, 5 * HOURS :]
    (row,) = forecast_error(frame(spark, density_of(values)), observed(6 * HOURS), Seasons(alpha=0.4)).collect()
    error, naive = smoothed(before, 0.4) - last, before[:, -HOURS:] - last
    assert (row["cells"], row["windows"]) == (5, HOURS)
    assert row["mean_absolute"] == pytest.approx(np.abs(error).mean())
    assert row["naive"] == pytest.approx(np.abs(naive).mean())
    assert row["scaled"] == pytest.approx(np.abs(error).mean() / np.abs(naive).mean())
    assert row["bias"] == pytest.approx(error.mean())


def test_a_day_like_every_other_is_forecast_without_error(spark: SparkSession) -> None:
    values = np.tile(np.random.default_rng(2).integers(0, 9, (3, HOURS)), 4)
    (row,) = forecast_error(frame(spark, density_of(values)), observed(4 * HOURS), Seasons(alpha=0.2)).collect()
    assert (row["mean_absolute"], row["naive"]) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_smoothing_pays_where_days_differ_by_chance(spark: SparkSession) -> None:
    """Independent of each other, with one mean: a constant forecast has 1/sqrt(2) of the naive one's error, for normal values."""
    values = np.random.default_rng(4).poisson(100.0, (20, 40 * HOURS))
    (row,) = forecast_error(frame(spark, density_of(values)), observed(40 * HOURS), Seasons(alpha=0.1)).collect()
    variance = 1 + 0.1 / (2 - 0.1)  # of the error, in units of that of a value; the naive one's is 2
    assert row["scaled"] == pytest.approx(np.sqrt(variance / 2), rel=0.06)


def test_less_than_a_season_is_nothing_to_go_by(spark: SparkSession) -> None:
    nothing = frame(spark, density_of(np.ones((1, 1), int)))
    with pytest.raises(InvalidTime, match="less than one season"):
        forecast(nothing, observed(23), Seasons())
    with pytest.raises(InvalidTime, match="start and an end"):
        forecast(nothing, TimeFrame(BEGINNING), Seasons())
    with pytest.raises(InvalidTime, match="cannot be cut"):
        Seasons(DAY, 7_000.0)
    with pytest.raises(InvalidTime, match="alpha"):
        Seasons(alpha=0.0)
