"""What is known of clients, made again from the rows of the archive: the history on which delivery is defined.

The rows mean what they mean in the broker's journal: a session that is over leaves a context without name and attributes behind, a new one
begins with ``joined``, and a lost connection (``left``, ``failed``) ends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from nearcast.metrics.columns import Wholes
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT, ClientHistory, Context, Held, Timeline
from nearcast.model.time import Instant
from nearcast.model.value_text import attributes_in
from nearcast.pipeline.history.archive import CLIENT, CONTEXT, NO_LOCAL, REPORT, SUBSCRIPTION
from nearcast.pipeline.matching.changes import ACCEPTANCE
from nearcast.pipeline.rows import Row, point_of, subscription_of

if TYPE_CHECKING:
    import pyarrow as pa

_ORDER: Final = [("client", "ascending"), ("time", "ascending"), ("offset", "ascending"), ("kind", "ascending")]
"""Among rows of one instant the journal knows the order; without one, clients come before they say something."""

_SAYING: Final = frozenset({"joined", "returned", *ACCEPTANCE})
"""States that say that the client is there, or something of what it wants."""

_WANTED: Final = ("topic_filter", "condition", "area", "radius", "frame_since", "frame_until", "subscription", NO_LOCAL)


def with_whole_instants(table: pa.Table) -> pa.Table:
    """Instants as the model has them: whole microseconds."""
    import pyarrow as pa

    fields = [field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in table.schema]
    instants = [
        field.with_type(pa.timestamp("us", field.type.tz)) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(instants)).cast(pa.schema(fields))


def whole_instants(column: pa.Array, null: Instant = 0) -> Wholes:
    """The same of one column, as numpy has it."""
    import pyarrow as pa

    instants = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).fill_null(null)
    values: Wholes = instants.to_numpy(zero_copy_only=False)
    return values


def histories(told: pa.Table) -> Iterator[tuple[str, ClientHistory]]:
    """Of each client that the rows (``archive.presence``) tell of."""
    ordered = with_whole_instants(told).sort_by(_ORDER)
    name: str | None = None
    known = ClientHistory()
    for row in _rows(ordered):
        if row["client"] != name:
            if name is not None:
                yield name, known
            name, known = row["client"], ClientHistory()
        _apply(known, row)
    if name is not None:
        yield name, known


def _rows(table: pa.Table) -> Iterator[Row]:
    columns = {name: table[name].to_pylist() for name in table.column_names}
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _apply(known: ClientHistory, row: Row) -> None:
    at: Instant = row["time"]
    kind = row["kind"]
    if kind == CONTEXT and row["name"] == IMPLICIT_CONTEXT and row["attributes"] is None:
        _forget(known, at)
        known.present.set(at, False)
        return
    if kind == CLIENT and row["state"] not in _SAYING:
        return
    if kind == REPORT:
        known.position.set(at, point_of(row["lat"], row["lon"]))
    elif kind == CONTEXT:
        context = None if row["attributes"] is None else MappingProxyType(attributes_in(row["attributes"]))
        known.contexts.setdefault(row["name"], Timeline[Context | None](None)).set(at, context)
    elif kind == SUBSCRIPTION:
        _end(known, at, row["subscription"])
        if row["action"] == "subscribed":
            known.held.append(Held(subscription_of(*(row[name] for name in _WANTED)), at))
    elif row["state"] in ACCEPTANCE:
        known.accepts_addressed.set(at, row["state"] == ACCEPTANCE[0])
    elif row["state"] == "joined":
        _forget(known, at)
    if not known.present.at(at):
        known.present.set(at, True)


def _forget(known: ClientHistory, at: Instant) -> None:
    """All that went with a session."""
    for held in known.held:
        _end(known, at, held.subscription.id)
    if known.accepts_addressed.at(at):
        known.accepts_addressed.set(at, False)
    nowhere: Point | None = None
    timelines: list[Timeline[Any]] = [known.position, *known.contexts.values()]
    for timeline in timelines:
        if timeline.at(at) is not None:
            timeline.set(at, nowhere)


def _end(known: ClientHistory, at: Instant, subscription: str) -> None:
    for index, held in enumerate(known.held):
        if held.unsubscribed is None and held.subscription.id == subscription:
            known.held[index] = Held(held.subscription, held.subscribed, at)
