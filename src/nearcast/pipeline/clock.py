"""A stream that says what time it is, once a second: what happened before a silence is not kept waiting by it.

It is the clock of the machine that plans the batches.  One that stands still says nothing, and may run another time.
"""

# ruff: noqa: N802 - Spark has named these methods

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NAME: Final = "nearcast-clock"
_SECOND: Final = "second"


def clock(spark: SparkSession, *, running: bool) -> DataFrame:
    """The present as a stream with the column ``time``."""
    spark.dataSource.register(ClockSource)
    return spark.readStream.format(_NAME).option("running", str(running).lower()).load()


class ClockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        return "time timestamp"

    def streamReader(self, schema: StructType) -> ClockReader:  # noqa: ARG002 - Spark hands it over
        return ClockReader(running=self.options.get("running") == "true")


class Tick(InputPartition):
    def __init__(self, second: int) -> None:
        super().__init__(second)
        self.second = second


class ClockReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are seconds since 1970; those of a clock that has not run yet are 0."""

    _end: int | None = None
    """Of a query that takes what is available now."""

    def __init__(self, *, running: bool) -> None:
        self._running = running

    def initialOffset(self) -> dict[str, int]:
        return {_SECOND: 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002 - there is one row
        now = int(time.time()) if self._end is None else self._end
        return {_SECOND: max(start[_SECOND], now)} if self._running else start

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = int(time.time())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Tick]:
        return [Tick(end[_SECOND])] if end[_SECOND] > start[_SECOND] else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        if isinstance(partition, Tick):  # Spark makes another one up where there is none
            at = pa.array([partition.second * 1_000_000]).cast(pa.timestamp("us", tz="UTC"))
            yield pa.RecordBatch.from_arrays([at], names=["time"])
