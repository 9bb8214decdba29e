"""Rows of the record tables as the words of the model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from nearcast.model.area import Area, Circle
from nearcast.model.area_text import area_in
from nearcast.model.cql2 import parse_addressing
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import Instant, TimeFrame
from nearcast.model.value_text import attributes_in

Row = Mapping[str, Any]

EVENT_COLUMNS = (
    "time",
    "event",
    "publisher",
    "topic",
    "lat",
    "lon",
    "reach",
    "tags",
    "attributes",
    "reach_area",
    "addressing",
    "timing",
    "lifetime",
    "offset",
)
"""What decides who receives an event."""


def event_of(row: Row) -> Event:
    """The event of a row whose instants are whole microseconds; what it says (its payload) does not matter here."""
    published: Instant = row["time"]
    place = point_of(row["lat"], row["lon"])
    return Event(
        id=row["event"],
        topic=row["topic"],
        published=published,
        attributes=attributes_in(row["attributes"]),
        tags=row["tags"] or (),
        publisher=row["publisher"],
        place=place,
        reach=reach_of(row["reach_area"], row["reach"], place),
        to=row["addressing"],
        when=timing_of(row["timing"], published),
        lifetime=row["lifetime"],
    )


def point_of(lat: float | None, lon: float | None) -> Point | None:
    return None if lat is None or lon is None else Point(lat, lon)


def reach_of(area: str | None, radius: float | None, place: Point | None) -> Area | None:
    """Simulations say a radius around the event's place; the broker says the area itself."""
    if area is not None:
        return area_in(area)
    return None if radius is None or place is None else Circle(radius, place)


def timing_of(text: str | None, published: Instant) -> TemporalPredicate | None:
    return None if text is None else parse_addressing(text, now=published)[1]


@lru_cache(maxsize=10_000)
def subscription_of(
    topic_filter: str,
    condition: str | None,
    area: str | None,
    radius: float | None,
    since: Instant | None,
    until: Instant | None,
    name: str = "",
    no_local: int | bool | None = None,
) -> Subscription:
    """Thousands of clients ask for the same: it is read once."""
    around = area_in(area) if area is not None else None if radius is None else Circle(radius)
    return Subscription(topic_filter, condition, around, TimeFrame(since, until), name, no_local=bool(no_local))
