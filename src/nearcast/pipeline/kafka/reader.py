"""What Spark asks of a source: partitions and batches, and for a stream the offsets from which and to which."""

# ruff: noqa: N802 - Spark has named these methods

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from nearcast.errors import OffsetTrimmed
from nearcast.pipeline.kafka.options import KafkaOptions
from nearcast.pipeline.kafka.stretch import Topic
from nearcast.pipeline.limits import Offsets, limited

OFFSETS_PER_TASK: Final = 200_000


class Stretch(InputPartition):
    """Offsets of one partition that one task reads."""

    def __init__(self, partition: int, first: int, last: int) -> None:
        super().__init__((partition, first, last))
        self.partition = partition
        self.first = first
        self.last = last


class _Reading:
    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self.topic = Topic(options.client, options.topic)

    def _ends(self) -> Offsets:
        return {str(number): last for number, (_, last) in self.topic.extents().items()}

    def _begins(self) -> Offsets:
        latest = self._options.latest
        return {str(number): last if latest else first for number, (first, last) in self.topic.extents().items()}

    @staticmethod
    def _stretches(start: Offsets, end: Offsets) -> list[Stretch]:
        return [
            Stretch(int(number), first, min(first + OFFSETS_PER_TASK, last))
            for number, last in end.items()
            for first in range(start.get(number, 0), last, OFFSETS_PER_TASK)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, Stretch):  # Spark makes another one up where there is none
            yield from self.topic.batches(partition.partition, partition.first, partition.last)


class BatchReader(_Reading, DataSourceReader):
    """All there is when the query is planned."""

    def partitions(self) -> Sequence[Stretch]:
        return self._stretches(self._begins(), self._ends())


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """From offsets to offsets; the same offsets give the same messages again, as long as Kafka keeps them.

    Partitions go by their numbers as texts, because Spark keeps offsets as JSON.
    """

    _end: Offsets | None = None
    """Of a query that takes what is available now."""

    def initialOffset(self) -> Offsets:
        return self._begins()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        end = self._ends() if self._end is None else self._end
        for number, last in end.items():
            if last < start.get(number, 0):
                raise OffsetTrimmed(
                    f"partition {number} of {self._options.topic} ends at {last}, before the {start[number]} that was read: "
                    "it was made anew; begin with another checkpoint",
                    last,
                )
        return limited(start, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else {**start, **end}

    def getDefaultReadLimit(self) -> ReadMaxRows:
        return ReadMaxRows(self._options.most_rows)

    def reportLatestOffset(self) -> Offsets:
        return self._ends()

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._ends()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[Stretch]:
        return self._stretches(start, end)
