"""Events as PUBLISH packets: what a publisher says, and what a receiver is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from nearcast.errors import InvalidEvent, InvalidPredicate, InvalidProperty
from nearcast.model.area import Area
from nearcast.model.area_text import area_in, area_text
from nearcast.model.cql2 import parse, parse_addressing
from nearcast.model.event import RESERVED_PROPERTIES, Event
from nearcast.model.geometry import Point
from nearcast.model.predicate import Predicate
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.temporal import TemporalPredicate
from nearcast.model.time import MICROSECONDS, Instant, instant
from nearcast.model.time import to_text as instant_text
from nearcast.model.value_text import value_in, value_text
from nearcast.model.values import Value
from nearcast.mqtt import names
from nearcast.mqtt.options import Properties, without_prefix
from nearcast.mqtt.positions import point_in, point_text

_LONGEST_EXPIRY: Final = 0xFFFF_FFFF


class Publication(msgspec.Struct, frozen=True):
    """A PUBLISH as it was read; who published it, where and when is still to be said."""

    topic: str
    payload: bytes = b""
    id: str | None = None
    place: Point | None = None
    here: bool = False
    """The place is where the publisher is."""
    reach: Area | None = None
    """Perhaps relative: around the publisher."""
    to: str | None = None
    when: str | None = None
    tags: tuple[str, ...] = ()
    attributes: Mapping[str, Value] = {}
    lifetime: int | None = None
    channel: str | None = None
    addressed: bool = False
    """It said something to nearcast: a property of its own, or the prefix."""

    prefixed: bool = False
    """It came with the prefix, so that its user properties do not say all."""

    @property
    def is_absolute(self) -> bool:
        """Whether its properties mean the same to everybody: nothing in them depends on the publisher, or is for the broker alone."""
        return not (self.prefixed or self.here or self.reach or self.to or self.when or self.channel)

    def event(
        self,
        id: str,  # noqa: A002 - the word for it
        published: Instant,
        publisher: str | None,
        position: Point | None,
        announced: Area | None = None,
    ) -> Event:
        """The event, from a publisher at that position; ``announced`` is its reach if the publication names none.

        ``id`` counts unless the publication brings its own.
        """
        place = self.place
        if self.here:
            if position is None:
                raise InvalidEvent(
                    f"{names.PLACE} is 'here', but no position of the publisher is known; send it to {names.ReservedTopic.POSITION.topic} first"
                )
            place = position
        reach = announced if self.reach is None else self.reach
        if reach is not None and reach.is_relative:
            if position is None:
                raise InvalidEvent(
                    f"{names.REACH} lies around the publisher, whose position is not known; send it to {names.ReservedTopic.POSITION.topic} "
                    'first, or write where the reach lies ("at": [lon, lat])'
                )
            reach = reach.anchored(position)
        return Event(
            self.id or id,
            self.topic,
            published,
            self.attributes,
            self.tags,
            self.payload,
            publisher,
            place,
            reach,
            self.to,
            None if self.when is None else _temporal(self.when, published),
            self.lifetime,
        )


def is_plain(topic: str, properties: list[tuple[str, str]]) -> bool:
    """Whether a PUBLISH says nothing to nearcast: neither properties nor a prefix or reserved topic."""
    return not properties and topic[:1] != "$"


def plain_topic(topic: str) -> str:
    """The topic under which it is received: without the prefix, if it has one."""
    return without_prefix(topic, names.PUBLISH_PROPERTIES)[0] if topic.startswith(names.PREFIX) else topic


def place_alone(properties: list[tuple[str, str]]) -> Point | None:
    """The place, if it is all that the properties say: no other publication with properties is nearly as frequent."""
    if len(properties) != 1:
        return None
    name, text = properties[0]
    return point_in(text) if name == names.PLACE and text != names.HERE else None


def publication(
    topic: str, payload: bytes, properties: Iterable[tuple[str, str]] = (), expiry: int | None = None
) -> Publication:
    """Read a PUBLISH; ``expiry`` is its message expiry interval in seconds."""
    lifetime = None if expiry is None else max(expiry * MICROSECONDS, 1)
    addressed = topic.startswith(names.PREFIX)
    if addressed:
        topic, options = without_prefix(topic, names.PUBLISH_PROPERTIES)
        properties = [*options, *properties]
    return _read(topic, payload, properties, lifetime, names.PUBLISH_PROPERTIES, addressed)


def properties_of(event: Event, channel: str | None = None, addressing: Properties | None = None) -> Properties:
    """The properties with which a publisher sends the event; ``addressing`` is what says whom it is for, if that is written already."""
    properties = [(names.ID, event.id)]
    if event.place is not None:
        properties.append((names.PLACE, point_text(event.place)))
    if event.reach is not None:
        properties.append((names.REACH, area_text(event.reach)))
    properties += addressing_properties(event.to, event.when) if addressing is None else addressing
    properties.extend((names.TAG, tag) for tag in sorted(event.tags))
    if channel is not None:
        properties.append((names.CHANNEL, channel))
    properties.extend((name, value_text(name, value)) for name, value in event.attributes.items())
    return properties


def addressing_properties(to: Predicate | str | None, when: TemporalPredicate | str | None) -> Properties:
    """Whom an event is for.  Texts go as they were written: "now" in them is the broker's, and ``to`` may say when as well."""
    properties = []
    if to is not None:
        properties.append((names.TO, to if isinstance(to, str) else _written(to)))
    if when is not None:
        properties.append((names.WHEN, str(when)))
    return properties


