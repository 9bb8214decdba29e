"""Events between the wire and the journal: what is kept of them, and what becomes of it after a restart or much later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mqtt5 import PublishPacket

from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.router import Target
from nearcast.broker.tracing.tracer import Trace
from nearcast.journal.entries import EventEntry
from nearcast.model.area_text import area_in, area_text
from nearcast.model.cql2 import parse_addressing
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.value_text import value_in, value_text
from nearcast.mqtt.publication import Publication, delivery_properties

Owed = tuple[str, int, bool, tuple[int, ...]]


def owed_to(targets: Sequence[Target], qos: int) -> tuple[Owed, ...]:
    """What is written of those who are owed a message of that quality."""
    return tuple(
        [(target.session.identity, min(qos, target.qos), target.near, target.identifiers) for target in targets]
    )


def entry_of(
    event: Event, message: Message, publisher: str | None, receivers: Sequence[str] = (), owed: Sequence[Owed] = ()
) -> EventEntry:
    """All that is needed to deliver the event again; ``publisher`` and receivers by the identities they are recorded under."""
    place = event.place
    return EventEntry(
        event.id,
        event.topic,
        event.published,
        event.payload,
        publisher,
        message.qos,
        tuple(receivers),
        None if place is None else place.lat,
        None if place is None else place.lon,
        None if event.reach is None else area_text(event.reach),
        None if event.to is None else predicate_text(event.to),
        None if event.when is None else str(event.when),
        event.lifetime,
        tuple((name, value_text(name, value)) for name, value in event.attributes.items()),
        tuple(sorted(event.tags)),
        message.content_type,
        message.response_topic,
        message.correlation,
        message.payload_format,
        message.properties,
        tuple(owed),
        message.key,
    )


def packet_entry(
    id: str,  # noqa: A002 - the word for it
    topic: str,
    published: Instant,
    packet: PublishPacket,
    publisher: str,
    qos: int,
    receivers: tuple[str, ...] = (),
    owed: tuple[Owed, ...] = (),
    place: Point | None = None,
    read: Publication | None = None,
) -> EventEntry:
    """The same for what goes many at a time: of it, the packet, its place and what was ``read`` of it, if anything, say all."""
    expiry = packet.message_expiry_interval
    attributes: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    if read is not None:
        attributes = tuple((name, value_text(name, value)) for name, value in read.attributes.items())
        tags = tuple(sorted(set(read.tags)))
    return EventEntry(
        id,
        topic,
        published,
        packet.payload,
        publisher,
        qos,
        receivers,
        None if place is None else place.lat,
        None if place is None else place.lon,
        None,
        None,
        None,
        None if expiry is None else max(expiry * MICROSECONDS, 1),
        attributes,
        tags,
        packet.content_type,
        packet.response_topic,
        packet.correlation_data,
        packet.payload_format_indicator,
        tuple(packet.user_properties),
        owed,
    )


def plain_event(message: Message, id: str, publisher: str, published: Instant) -> Event:  # noqa: A002 - the word for it
    """The event of a message that has nothing but a topic."""
    lifetime = None if message.expires is None else max(message.expires - published, 1)
    return Event(id, message.topic, published, payload=message.payload, publisher=publisher, lifetime=lifetime)


def event_in(entry: EventEntry, publisher: str | None = None) -> Event:
    """The event; ``publisher`` as the matcher knows it, since the entry has only its virtual identity."""
    when = None if entry.when is None else parse_addressing(entry.when, now=entry.published)[1]
    return Event(
        entry.id,
        entry.topic,
        entry.published,
        {name: value_in(value) for name, value in entry.attributes},
        entry.tags,
        entry.payload,
        publisher,
        None if entry.lat is None or entry.lon is None else Point(entry.lat, entry.lon),
        None if entry.reach is None else area_in(entry.reach),
        entry.to,
        when,
        entry.lifetime,
    )


def continued(event: Event, message: Message, trace: Trace) -> Event:
    """The same event for receivers behind this broker: its span is the parent of theirs, whatever the message said before."""
    message.properties = tuple(trace.properties(message.properties))
    event = replace(event, attributes={**event.attributes, **dict(trace.context.properties())})
    message.near_properties = tuple(delivery_properties(event))
    return event


def message_in(entry: EventEntry, offset: int) -> Message:
    """The message, as it goes out to those who did not get it yet."""
    return Message(
        entry.topic,
        entry.payload,
        entry.qos,
        False,
        None if entry.lifetime is None else entry.published + entry.lifetime,
        entry.payload_format or 0,
        entry.content_type,
        entry.response_topic,
        entry.correlation_data,
        entry.user_properties,
        tuple(delivery_properties(event_in(entry))),
        entry.id,
        entry.key,
        offset,
    )
