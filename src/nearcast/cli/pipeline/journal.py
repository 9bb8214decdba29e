"""What jobs that follow a broker's journal share: its tables as streams, and how long a stream runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nearcast.errors import InvalidRecord
from nearcast.pipeline.limits import MOST_ROWS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from nearcast.cli.pipeline.job import Run

BrokerOption = Annotated[
    str | None, typer.Option(metavar="URL", help="HTTP address of the broker; without it, the lake alone is read.")
]
OnceOption = Annotated[bool, typer.Option("--once", help="Take what is there, and end.")]
BatchRowsOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Rows that a batch takes at most: a backlog is worked off in several.")
]
SecondsOption = Annotated[float | None, typer.Option(min=1.0, help="End after so many seconds (default: with Ctrl-C).")]


class Followed(NamedTuple):
    tables: dict[str, DataFrame]
    sources: list[dict[str, str]]
    """Their options, for a clock that goes beside them."""


def journal_tables(run: Run, broker: str | None, *names: str, once: bool, batch_rows: int = MOST_ROWS) -> Followed:
    """These tables as streams, from the broker and its lake, or from the lake alone; ``once``: all of them up to the same offset."""
    from nearcast.journal.lake import EXPORTED
    from nearcast.pipeline.source import register
    from nearcast.pipeline.source.options import reading
    from nearcast.pipeline.source.stretch import JournalTable
    from nearcast.pipeline.tables import check_lake

    where = {"maxRowsPerTrigger": str(batch_rows)} | ({} if broker is None else {"broker": broker})
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
    tables = {name: reader.option("table", name).load() for name in names}
    return Followed(tables, [{**where, "table": names[0]}])  # all go by the same offsets


def topic_tables(run: Run, *names: str, batch_rows: int = MOST_ROWS) -> Followed:
    """These tables as streams, from their topics."""
    from nearcast.pipeline.kafka import read_topic, topic_options
    from nearcast.pipeline.kafka.stretch import Topic

    kafka = run.settings.kafka
    client = kafka.client()
    topics = {name: f"{kafka.prefix}{name}" for name in names}
    for topic in topics.values():  # before a session is started for nothing
        Topic(client, topic).extents()
    most = str(batch_rows)
    tables = {
        name: read_topic(run.spark, client, topic, name, maxRowsPerTrigger=most) for name, topic in topics.items()
    }
    return Followed(tables, [topic_options(client, topic, maxRowsPerTrigger=most) for topic in topics.values()])


def to_topics(run: Run, frames: dict[str, DataFrame]) -> DataStreamWriter:
    """Send the rows of streams to the topics of these names."""
    from nearcast.pipeline.kafka import messages, register, topic_options
    from nearcast.pipeline.kafka.stretch import have_topics

    kafka = run.settings.kafka
    topics = {f"{kafka.prefix}{name}": frame for name, frame in frames.items()}
    have_topics(
        kafka.client(), topics
    )  # also those that nothing may be sent to for long: somebody may want to read them
    register(run.spark)
    given = topic_options(kafka.client(), next(iter(topics)))
    return messages(topics).writeStream.format("nearcast-kafka").options(**given)


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
