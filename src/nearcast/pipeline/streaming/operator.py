"""What runs in Spark's Python workers for each part of a stream, batch by batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from nearcast.pipeline.matching.changes import EVENT
from nearcast.pipeline.streaming.state import PartState, Store

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

CLOCK: Final = EVENT + 1
"""Kind of rows that say nothing but the time."""


class StreamMatching(StatefulProcessor):
    """The rows of a batch for one part, and its state."""

    def __init__(self, *, rich: bool, delay: int, forget_after: int | None, client: str, event: str) -> None:
        """``rich``: ``detail`` of events is JSON, not just a topic; ``client``, ``event``: Arrow types of their ids."""
        self._rich: Final = rich
        self._delay: Final = delay
        self._forget_after: Final = forget_after
        self._client: Final = client
        self._event: Final = event

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = Store(handle)
        # Spark joins the frames that come out, also empty ones, in a way that pandas will give up.
        warnings.filterwarnings("ignore", "The behavior of DataFrame concatenation", FutureWarning)

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803, ARG002 - Spark's names
        schema = self._schema()
        part = PartState.of(self._store, schema)
        come = [pa.Table.from_pandas(frame, schema, preserve_index=False) for frame in rows]
        yield from self._answers(part, pa.concat_tables([part.waiting, *come]))
        part.save(self._store, self._forget_after)

    def close(self) -> None:
        """Nothing is held that Spark does not know of."""

    def _answers(self, part: PartState, rows: pa.Table) -> Iterator[pd.DataFrame]:
        time, kind = rows.column("time").to_numpy(), rows.column("kind").to_numpy()
        before = part.watermark
        part.watermark = max(before, int(time.max()) - self._delay)
        # Not what happens at the watermark itself: a change at the instant of an event counts for it, and may be still to come.
        due = time < part.watermark
        part.waiting = rows.filter(pa.array(~due & (kind != CLOCK)))
        events = rows.filter(pa.array(due & (kind == EVENT))).sort_by("time")
        ids, instants = events.column("event").to_numpy(), events.column("time").to_numpy()
        shown = pd.to_datetime(instants, unit="us", utc=True)
        for found in part.walk(rows.filter(pa.array(due & (kind < EVENT))), events, before, rich=self._rich):
            some = slice(found.first, found.first + len(found.offsets) - 1)
            receivers = pa.ListArray.from_arrays(pa.array(found.offsets, pa.int32()), part.named(found.clients))
            yield pd.DataFrame(
                {
                    "event": ids[some],
                    "time": shown[some],
                    # As Arrow, or each of millions of receivers would become a Python object on the way.
                    "receivers": pd.arrays.ArrowExtensionArray(receivers),
                    "late": instants[some] < before,
                }
            )

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
