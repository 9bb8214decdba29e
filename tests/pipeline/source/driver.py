"""A driver in a process of its own, which a test kills: a broker's events to files, and back into the broker.

``python -m tests.pipeline.source.driver FOLDER URL LAKE MASTER IDENTITY [once]``

While ``FOLDER/trouble SINK`` is there, the first task of that query that has passed a part of its rows on takes it and does what it
says: to its own process, to the executor that it belongs to, or nothing at all for ever.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearcast.pipeline.source.source import NearcastSource, register
from nearcast.pipeline.source.writer import HandedIn, StreamWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

ANSWER = ("time", "event", "topic", "payload", "offset")
SINKS = ("parquet", "nearcast")


def troubled(folder: Path, sink: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    # Of the main module, and so sent by value: executors do not know of the tests.
    def passed_on(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            taken = folder / f"taken {sink}"
            try:
                os.rename(folder / f"trouble {sink}", taken)  # noqa: PTH104 - one of all that try succeeds
            except FileNotFoundError:
                continue
            what = taken.read_text()
            if what == "hang":
                threading.Event().wait()
            victim = os.getpid()
            if what == "kill executor":
                daemon = os.getppid()
                victim = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(victim, signal.SIGKILL)
            threading.Event().wait()

    return passed_on


def troubled_source(folder: Path) -> type[NearcastSource]:
    """The source, whose writer has handed in a part of its rows when something happens to it."""

    class TroubledWriter(StreamWriter):
        def write(self, iterator: Iterator[Any]) -> HandedIn:
            return super().write(troubled(folder, "nearcast")(iterator))

    class TroubledSource(NearcastSource):
        def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:  # noqa: N802 - Spark's name
            return TroubledWriter(super().streamWriter(schema, overwrite).options)

    return TroubledSource


def started(frame: DataFrame, folder: Path, sink: str, settings: dict[str, str], *, once: bool) -> Any:
    writer = frame.writeStream.format(sink).options(**settings)
    writer = writer.option("checkpointLocation", str(folder / f"checkpoint {sink}"))
    query = (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()
    # One after the other: Spark gives the Python of a query 10 seconds to come up, on however busy a machine.
    while query.lastProgress is None and not query.awaitTermination(1):
        pass
    return query


def main(folder: Path, url: str, lake: str, master: str, identity: str, *, once: bool) -> None:
    from pyspark.sql import functions as F

    from nearcast.pipeline.session import FAST_START, spark_session

    settings = {
        "spark.driver.extraJavaOptions": FAST_START,
        "spark.driver.memory": "512m",
        "spark.executor.memory": "600m",
        "spark.executor.extraJavaOptions": FAST_START,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
    }
    spark = spark_session("killed", master=master, settings=settings)
    register(spark)
    spark.dataSource.register(troubled_source(folder))
    given = {"table": "events", "broker": url, "lake": lake, "maxRowsPerTrigger": "200", "offsetsPerPartition": "60"}
    events = spark.readStream.format("nearcast").options(**given).load()
    written = events.select("offset", "event").mapInArrow(troubled(folder, "parquet"), "offset bigint, event string")
    answers = events.select(*ANSWER, F.lit(identity).alias("client"))
    queries = [
        started(written, folder, "parquet", {"path": str(folder / "out")}, once=once),
        started(answers, folder, "nearcast", {"table": "notifications", "broker": url}, once=once),
    ]
    if not once:
        spark.streams.awaitAnyTermination()  # one that fails ends both
    for query in queries:
        query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:6], once="once" in sys.argv[6:])
