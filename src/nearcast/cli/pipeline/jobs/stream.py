"""``nearcast pipeline stream``: the same match on what a broker records from now on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@job
def stream(
    run: Run,
    broker: Annotated[
        str | None, typer.Option(metavar="URL", help="HTTP address of the broker; without it, the lake alone is read.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, and end.")] = False,
    seconds: Annotated[
        float | None, typer.Option(min=1.0, help="End after so many seconds (default: with Ctrl-C).")
    ] = None,
    delay: Annotated[float, typer.Option(min=0.0, help="Seconds by which rows may come after newer ones.")] = 0.0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the receivers there (default: WAREHOUSE/stream).")
    ] = None,
) -> Document:
    """Match events as they are recorded; a stream that was stopped goes on where it was."""
    from nearcast.pipeline.source import register
    from nearcast.pipeline.streaming import StreamSettings, match_stream
    from nearcast.pipeline.tables import check_lake

    if broker is None:
        check_lake(run.lake)
    register(run.spark)
    folder = out or run.warehouse / "stream"

    def table(name: str) -> "DataFrame":
        reader = run.spark.readStream.format("nearcast").option("table", name).option("lake", str(run.lake))
        return (reader if broker is None else reader.option("broker", broker)).load()

    events = table("events").where("timing is null").drop("receivers")
    others = (table(name) for name in ("reports", "subscriptions", "contexts", "clients"))
    answers = match_stream(events, *others, settings=StreamSettings(delay=delay))
    writer = answers.writeStream.format("parquet").option("path", str(folder / "rows"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = (writer.trigger(availableNow=True) if once else writer).start()
    try:
        query.awaitTermination(None if seconds is None or once else round(seconds))
    except KeyboardInterrupt:
        pass
    finally:
        query.stop()
    counted = run.spark.read.parquet(str(folder / "rows")).selectExpr("count(*)", "coalesce(sum(size(receivers)), 0)")
    events_so_far, receivers = counted.first() or (0, 0)
    return {"out": str(folder / "rows"), "broker": broker, "events": events_so_far, "receivers": receivers}
