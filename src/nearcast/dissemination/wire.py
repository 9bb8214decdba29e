"""The common form of events on every link: whatever mechanism is at work on either side can read it (BYPASS.KOM 4.2.2)."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from nearcast.errors import InvalidEvent
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.runtime.messages import Message

Scalar: TypeAlias = bool | int | float | str


class EventMessage(Message, frozen=True, tag="event", dict=True):
    """An event; ``dict`` leaves room to keep it unpacked (``event_in``)."""

    id: str
    topic: str
    published: int
    publisher: str | None
    lat: float | None
    lon: float | None
    payload: bytes
    attributes: dict[str, Scalar] = msgspec.field(default_factory=dict)
    tags: tuple[str, ...] = ()
    local: bool = False
    """The place is where the publisher was."""

    # For the broker alone, which takes it off: what the publisher's filter scheme adds.
    channel: str | None = None
    context: ContextUpdate | AssignmentRequest | Joining | None = None
    """Goes along: a message of its own would cost its header."""


def message_of(
    event: Event,
    *,
    local: bool = False,
    channel: str | None = None,
    context: ContextUpdate | AssignmentRequest | Joining | None = None,
) -> EventMessage:
    """The event, packed."""
    # The wire form of areas and predicates comes with the broker's; nothing is left out in silence until then.
    for part in ("reach", "to", "when", "lifetime"):
        if getattr(event, part) is not None:
            raise InvalidEvent(f"event {event.id!r} has {part!r}, which cannot be sent over a link yet")
    attributes: dict[str, Scalar] = {}
    for name, value in event.attributes.items():
        if not isinstance(value, bool | int | float | str):
            raise InvalidEvent(
                f"attribute {name!r} of event {event.id!r} is {value!r}; only plain values can be sent yet"
            )
        attributes[name] = value
    place = event.place
    message = EventMessage(
        event.id,
        event.topic,
        event.published,
        event.publisher,
        place.lat if place else None,
        place.lon if place else None,
        event.payload,
        attributes,
        tuple(sorted(event.tags)),
        local,
        channel,
        context,
    )
    message.__dict__["event"] = event
    return message


def without_tag(message: EventMessage) -> EventMessage:
    """As it is passed on: what its publisher told the broker is not for others."""
    if message.channel is None and message.context is None:
        return message
    plain = msgspec.structs.replace(message, channel=None, context=None)
    plain.__dict__["event"] = event_in(message)
    return plain


def event_in(message: EventMessage) -> Event:
    """The event, unpacked; kept with the message, because one message reaches many."""
    event: Event | None = message.__dict__.get("event")
    if event is None:
        place = None if message.lat is None or message.lon is None else Point(message.lat, message.lon)
        event = message.__dict__["event"] = Event(
            message.id,
            message.topic,
            message.published,
            message.attributes,
            message.tags,
            message.payload,
            message.publisher,
            place,
        )
    return event
