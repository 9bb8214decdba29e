"""All observations of a stretch of time at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from nearcast.errors import InvalidRecord
from nearcast.metrics.maps import Grid
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, TimeFrame
from nearcast.pipeline.observation.attraction import Lingering, attraction_points
from nearcast.pipeline.observation.audit import audit, audit_by_place
from nearcast.pipeline.observation.density import crowd, density
from nearcast.pipeline.observation.forecast import Seasons, forecast
from nearcast.pipeline.observation.load import fan_out, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Stretch:
    """What reports say of themselves: from when to when, and where their middle is."""

    since: int
    until: int
    middle: Point

    @property
    def seconds(self) -> float:
        return (self.until - self.since) / MICROSECONDS


def stretch_of(reports: DataFrame) -> Stretch:
    """``InvalidRecord`` if nobody reported a place."""
    placed = reports.where(F.col("lat").isNotNull())
    row = placed.agg(
        F.unix_micros(F.min("time")), F.unix_micros(F.max("time")), F.median("lat"), F.median("lon")
    ).first()
    if row is None or row[0] is None:
        raise InvalidRecord("nobody reported a place in this time: there is nothing to observe")
    return Stretch(row[0], row[1] + 1, Point(row[2], row[3]))


@dataclass(frozen=True, slots=True)
class Observing:
    """How closely to look."""

    window: float = 60.0
    """Seconds."""

    cell: float = 50.0
    """Metres; that of attraction points is a fifth of it: they are smaller than what is counted by."""

    crowd: Lingering = field(default_factory=lambda: Lingering(1.0))
    seasons: Seasons = field(default_factory=Seasons)


def observations(tables: Mapping[str, DataFrame], stretch: Stretch, how: Observing) -> dict[str, DataFrame]:
    """Frames by name: ``crowd, density, fan_out, load, audit, places, points``, and ``forecast`` if a whole season was observed."""
    events, reports = tables["events"], tables["reports"]
    grid = Grid(stretch.middle, how.cell)
    found = {
        "crowd": crowd(reports, how.window),
        "density": density(reports, grid, how.window),
        "fan_out": fan_out(events, how.window),
        "load": load(events, reports, how.window),
        "audit": audit(events, tables["notifications"], how.window),
        "places": audit_by_place(events, tables["notifications"], grid),
        "points": attraction_points(reports, Grid(stretch.middle, how.cell / 5), how.crowd, stretch.seconds),
    }
    seasons = how.seasons
    observed = TimeFrame(stretch.since - stretch.since % seasons.step, -(-stretch.until // seasons.step) * seasons.step)
    if stretch.seconds >= seasons.season:
        found["forecast"] = forecast(density(reports, grid, seasons.window), observed, seasons)
    return found
