"""An event on its way out: what the application said, checked, and as properties of a PUBLISH."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from nearcast.client.attributes import Place, lifetime_of, point_of
from nearcast.errors import InvalidEvent
from nearcast.model.area import Area
from nearcast.model.cql2 import parse_addressing
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import Instant
from nearcast.model.topic import LONGEST
from nearcast.model.values import Value
from nearcast.mqtt.publication import addressing_properties, message_expiry, properties_of


class Here(enum.Enum):
    """Where this client is."""

    HERE = "here"


HERE: Final = Here.HERE


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What an application publishes."""

    topic: str
    payload: bytes | str
    place: Place | Here | None
    to: str | Predicate | None
    when: str | TemporalPredicate | None
    tags: tuple[str, ...]
    lifetime: str | float | timedelta | None
    attributes: Mapping[str, Value]

    def at(self, here: Point | None) -> Point | None:
        """Where it happens."""
        if isinstance(self.place, Here):
            return here
        return None if self.place is None else point_of(self.place)


@dataclass(frozen=True, slots=True)
class Made:
    """The same, ready to be sent."""

    event: Event
    properties: list[tuple[str, str]]
    expiry: int | None
    """Message expiry interval, in seconds."""


def made(
    given: Outgoing,
    id: str,  # noqa: A002 - the word for it
    now: Instant,
    place: Point | None,
    reach: Area | None,
    channel: str | None,
) -> Made:
    """Check it as the broker would: what is wrong with an event is best said where it is published."""
    when = given.when
    event = Event(
        id,
        given.topic,
        now,
        given.attributes,
        given.tags,
        given.payload.encode() if isinstance(given.payload, str) else given.payload,
        None,
        place,
        reach,
        given.to,
        parse_addressing(when, now=now)[1] if isinstance(when, str) else when,
        lifetime_of(given.lifetime),
    )
    properties = properties_of(event, channel, addressing_properties(given.to, when))
    for name, text in properties:
        # A broker takes it for an error of protocol and ends the connection, as often as it is sent again (MQTT 5, 1.5.4).
        if "\0" in name + text or len(text.encode()) > LONGEST or len(name.encode()) > LONGEST:
            raise InvalidEvent(f"{name!r:.60}: texts of an event have at most {LONGEST} bytes, and none is U+0000")
    return Made(event, properties, message_expiry(event, now))
