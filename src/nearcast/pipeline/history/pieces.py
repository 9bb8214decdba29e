"""The archives of an overlay's nodes, all of them, against many messages at once.

A router asks the archives for one message at a time.  Whoever has a year of messages asks them here: the pieces of all nodes are a table,
dealt out by node and identity, and each part is put into the columns of the same ``overlay.temporal.archive`` that routers ask.  What comes out is
what the nodes would have answered: when a message held of which virtual identity.  Whose that is, trusted nodes know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.model.event import Event
from nearcast.overlay.routing.messages import attributes_tree, context_of
from nearcast.overlay.temporal.archive import Archive, Piece
from nearcast.pipeline.history.archive import BUCKETS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

SPANS: Final = "node string, event string, vid string, conjunct int, start bigint, end bigint"
"""Instants are whole microseconds since the epoch; without an end it still held."""


def table_of(archives: Iterable[tuple[str, Archive]]) -> pa.Table:
    """The pieces of nodes, by their names: ``node, vid, start, end, attributes``."""
    import pyarrow as pa

    rows = [
        {**piece._asdict(), "node": node, "attributes": json.dumps(attributes_tree(piece.context))}
        for node, archive in archives
        for piece in archive.pieces()
    ]
    kinds = {"node": pa.string(), "vid": pa.string(), "start": pa.int64(), "end": pa.int64(), "attributes": pa.string()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


def spans(pieces: DataFrame, events: Sequence[Event]) -> DataFrame:
    """What the nodes answer: ``node, event, vid, conjunct, start, end``."""
    dealt = F.pmod(F.hash("node", "vid"), F.lit(BUCKETS)).alias("bucket")
    return pieces.groupBy(dealt).applyInArrow(_searching(tuple(events)), SPANS)


def _searching(events: tuple[Event, ...]) -> Callable[[pa.Table], pa.Table]:
    def search(table: pa.Table) -> pa.Table:
        import pyarrow as pa

        archives: dict[str, Archive] = {}
        for row in table.to_pylist():
            context = context_of(json.loads(row["attributes"]))
            archives.setdefault(row["node"], Archive()).put(Piece(row["vid"], row["start"], row["end"], context))
        found = [
            (node, event.id, span.vid, span.conjunct, span.start, span.end)
            for node, archive in archives.items()
            for event in events
            for span in archive.spans(event)
        ]
        kinds = (pa.string(), pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64())
        names = ("node", "event", "vid", "conjunct", "start", "end")
        columns = list(zip(*found, strict=True)) or [()] * len(names)
        return pa.table(
            {name: pa.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=True)}
        )

    return search
