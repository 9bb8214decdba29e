"""``nearcast pipeline match``: who should have received what, for all that was recorded."""

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.output import replaceable


@job
def match(
    run: Run,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the receivers there (default: WAREHOUSE/matched).")
    ] = None,
) -> Document:
    """Match all recorded events with the clients of their time, by the definition of delivery."""
    from nearcast.pipeline.matching import match as matched
    from nearcast.pipeline.tables import check_lake, read_lake

    check_lake(run.lake)
    folder = out or run.warehouse / "matched"
    written = replaceable(folder)
    tables = read_lake(run.spark, run.lake)
    # Events for whoever was or will be somewhere are the business of `pipeline.history`.
    events = tables["events"].where("timing is null").drop("receivers")
    others = (tables[name] for name in ("reports", "subscriptions", "contexts", "clients"))
    matched(events, *others).write.mode("overwrite").parquet(written)
    counted = run.spark.read.parquet(written).selectExpr("count(*)", "coalesce(sum(size(receivers)), 0)").first()
    assert counted is not None
    return {
        "lake": str(run.lake),
        "out": str(folder),
        "events": counted[0],
        "receivers": counted[1],
        "left_out": tables["events"].where("timing is not null").count(),
    }
