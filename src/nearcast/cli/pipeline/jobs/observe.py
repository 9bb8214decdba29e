"""``nearcast pipeline observe``: what is going on, by windows of time."""

from pathlib import Path
from typing import Annotated, Any

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.output import replaceable


@job
def observe(
    run: Run,
    window: Annotated[str, typer.Option(metavar="DURATION", help="Length of the windows.")] = "60s",
    cell: Annotated[float, typer.Option(metavar="METRES", min=1.0, help="Side of the cells.")] = 50.0,
    least: Annotated[
        float, typer.Option(metavar="CLIENTS", min=0.01, help="So many linger, on average, at an attraction point.")
    ] = 1.0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the tables there (default: WAREHOUSE/observed).")
    ] = None,
) -> Document:
    """Observe density, fan-out, load, recall and precision, and find attraction points; forecast density after a day."""
    from nearcast.model.time import MICROSECONDS, duration, to_text
    from nearcast.pipeline.observation.attraction import Lingering
    from nearcast.pipeline.observation.report import Observing, observations, stretch_of
    from nearcast.pipeline.tables import check_lake, read_lake
    from nearcast.pipeline.tables.store import put_in_place

    check_lake(run.lake)
    how = Observing(duration(window) / MICROSECONDS, cell, Lingering(least))
    tables = read_lake(run.spark, run.lake)
    stretch = stretch_of(tables["reports"])
    folder = out or run.warehouse / "observed"
    observed = observations(tables, stretch, how)
    places = {name: replaceable(folder / name) for name in observed}  # before the first is replaced
    rows: dict[str, int] = {}
    for name, frame in observed.items():
        put_in_place(frame, folder / name)  # the dashboard may be showing what was observed before
        rows[name] = run.spark.read.parquet(places[name]).count()
    points: list[dict[str, Any]] = [
        row.asDict()
        for row in run.spark.read.parquet(str(folder / "points")).orderBy("clients", ascending=False).collect()
    ]
    return {
        "lake": str(run.lake),
        "out": str(folder),
        "since": to_text(stretch.since),
        "until": to_text(stretch.until),
        "rows": rows,
        "points": points,
    }
