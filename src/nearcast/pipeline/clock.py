"""A stream that says what time it is, once a second: what happened before a silence is not kept waiting by it.

It is the clock of the machine that plans the batches.  One that stands still says nothing, and may run another time.  One that goes
with other streams says nothing either while they have a backlog that takes several batches: what comes with the second one would
be late.  To know that it takes the same steps as they do.
"""

# ruff: noqa: N802 - Spark has named these methods

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

from nearcast.pipeline.limits import limited, waiting
from nearcast.pipeline.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from nearcast.pipeline.kafka.reader import StreamReader as TopicReader
    from nearcast.pipeline.source.reader import StreamReader as JournalReader

    Reader = TopicReader | JournalReader

_NAME: Final = "nearcast-clock"
_SECOND: Final = "second"
_READ: Final = "read"
_SOURCES: Final = "sources.secret"
"""There may be a password in it: Spark does not show options of such a name."""

Given = Mapping[str, str]
"""Options of a source: of ``nearcast-kafka`` if there is a topic among them, else of ``nearcast``."""


def clock(spark: SparkSession, *, running: bool, beside: Sequence[Given] = ()) -> DataFrame:
    """The present as a stream with the column ``time``; ``beside`` are the streams with which it goes."""
    spark.dataSource.register(ClockSource)
    reader = spark.readStream.format(_NAME).option("running", str(running).lower())
    return reader.option(_SOURCES, json.dumps([dict(given) for given in beside])).load()


class ClockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        return "time timestamp"

    def streamReader(self, schema: StructType) -> ClockReader:  # noqa: ARG002 - Spark hands it over
        beside = [_reader(given) for given in json.loads(self.options.get(_SOURCES) or "[]")]
        return ClockReader(running=self.options.get("running") == "true", beside=beside)


def _reader(given: Given) -> Reader:
    if "topic" in given:
        from nearcast.pipeline.kafka import options as kafka
        from nearcast.pipeline.kafka.reader import StreamReader as TopicReader

        return TopicReader(kafka.checked(given))
    from nearcast.pipeline.source import options
    from nearcast.pipeline.source.reader import StreamReader as JournalReader

    checked = options.reading(given)
    return JournalReader(checked, spark_schema(checked.table))


class Tick(InputPartition):
    def __init__(self, second: int) -> None:
        super().__init__(second)
        self.second = second


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are seconds since 1970, and how far the streams beside it were read; a clock that has not run yet is at 0."""

    _end: int | None = None
    """Of a query that takes what is available now."""

    def __init__(self, *, running: bool, beside: Sequence[Reader] = ()) -> None:
        self._running = running
        self._beside = beside

    def initialOffset(self) -> dict[str, Any]:
        return {_SECOND: 0, _READ: [reader.initialOffset() for reader in self._beside]}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002 - there is one row
        read, silent = [], not self._running
        begun = (
            start[_READ] if _READ in start else self.initialOffset()[_READ]
        )  # a clock of before counted seconds only
        for reader, begin in zip(self._beside, begun, strict=True):
            end, most = reader.latestOffset(begin, ReadAllAvailable()), reader.getDefaultReadLimit().max_rows
            read.append(limited(begin, end, most))
            # The streams are asked a moment earlier or later; what they miss for that is the newest, for which there is a delay.
            silent = silent or sum(waiting(begin, end).values()) > most
        now = int(time.time()) if self._end is None else self._end
        return {_SECOND: start[_SECOND] if silent else max(start[_SECOND], now), _READ: read}

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = int(time.time())
        for reader in self._beside:
            reader.prepareForTriggerAvailableNow()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[Tick]:
        return [Tick(end[_SECOND])] if end[_SECOND] > start[_SECOND] else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        if isinstance(partition, Tick):  # Spark makes another one up where there is none
            at = pa.array([partition.second * 1_000_000]).cast(pa.timestamp("us", tz="UTC"))
            yield pa.RecordBatch.from_arrays([at], names=["time"])
