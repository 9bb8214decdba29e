"""What Spark asks of a source: partitions and batches, and for a stream the offsets from which and to which."""

# ruff: noqa: N802 - Spark has named these methods

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from nearcast.model.time import instant
from nearcast.pipeline.limits import Offsets, limited
from nearcast.pipeline.source.lake import TimeBounds
from nearcast.pipeline.source.options import SourceOptions
from nearcast.pipeline.source.stretch import Extent, JournalTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_OFFSET: Final = "offset"


class Piece(InputPartition):
    """Offsets that one task reads."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__((first, last))
        self.first = first
        self.last = last


class _Reading:
    """What readers of batches and of streams have in common."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._bounds = TimeBounds()

    @property
    def table(self) -> JournalTable:
        """Made where it is needed: Spark sends readers from process to process."""
        return JournalTable(self._options)

    def _extent(self) -> Extent:
        extent = self.table.extent()
        end = self._options.end
        return extent if end is None else Extent(extent.first, max(extent.first, min(extent.last, end)))

    def _first(self, extent: Extent) -> int:
        start = self._options.start
        if isinstance(start, int):
            return max(start, extent.first)
        return extent.first if start == "earliest" else extent.last

    def _pieces(self, first: int, last: int) -> list[Piece]:
        return [Piece(*ends) for ends in self.table.cut(first, last, self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if isinstance(partition, Piece):  # Spark makes another one up where there is none
            schema = to_arrow_schema(self._schema, timezone="UTC")
            yield from self.table.batches(schema, partition.first, partition.last, self._bounds)


class BatchReader(_Reading, DataSourceReader):
    """All there is when the query is planned."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Bounds of the time leave out files of other days; Spark filters all the same, to the microsecond."""
        for each in filters:
            self._bounds = _narrowed(self._bounds, each)
        return filters

    def partitions(self) -> Sequence[Piece]:
        extent = self._extent()
        return self._pieces(self._first(extent), extent.last)


class StreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """From offset to offset; the same offsets give the same rows again, wherever they are by then.

    Each offset holds at most one row of any table: a limit of rows is one of offsets, and tables that are read with the same
    one stay in step.
    """

    _end: int | None = None
    """Of a query that takes what is available now."""

    def initialOffset(self) -> Offsets:
        return {_OFFSET: self._first(self._extent())}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        last = self._end if self._end is not None else self._extent().last
        end = {_OFFSET: max(last, start[_OFFSET])}
        return limited(start, end, limit.max_rows) if isinstance(limit, ReadMaxRows) else end

    def getDefaultReadLimit(self) -> ReadMaxRows:
        return ReadMaxRows(self._options.most_offsets)

    def reportLatestOffset(self) -> Offsets:
        return {_OFFSET: self._extent().last}

    def prepareForTriggerAvailableNow(self) -> None:
        self._end = self._extent().last

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[Piece]:
        return self._pieces(start[_OFFSET], end[_OFFSET])


def _narrowed(bounds: TimeBounds, condition: Filter) -> TimeBounds:
    since: int | None = None
    until: int | None = None
    match condition:
        case EqualTo(("time",), datetime() as at):
            since, until = _instant(at), _instant(at) + 1
        case GreaterThan(("time",), datetime() as at):
            since = _instant(at) + 1
        case GreaterThanOrEqual(("time",), datetime() as at):
            since = _instant(at)
        case LessThan(("time",), datetime() as at):
            until = _instant(at)
        case LessThanOrEqual(("time",), datetime() as at):
            until = _instant(at) + 1
    return TimeBounds(
        max((edge for edge in (bounds.since, since) if edge is not None), default=None),
        min((edge for edge in (bounds.until, until) if edge is not None), default=None),
    )


def _instant(at: datetime) -> int:
    return instant(at if at.tzinfo is not None else at.replace(tzinfo=UTC))
