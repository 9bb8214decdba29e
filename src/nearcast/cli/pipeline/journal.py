"""What jobs that follow a broker's journal share: its tables as streams, and how long a stream runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.errors import InvalidRecord

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from nearcast.cli.pipeline.job import Run

BrokerOption = Annotated[
    str | None, typer.Option(metavar="URL", help="HTTP address of the broker; without it, the lake alone is read.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="Take what is there, and end.")]
SecondsOption = Annotated[float | None, typer.Option(min=1.0, help="End after so many seconds (default: with Ctrl-C).")]


def journal_tables(run: Run, broker: str | None, *names: str, once: bool) -> dict[str, DataFrame]:
    """These tables as streams, from the broker and its lake, or from the lake alone; ``once``: all of them up to the same offset."""
    from nearcast.journal.lake import EXPORTED
    from nearcast.pipeline.source import register
    from nearcast.pipeline.source.options import reading
    from nearcast.pipeline.source.stretch import JournalTable
    from nearcast.pipeline.tables import check_lake

    where = {} if broker is None else {"broker": broker}
    if broker is None or run.lake.is_dir():
        where["lake"] = str(run.lake.absolute())
    for name in names:  # before a session is started for nothing
        reading({**where, "table": name})
    if broker is None:
        check_lake(run.lake)
        if not (run.lake / EXPORTED).exists():
            raise InvalidRecord(
                f"{run.lake} is no broker's lake, and nothing will be added to it; match all of it at once: nearcast pipeline match"
            )
    if once:  # they are asked one after the other how far they go, and meanwhile something may be recorded
        where["endingOffset"] = str(JournalTable(reading({**where, "table": names[0]})).extent().last)
    register(run.spark)
    reader = run.spark.readStream.format("nearcast").options(**where)
    return {name: reader.option("table", name).load() for name in names}


def topic_tables(run: Run, *names: str) -> dict[str, DataFrame]:
    """These tables as streams, from their topics."""
    from nearcast.pipeline.kafka import read_topic
    from nearcast.pipeline.kafka.stretch import Topic

    kafka = run.settings.kafka
    client = kafka.client()
    for name in names:  # before a session is started for nothing
        Topic(client, f"{kafka.prefix}{name}").extents()
    return {name: read_topic(run.spark, client, f"{kafka.prefix}{name}", name) for name in names}


def to_topics(run: Run, frames: dict[str, DataFrame]) -> DataStreamWriter:
    """Send the rows of streams to the topics of these names."""
    from nearcast.pipeline.kafka import messages, register
    from nearcast.pipeline.kafka.stretch import have_topics

    kafka = run.settings.kafka
    topics = {f"{kafka.prefix}{name}": frame for name, frame in frames.items()}
    have_topics(
        kafka.client(), topics
    )  # also those that nothing may be sent to for long: somebody may want to read them
    register(run.spark)
    client = {f"kafka.{name}": value for name, value in kafka.client().items()}
    return messages(topics).writeStream.format("nearcast-kafka").options(**client, topic=next(iter(topics)))


def follow(writer: DataStreamWriter, checkpoint: Path, *, once: bool, seconds: float | None) -> None:
    """Run a stream until it has taken what is there, or so long, or until somebody interrupts it."""
    from nearcast.pipeline.tables.store import address

    writer = writer.option("checkpointLocation", address(checkpoint))
    query = (writer.trigger(availableNow=True) if once else writer).start()
    try:
        query.awaitTermination(None if seconds is None else round(seconds))
    except KeyboardInterrupt:
        pass
    finally:
        query.stop()
