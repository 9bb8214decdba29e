"""``nearcast pipeline audit``: who should have got an addressed message, and did not."""

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.output import replaceable


@job
def audit(
    run: Run,
    settling: Annotated[
        str, typer.Option(metavar="DURATION", help="Judge only those who changed nothing for so long before and after.")
    ] = "10s",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the messages there (default: WAREHOUSE/audited).")
    ] = None,
) -> Document:
    """Work out for each addressed message of a recording who should have got it, and count who did not."""
    from nearcast.model.time import MICROSECONDS, duration
    from nearcast.pipeline.observation.addressing import addressed, hops, missed
    from nearcast.pipeline.tables import check_lake, read_lake

    check_lake(run.lake)
    folder = out or run.warehouse / "audited"
    written = replaceable(folder)
    tables = read_lake(run.spark, run.lake)
    missed(addressed(tables, duration(settling) / MICROSECONDS)).write.mode("overwrite").parquet(written)
    totals = (
        run.spark.read.parquet(written)
        .selectExpr("count(*)", "coalesce(sum(due), 0)", "coalesce(sum(missed), 0)", "count_if(missed > 0)")
        .first()
    )
    assert totals is not None
    names = ("messages_for_somebody", "due", "missed", "messages_that_missed_somebody")
    return {
        "lake": str(run.lake),
        "out": str(folder),
        "messages": tables["events"].where("addressing is not null and timing is null").count(),
        **dict(zip(names, totals, strict=True)),
        "hops": {row["what"]: row["rows"] for row in hops(tables["hops"]).collect()},
    }
