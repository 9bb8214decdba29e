"""What runs in Spark's Python workers for each part of a stream, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from nearcast.pipeline.matching.changes import EVENT
from nearcast.pipeline.streaming.packing import blob_of, rows_in
from nearcast.pipeline.streaming.state import NEVER, PartState, keep, stored
from nearcast.pipeline.streaming.store import Store

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

CLOCK: Final = EVENT + 1
"""Kind of rows that say nothing but the time."""


class StreamMatching(StatefulProcessor):
    """The rows of a batch for one part, and its state."""

    def __init__(
        self,
        *,
        rich: bool,
        parts: int,
        delay: int,
        forget_after: int | None,
        client: str,
        event: str,
        by_clock: bool = False,
    ) -> None:
        """``rich``: ``detail`` of events is JSON, not just a topic; ``client``, ``event``: Arrow types of their ids."""
        self._rich: Final = rich
        self._parts: Final = parts
        self._delay: Final = delay
        self._forget_after: Final = forget_after
        self._client: Final = client
        self._event: Final = event
        self._by_clock: Final = by_clock

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = Store(handle)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803, ARG002 - Spark's names
        schema = self._schema()
        part = stored(self._store, schema, self._parts)
        come = [rows_in(blob, schema) for frame in rows for blob in frame["rows"] if blob]
        if come:
            yield from self._answers(part, pa.concat_tables([part.waiting, *come]))
        if come or part.is_new:
            part.save(self._store, self._forget_after)
        keep(part)

    def close(self) -> None:
        """Nothing is held that Spark does not know of."""

    def _answers(self, part: PartState, rows: pa.Table) -> Iterator[pd.DataFrame]:
        time, kind = rows.column("time").to_numpy(), rows.column("kind").to_numpy()
        before = part.watermark
        said = time[kind == CLOCK] if self._by_clock else time
        part.watermark = max(before, int(said.max(initial=NEVER)) - self._delay)
        # Not what happens at the watermark itself: a change at the instant of an event counts for it, and may be still to come.
        due = time < part.watermark
        part.waiting = rows.filter(pa.array(~due & (kind != CLOCK)))
        events = rows.filter(pa.array(due & (kind == EVENT))).sort_by("time")
        for found in part.walk(rows.filter(pa.array(due & (kind < EVENT))), events, before, rich=self._rich):
            some = events.slice(found.first, len(found.offsets) - 1)
            time = some.column("time")
            answers = {
                "event": some.column("event"),
                "time": time.cast(pa.timestamp("us", tz="UTC")),
                "receivers": pa.ListArray.from_arrays(pa.array(found.offsets, pa.int32()), part.named(found.clients)),
                "late": pc.less(time, before),
            }
            yield pd.DataFrame({"answers": [blob_of(pa.table(answers))]})

    def _schema(self) -> pa.Schema:
        columns = {
            "time": pa.int64(),
            "kind": pa.int8(),
            "offset": pa.int64(),
            "lat": pa.float64(),
            "lon": pa.float64(),
        }
        forms = {"string": pa.string(), "int64": pa.int64()}
        ids = {"client": forms[self._client], "event": forms[self._event]}
        return pa.schema([*columns.items(), ("detail", pa.string()), *ids.items()])
