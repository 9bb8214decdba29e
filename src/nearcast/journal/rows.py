"""Records of the journal as rows of the record tables: which table, and the values in the order of its columns.

Notifications have no rows of their own: the receivers stand in the row of their event, later ones in ``deliveries``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidValue
from nearcast.journal.entries import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.journal.extent import radius_of
from nearcast.model.geometry import Point
from nearcast.model.values import checked_value

Row = Callable[[int, Any], tuple[Any, ...]]
"""The row of a record, given the record's offset."""

_MAY_BE_JSON: Final = frozenset('-0123456789tf"{')
_FORMS: Final = frozenset({"path", "point", "instant", "tags", "one_of", "range", "area"})
"""Objects that the wire contract reads as values; any other is a mere text."""


def _event_row(offset: int, event: EventEntry) -> tuple[Any, ...]:
    return (
        event.published,
        event.id,
        event.publisher,
        event.topic,
        event.lat,
        event.lon,
        None if event.reach is None else _reach(event, event.reach),
        len(event.payload),
        None,  # workload: only simulations have one
        event.receivers,
        event.payload,
        event.tags or None,
        _attributes(event) if event.attributes else None,
        event.reach,
        event.to,
        event.when,
        event.lifetime,
        offset,
    )


def _reach(event: EventEntry, area: str) -> float | None:
    if area.isdecimal():  # most are, and every record passes here
        return float(area)
    return radius_of(area, None if event.lat is None or event.lon is None else Point(event.lat, event.lon))


def _attributes(event: EventEntry) -> str:
    """As a JSON object, whose values are read as those of a context are."""
    return msgspec.json.encode({name: _tree(text) for name, text in event.attributes}).decode()


def _tree(text: str) -> Any:
    """The JSON value that the text of an attribute stands for on the wire."""
    if not text or text[0] not in _MAY_BE_JSON or text[-1].isspace():
        return text
    try:
        tree = msgspec.json.decode(text)
        if isinstance(tree, dict):
            return tree if len(tree) == 1 and _FORMS.issuperset(tree) else text
        return checked_value("value", tree)
    except (msgspec.DecodeError, RecursionError, InvalidValue):
        return text


def _subscription_row(offset: int, entry: SubscriptionEntry) -> tuple[Any, ...]:
    radius = radius_of(entry.area, None)
    head = (entry.at, entry.who, entry.id, entry.what, entry.filter, radius)
    return *head, entry.area, entry.where, entry.since, entry.until, offset, 1 if entry.no_local else None


def _context_row(offset: int, entry: ContextEntry) -> tuple[Any, ...]:
    attributes = None if entry.attributes is None else entry.attributes.decode()
    return entry.at, entry.who, entry.name, attributes, offset


def _transition_row(offset: int, each: TransitionEntry) -> tuple[Any, ...]:
    return each.at, each.host, each.proxy, each.source, each.target, each.lat, each.lon, each.plan, offset


def _delivery_row(offset: int, entry: DeliveryEntry) -> tuple[Any, ...]:
    return entry.at, entry.event.id, entry.of, entry.event.receivers, offset


ROWS: Final[dict[type, tuple[str, Row]]] = {
    EventEntry: ("events", _event_row),
    ReportEntry: ("reports", lambda offset, entry: (entry.at, entry.who, entry.lat, entry.lon, offset)),
    ContextEntry: ("contexts", _context_row),
    SubscriptionEntry: ("subscriptions", _subscription_row),
    UnpublishEntry: ("unpublished", lambda offset, entry: (entry.at, entry.event, entry.offset, offset)),
    ClientEntry: ("clients", lambda offset, entry: (entry.at, entry.who, entry.what, offset)),
    TransitionEntry: ("transitions", _transition_row),
    DeliveryEntry: ("deliveries", _delivery_row),
}
"""Of each kind of record, its table and its row there."""
