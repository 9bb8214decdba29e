"""Records of the journal as rows of the record tables: which table, and the values in the order of its columns.

Notifications have no rows of their own: the receivers stand in the row of their event, later ones in ``deliveries``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidArea
from nearcast.journal.entries import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    LateReportEntry,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.model.area_text import area_in
from nearcast.model.geometry import Point, distance
from nearcast.model.value_text import attributes_tree, tree_in

Row = Callable[[int, Any], tuple[Any, ...]]
"""The row of a record, given the record's offset."""


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
    return msgspec.json.encode({name: tree_in(text) for name, text in event.attributes}).decode()


def radius_of(area: str | None, place: Point | None) -> float | None:
    """The radius of a circle around ``place`` that surely holds the area of a text; none if that cannot be said.

    Areas that are said relative to a place need none.  The broker has checked the texts when they came; one that cannot be
    read any more must not keep all others from the lake.
    """
    if area is None:
        return None
    try:
        held = area_in(area)
    except InvalidArea:
        return None
    if held.center is None:
        return held.bounding_radius()
    return None if place is None else distance(place, held.center) + held.bounding_radius()


def _subscription_row(offset: int, entry: SubscriptionEntry) -> tuple[Any, ...]:
    radius = radius_of(entry.area, None)
    head = (entry.at, entry.who, entry.id, entry.what, entry.filter, radius)
    return *head, entry.area, entry.where, entry.since, entry.until, offset, 1 if entry.no_local else None


def _context_row(offset: int, entry: ContextEntry) -> tuple[Any, ...]:
    """A record holds the context as it is registered again after a restart; of that its attributes stand in the table."""
    attributes = None if entry.attributes is None else msgspec.json.encode(attributes_tree(entry.attributes)).decode()
    return entry.at, entry.who, entry.name, attributes, offset


def _late_row(offset: int, late: LateReportEntry) -> tuple[Any, ...]:
    return late.at, late.who, late.lat, late.lon, late.fixed, late.accuracy, offset


def _transition_row(offset: int, each: TransitionEntry) -> tuple[Any, ...]:
    return each.at, each.host, each.proxy, each.source, each.target, each.lat, each.lon, each.plan, offset


def _delivery_row(offset: int, entry: DeliveryEntry) -> tuple[Any, ...]:
    return entry.at, entry.event.id, entry.of, entry.event.receivers, offset


ROWS: Final[dict[type, tuple[str, Row]]] = {
    EventEntry: ("events", _event_row),
    ReportEntry: ("reports", lambda offset, entry: (entry.at, entry.who, entry.lat, entry.lon, offset)),
    LateReportEntry: ("late_reports", _late_row),
    ContextEntry: ("contexts", _context_row),
    SubscriptionEntry: ("subscriptions", _subscription_row),
    UnpublishEntry: ("unpublished", lambda offset, entry: (entry.at, entry.event, entry.offset, offset)),
    ClientEntry: ("clients", lambda offset, entry: (entry.at, entry.who, entry.what, offset)),
    TransitionEntry: ("transitions", _transition_row),
    DeliveryEntry: ("deliveries", _delivery_row),
}
"""Of each kind of record, its table and its row there."""
