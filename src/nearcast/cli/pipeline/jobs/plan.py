"""``nearcast pipeline plan``: from what is observed to a filter scheme, and into the broker."""

import time
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job


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
) -> Document:
    """Plan the grid factor from how many clients there are; with --broker, read its newest records too and have it carried out."""
    from nearcast.model.time import MICROSECONDS, duration
    from nearcast.pipeline.observation.density import crowd
    from nearcast.pipeline.plans import decisions, grid_ladder, latest, orders, over, plans
    from nearcast.pipeline.source import register
    from nearcast.pipeline.tables import check_lake, read_lake

    if broker is None:
        check_lake(run.lake)
        reports = read_lake(run.spark, run.lake)["reports"]
    else:
        register(run.spark)
        reader = run.spark.read.format("nearcast").option("table", "reports").option("broker", broker)
        reports = (reader.option("lake", str(run.lake)) if run.lake.is_dir() else reader).load()
    ladder = grid_ladder(scheme, per_cell, largest, windows=lasting)
    people = over(crowd(reports, duration(window) / MICROSECONDS), time.time_ns() // 1000)
    made = latest(plans(decisions(people, "clients", ladder))).cache()
    found = [row.asDict() for row in made.collect()]
    if broker is not None and found:
        writer = orders(made).write.format("nearcast").option("table", "plans").option("broker", broker)
        writer.mode("append").save()
    shown = [{**row, "time": row["time"].isoformat()} for row in found]
    return {"broker": broker, "plans": shown, "handed_in": broker is not None and bool(found)}
