"""``nearcast pipeline past``: many questions about the past at once."""

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.output import replaceable


@job
def past(
    run: Run,
    questions: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Questions as JSON lines or Parquet; docs/pipeline.md has the columns."),
    ],
    broker: Annotated[
        str | None, typer.Option(metavar="URL", help="HTTP address of the broker that is to deliver the answers.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the answers there (default: WAREHOUSE/answers).")
    ] = None,
) -> Document:
    """Answer subscriptions into the past from the archive: the first n of x events each, and more on request."""
    from nearcast.errors import InvalidInput
    from nearcast.pipeline.history.archive import Archive
    from nearcast.pipeline.history.past import notifications
    from nearcast.pipeline.history.past import past as answered
    from nearcast.pipeline.history.questions import read_questions
    from nearcast.pipeline.session import limit_bytes
    from nearcast.pipeline.source import register
    from nearcast.pipeline.tables import Warehouse, check_lake, read_lake, read_silver, tables_of_silver

    if not questions.is_file():
        raise InvalidInput(f"there is no file {questions}; write one question a line, as JSON")
    warehouse = Warehouse(run.warehouse)
    # Silver is partitioned by day and cell, so that most of it is never opened.
    if tables_of_silver(warehouse):
        archive = Archive.of(lambda name: read_silver(run.spark, warehouse, name))
    else:
        check_lake(run.lake)
        archive = Archive.of(read_lake(run.spark, run.lake).__getitem__)
    limit_bytes(run.spark)
    folder = out or run.warehouse / "answers"
    written = replaceable(folder)
    answered(read_questions(run.spark, questions), archive).write.mode("overwrite").parquet(written)
    answers = run.spark.read.parquet(written)
    if broker is not None:
        register(run.spark)
        rows = notifications(answers).where("offset is not null")
        rows.write.format("nearcast").option("table", "notifications").option("broker", broker).mode("append").save()
    totals = answers.selectExpr("count(*)", "coalesce(sum(total), 0)", "coalesce(sum(size(events)), 0)").first()
    assert totals is not None
    names = ("questions", "matching_events", "events_given")
    return {"out": str(folder), **dict(zip(names, totals, strict=True)), "delivered_by": broker}