def delivery_properties(event: Event) -> Properties:
    """The properties with which a nearcast subscription gets the event: everything in it is resolved."""
    return [*properties_of(event), (names.PUBLISHED, instant_text(event.published))]


def message_expiry(event: Event, now: Instant) -> int | None:
    """Seconds that the event still exists, rounded up; 0: none any more, so it must not be sent."""
    if event.lifetime is None:
        return None
    left = event.published + event.lifetime - now
    return 0 if left <= 0 else min(-(-left // MICROSECONDS), _LONGEST_EXPIRY)


def delivered_event(
    topic: str,
    payload: bytes,
    properties: Iterable[tuple[str, str]],
    expiry: int | None,
    *,
    id: str,  # noqa: A002 - the word for it
    received: Instant,
) -> Event:
    """The event in a PUBLISH of the broker; ``id`` and ``received`` stand in where it names neither id nor time."""
    properties = list(properties)
    published = next((instant(value) for name, value in properties if name == names.PUBLISHED), received)
    left = None if expiry is None else max(received - published, 0) + max(expiry * MICROSECONDS, 1)
    read = _read(topic, payload, properties, left, names.DELIVERY_PROPERTIES, True)
    return read.event(id, published, None, None)


def _read(
    topic: str,
    payload: bytes,
    properties: Iterable[tuple[str, str]],
    lifetime: int | None,
    known: frozenset[str],
    addressed: bool,
) -> Publication:
    own: dict[str, str] = {}
    tags: list[str] = []
    attributes: dict[str, Value] = {}
    for name, value in properties:
        if name[:3] != names.MARK:
            # Names that a filter sees as parts of the event, and empty ones, travel on as properties but are no attributes:
            # MQTT lets any program send them, and its messages are none of our business.
            if name and name not in RESERVED_PROPERTIES:
                attributes[name] = value_in(value)
        elif name == names.TAG:
            tags.append(value)
        elif name not in known:
            raise InvalidProperty(f"{name!r:.60} is no property of a publication; known: {', '.join(sorted(known))}")
        elif name in own:
            raise InvalidProperty(f"{name} stands there twice; only {names.TAG} may be repeated")
        else:
            own[name] = value
    place = own.get(names.PLACE)
    reach = own.get(names.REACH)
    return Publication(
        topic,
        payload,
        _not_empty(own, names.ID),
        None if place is None or place == names.HERE else point_in(place),
        place == names.HERE,
        None if reach is None else area_in(reach),
        own.get(names.TO),
        own.get(names.WHEN),
        tuple(tags),
        attributes,
        lifetime,
        own.get(names.CHANNEL),
        addressed or bool(own) or bool(tags),
        addressed,
    )


def _not_empty(own: Mapping[str, str], name: str) -> str | None:
    value = own.get(name)
    if value == "":
        raise InvalidProperty(f"{name} is empty; leave it out, or give it a value")
    return value


def _temporal(text: str, published: Instant) -> TemporalPredicate:
    predicate, temporal = parse_addressing(text, now=published)
    if temporal is None or predicate is not None:
        raise InvalidProperty(
            f"{names.WHEN} is one temporal predicate such as overlaps(time, '-10m', 'now'), not {text!r:.60}; "
            f"constraints on the receiver's context stand in {names.TO}"
        )
    return temporal


def _written(predicate: Predicate) -> str:
    text = predicate_text(predicate)
    try:
        parse(text)
    except InvalidPredicate:
        raise InvalidPredicate(f"the filter {text:.80} cannot be sent: CQL2 has no text for a part of it") from None
    return text
