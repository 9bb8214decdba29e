"""How many clients there will be where: by cell and window, one season ahead.

People come back at the same hour.  So a window is forecast from the windows one, two, ... seasons before it, by exponential
smoothing: with ``n`` of them, ``y_1`` the latest,

    forecast = sum over k < n of alpha (1 - alpha)^(k - 1) y_k, plus (1 - alpha)^(n - 1) y_n

which is the seasonal naive forecast ``y_1`` for alpha 1, and the mean of the past in the limit of alpha 0.  A cell without a row had
nobody in it.

The error is the mean absolute one over all cells and windows, also in relation to that of the seasonal naive forecast (MASE, Hyndman
and Koehler 2006): below 1 it is worth smoothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.errors import InvalidTime
from nearcast.model.time import MICROSECONDS, Instant, TimeFrame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

HOUR = 3600.0
DAY = 24 * HOUR
_CELL = ("column", "row")


@dataclass(frozen=True, slots=True)
class Seasons:
    """Of ``season`` seconds each, cut into windows of ``window`` seconds."""

    season: float = DAY
    window: float = HOUR
    alpha: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.window <= self.season or self.length % self.step:
            raise InvalidTime(f"a season of {self.season} s cannot be cut into windows of {self.window} s")
        if not 0 < self.alpha <= 1:
            raise InvalidTime(f"alpha is the weight of the latest season, above 0 and at most 1, not {self.alpha}")

    @property
    def length(self) -> int:
        return round(self.season * MICROSECONDS)

    @property
    def step(self) -> int:
        return round(self.window * MICROSECONDS)


def forecast(density: DataFrame, observed: TimeFrame, seasons: Seasons) -> DataFrame:
    """The season after ``observed``: ``since, until, column, row, clients``, a row for each window and cell where somebody is expected.

    ``density`` has ``since, column, row, clients`` of windows of that length (``density.density``); of what lies outside of the
    stretch that was ``observed`` nothing is used.
    """
    start, end = _bounds(observed, seasons)
    at = F.unix_micros("since")
    length = F.lit(seasons.length)
    ago = F.ceil((F.lit(end) - at) / length)
    target = at + ago * length
    # Windows of that hour since the start, whether anybody was there or not.
    known = F.floor((target - F.lit(start)) / length)
    rest = F.pow(F.lit(1.0 - seasons.alpha), F.col("ago") - 1)
    weight = F.when(F.col("ago") < F.col("known"), F.lit(seasons.alpha) * rest).otherwise(rest)
    dated = density.where((at >= F.lit(start)) & (at < F.lit(end)))
    dated = dated.select(*_CELL, "clients", target.alias("target"), ago.alias("ago"), known.alias("known"))
    expected = dated.groupBy("target", *_CELL).agg(F.sum(weight * F.col("clients")).alias("clients"))
    since = F.timestamp_micros("target")
    until = F.timestamp_micros(F.col("target") + F.lit(seasons.step))
    return expected.select(since.alias("since"), until.alias("until"), *_CELL, "clients").where(F.col("clients") > 0)


def forecast_error(density: DataFrame, observed: TimeFrame, seasons: Seasons) -> DataFrame:
    """How well the last season of ``observed`` would have been forecast from those before it.

    One row: ``cells, windows, mean_absolute, naive`` (that of the seasonal naive forecast), ``scaled`` (their ratio; null where the
    naive one makes no error) and ``bias`` (positive: too many were expected).
    """
    start, end = _bounds(observed, seasons)
    before = TimeFrame(start, end - seasons.length)
    naive = Seasons(seasons.season, seasons.window, alpha=1.0)
    last = (F.unix_micros("since") >= F.lit(end - seasons.length)) & (F.unix_micros("since") < F.lit(end))
    told = [
        _named(density.where(last), "actual"),
        _named(forecast(density, before, seasons), "expected"),
        _named(forecast(density, before, naive), "repeated"),
    ]
    names = ("actual", "expected", "repeated")
    apart = told[0].unionByName(told[1], allowMissingColumns=True).unionByName(told[2], allowMissingColumns=True)
    together = apart.groupBy("since", *_CELL).agg(*(F.coalesce(F.sum(name), F.lit(0.0)).alias(name) for name in names))
    windows = seasons.length // seasons.step
    cases = F.col("cells") * F.lit(windows)
    errors = together.agg(
        F.count_distinct(*_CELL).alias("cells"),
        F.sum(F.abs(F.col("expected") - F.col("actual"))).alias("absolute"),
        F.sum(F.abs(F.col("repeated") - F.col("actual"))).alias("naive"),
        F.sum(F.col("expected") - F.col("actual")).alias("bias"),
    )
    return errors.select(
        "cells",
        F.lit(windows).cast("long").alias("windows"),
        (F.col("absolute") / cases).alias("mean_absolute"),
        (F.col("naive") / cases).alias("naive"),
        F.when(F.col("naive") > 0, F.col("absolute") / F.col("naive")).alias("scaled"),
        (F.col("bias") / cases).alias("bias"),
    )


def _named(frame: DataFrame, name: str) -> DataFrame:
    clients: Column = F.col("clients").cast("double")
    return frame.select("since", *_CELL, clients.alias(name))


def _bounds(observed: TimeFrame, seasons: Seasons) -> tuple[Instant, Instant]:
    start, end = observed.since, observed.until
    if start is None or end is None:
        raise InvalidTime("the stretch that was observed needs a start and an end: hours without anybody count too")
    if end - start < seasons.length:
        raise InvalidTime(
            f"{(end - start) / MICROSECONDS:g} s were observed, less than one season of {seasons.season:g} s: there is nothing to go by"
        )
    return start, end
