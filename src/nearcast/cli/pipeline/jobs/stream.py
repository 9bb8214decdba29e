"""``nearcast pipeline stream``: the same match on all that a broker has recorded, and on what it records from now on."""

from pathlib import Path
from typing import Annotated

import typer

from nearcast.cli.pipeline.job import Document, Run, job
from nearcast.cli.pipeline.journal import (
    BatchRowsOption,
    BrokerOption,
    OnceOption,
    SecondsOption,
    follow,
    journal_tables,
    to_topics,
    topic_tables,
)
from nearcast.errors import InvalidSettings
from nearcast.pipeline.limits import MOST_ROWS

_TABLES = ("events", "reports", "subscriptions", "contexts", "clients")


@job
def stream(
    run: Run,
    broker: BrokerOption = None,
    once: OnceOption = False,
    seconds: SecondsOption = None,
    batch_rows: BatchRowsOption = MOST_ROWS,
    delay: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Seconds by which rows may come after newer ones (default: 0 of a lake, 1 of a broker, 10 of Kafka).",
        ),
    ] = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="Read topics of Kafka, as `forward` fills them, not lake and broker.")
    ] = False,
    to_kafka: Annotated[
        bool, typer.Option("--to-kafka", help="Send the receivers to a topic of Kafka, not to files.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the receivers there (default: WAREHOUSE/stream).")
    ] = None,
) -> Document:
    """Match events as they are recorded; a stream that was stopped goes on where it was.

    A lake alone is read once; its last events wait for what is recorded after them.
    """
    from pyspark.sql.functions import to_date

    from nearcast.pipeline.clock import clock
    from nearcast.pipeline.streaming import StreamSettings, check_layout, match_stream
    from nearcast.pipeline.tables.store import address

    folder = out or run.warehouse / "stream"
    checkpoint = folder / "checkpoint"
    live = broker is not None or from_kafka
    if from_kafka:
        tables, sources = topic_tables(run, *_TABLES, batch_rows=batch_rows)
    else:
        tables, sources = journal_tables(run, broker, *_TABLES, once=once, batch_rows=batch_rows)
        if not live and not once:
            raise InvalidSettings(
                "a lake grows by a minute at a time, some tables before others; read it --once, or name its --broker URL"
            )
    check_layout(checkpoint)
    # Tables are asked one after the other how far they go: rows of the last moments may miss a batch.
    behind = 10.0 if from_kafka else 1.0 if live else 0.0
    # All tables of the journal go by the same offsets; but a backlog of one topic may end sooner than that of another.
    settings = StreamSettings(delay=behind if delay is None else delay, by_clock=from_kafka)
    # A stream has as many tasks as there are partitions when it begins.
    run.spark.conf.set("spark.sql.shuffle.partitions", settings.parts)
    tables["events"] = tables["events"].where("timing is null").drop("receivers")
    present = clock(run.spark, running=live, beside=sources)
    answers = match_stream(**tables, clock=present, settings=settings)
    if to_kafka:
        follow(to_topics(run, {"receivers": answers}), checkpoint, once=once, seconds=seconds)
        return {"topic": f"{run.settings.kafka.prefix}receivers", "broker": broker}
    rows = address(folder / "rows")
    # By days: only what is partitioned leaves no empty file behind where a batch, as most by night, has no answers.
    writer = answers.withColumn("date", to_date("time")).writeStream.partitionBy("date")
    follow(writer.format("parquet").option("path", rows), checkpoint, once=once, seconds=seconds)
    written = run.spark.read.schema(answers.schema).parquet(rows)
    counted = written.selectExpr("count(*)", "coalesce(sum(size(receivers)), 0)", "count_if(late)").first()
    assert counted is not None
    names = ("events", "receivers", "late")
    return {"out": str(folder / "rows"), "broker": broker, **dict(zip(names, counted, strict=True))}
