"""``nearcast pipeline plan``: from what is observed to filter schemes, and into the broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from nearcast.cli.pipeline.job import Document, Run, job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from nearcast.pipeline.observation.attraction import Lingering

_CELL: Final = 10.0
"""Metres: attraction points are looked for in cells of that side, as by ``observe``."""


@job
def plan(
    run: Run,
    broker: Annotated[
        str | None, typer.Option(metavar="URL", help="HTTP address of the broker that is to carry the plan out.")
    ] = None,
    scheme: Annotated[str, typer.Option(help="A filter scheme with square cells.")] = "EGRID",
    per_cell: Annotated[
        float, typer.Option(metavar="CLIENTS", min=0.01, help="The grid is refined when a cell would hold more.")
    ] = 25.0,
    largest: Annotated[int, typer.Option(min=2, max=500, help="The largest grid factor.")] = 64,
    window: Annotated[str, typer.Option(metavar="DURATION", help="Length of the windows.")] = "60s",
    lasting: Annotated[int, typer.Option(metavar="WINDOWS", min=1, help="So long a crowd must last to count.")] = 2,
    at_points: Annotated[
        str | None, typer.Option(metavar="SCHEME", help="This one for whoever is at an attraction point, as RADIAL.")
    ] = None,
    least: Annotated[
        float, typer.Option(metavar="CLIENTS", min=0.01, help="So many linger, on average, at an attraction point.")
    ] = 1.0,
    planner_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Sign the plan: a key that `nearcast planner` has made.")
    ] = None,
    audience: Annotated[
        str, typer.Option(metavar="NAME", help="The broker that a signed plan is for (its schemes.audience).")
    ] = "",
) -> Document:
    """Plan the grid factor from how many clients there are; with --broker, read its newest records too and have it carried out."""
    from nearcast.model.time import MICROSECONDS, duration
    from nearcast.pipeline.observation.attraction import Lingering
    from nearcast.pipeline.observation.density import crowd
    from nearcast.pipeline.plans import decisions, grid_ladder, latest, orders, over, plans

    length, reports = duration(window), _reports(run, broker)
    ladder = grid_ladder(scheme, per_cell, largest, windows=lasting)
    people = over(crowd(reports, length / MICROSECONDS), run.now())
    made = latest(plans(decisions(people, "clients", ladder))).cache()
    found = [row.asDict() for row in made.collect()]
    regions: list[Any] = []
    if found:
        _hand_in(orders(made), broker, planner_key, audience)
    if at_points is not None:
        # With what holds elsewhere, so that points that are no more are over.
        elsewhere = found[0]["scheme"] if found else None
        ordered = _at_points(reports, length, Lingering(least), at_points, elsewhere).cache()
        regions = [row.asDict(recursive=True) for row in ordered.collect()]
        if regions:
            _hand_in(ordered, broker, planner_key, audience)
    shown = [{**row, "time": row["time"].isoformat()} for row in found]
    handed_in = broker is not None and bool(found or regions)
    return {"broker": broker, "plans": shown, "regions": regions, "handed_in": handed_in}


def _reports(run: Run, broker: str | None) -> DataFrame:
    from nearcast.pipeline.source import register
    from nearcast.pipeline.tables import check_lake, read_lake

    if broker is None:
        check_lake(run.lake)
        return read_lake(run.spark, run.lake)["reports"]
    register(run.spark)
    reader = run.spark.read.format("nearcast").option("table", "reports").option("broker", broker)
    return (reader.option("lake", str(run.lake)) if run.lake.is_dir() else reader).load()


def _at_points(reports: DataFrame, length: int, crowd: Lingering, scheme: str, elsewhere: str | None) -> DataFrame:
    """The order for the attraction points of the newest stretch of that length."""
    from pyspark.sql import functions as F

    from nearcast.metrics.maps import Grid
    from nearcast.model.time import MICROSECONDS, to_datetime
    from nearcast.pipeline.observation.attraction import attraction_points
    from nearcast.pipeline.observation.report import stretch_of
    from nearcast.pipeline.plans import orders_at_points

    whole = stretch_of(reports)
    since = max(whole.since, whole.until - length)
    newest = reports.where(F.col("time") >= F.lit(to_datetime(since)))
    seconds = (whole.until - since) / MICROSECONDS
    points = attraction_points(newest, Grid(whole.middle, _CELL), crowd, seconds)
    return orders_at_points(points, since, scheme, elsewhere)


def _hand_in(ordered: DataFrame, broker: str | None, planner_key: Path | None, audience: str) -> None:
    if broker is not None:
        writer = ordered.write.format("nearcast").option("table", "plans").option("broker", broker)
        if planner_key is not None:
            writer = writer.option("plannerKey", str(planner_key.absolute())).option("audience", audience)
        writer.mode("append").save()
