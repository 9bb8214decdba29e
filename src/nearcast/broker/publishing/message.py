"""A message on its way out, encoded once for all who get the same bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from mqtt5 import PublishPacket, QoS

from nearcast.broker.tracing.tracer import Trace
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.mqtt.stream import encode

_ANY_PACKET_ID: Final = 1
_MOST_FORMS: Final = 8
"""Beyond that, all are made anew: a retained message may be asked for in as many forms as there are numbers."""

DUPLICATE: Final = 0x08
QUALITIES: Final = (QoS.AT_MOST_ONCE, QoS.AT_LEAST_ONCE, QoS.EXACTLY_ONCE)

Properties = tuple[tuple[str, str], ...]
Parts = tuple[bytes, bytes]


@dataclass(slots=True, eq=False)
class Message:
    """What is published, as its receivers see it."""

    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    expires: Instant | None = None
    payload_format: int = 0
    content_type: str | None = None
    response_topic: str | None = None
    correlation: bytes | None = None
    properties: Properties = ()
    near_properties: Properties = ()
    """For subscriptions with place, context or time instead: they are told more."""

    event: str | None = None
    key: str | None = None
    """Under which brokers of a federation recognise the event."""

    offset: int | None = None
    """In the journal, if it is there."""

    of: int | None = None
    """The offset of the event, if this is a later copy of it: from the archive, or for whoever came into its context."""

    came: PublishPacket | None = None
    """The packet in which it came, if that says to plain subscriptions what they are to be told: it need not be made again."""

    trace: Trace | None = None
    """Nearly always nobody wants to know how long it takes."""

    publisher: str | None = None
    """The virtual identity of who published it, if that was somebody who has one."""

    _encoded: dict[tuple[object, ...], Parts] = field(default_factory=dict, repr=False)

    def parts(
        self, version: int, *, near: bool, qos: int, retain: bool, identifiers: tuple[int, ...], now: Instant
    ) -> Parts:
        """Its bytes; for a quality above 0 those before and those after the packet id, which differs for each receiver."""
        left = None if self.expires is None else max(1, -(-(self.expires - now) // MICROSECONDS))
        key = (version, near, qos, retain, identifiers, left)
        parts = self._encoded.get(key)
        if parts is None:
            if len(self._encoded) >= _MOST_FORMS:
                self._encoded.clear()
            parts = self._encoded[key] = self._cut(version, near, qos, retain, identifiers, left)
        return parts

    def _cut(
        self, version: int, near: bool, qos: int, retain: bool, identifiers: tuple[int, ...], left: int | None
    ) -> Parts:
        if self.came is not None and qos == self.qos and not (near or retain or identifiers):
            packet = self.came
        else:
            packet = PublishPacket(
                self.topic,
                self.payload,
                qos=QUALITIES[qos],
                retain=retain,
                packet_id=_ANY_PACKET_ID if qos else None,
                payload_format_indicator=self.payload_format,
                message_expiry_interval=left,
                content_type=self.content_type,
                response_topic=self.response_topic,
                correlation_data=self.correlation,
                subscription_ids=list(identifiers),
                user_properties=list(self.near_properties if near else self.properties),
            )
        data = encode(packet, version)
        if not qos:
            return data, b""
        start = 1
        while data[start] & 0x80:
            start += 1
        cut = start + 3 + int.from_bytes(data[start + 1 : start + 3])
        return data[:cut], data[cut + 2 :]


def message_of(packet: PublishPacket, topic: str, now: Instant) -> Message:
    expiry = packet.message_expiry_interval
    properties: Properties = tuple(packet.user_properties)
    return Message(
        topic,
        packet.payload,
        int(packet.qos),
        packet.retain,
        None if expiry is None else now + expiry * MICROSECONDS,
        packet.payload_format_indicator,
        packet.content_type,
        packet.response_topic,
        packet.correlation_data,
        properties,
        properties,
    )


def size_of(packet: PublishPacket, topic: str) -> int:
    """Bytes of what a publish brings, roughly."""
    more = (packet.content_type, packet.response_topic, packet.correlation_data)
    return len(packet.payload) + len(topic) + _length(packet.user_properties) + _lengths(more)


def size_of_kept(message: Message) -> int:
    """The same of a message.  What subscriptions with place are told is mostly what the others are told, and then the same texts."""
    properties = max(_length(message.properties), _length(message.near_properties))
    more = (message.content_type, message.response_topic, message.correlation)
    return len(message.payload) + len(message.topic) + properties + _lengths(more)


def _length(properties: Iterable[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) for name, value in properties)


def _lengths(parts: Iterable[str | bytes | None]) -> int:
    return sum(len(part) for part in parts if part is not None)


def with_properties(packet: PublishPacket, topic: str, properties: list[tuple[str, str]]) -> PublishPacket:
    """The same publish with other user properties, and with its topic instead of an alias."""
    return PublishPacket(
        topic,
        packet.payload,
        qos=packet.qos,
        retain=packet.retain,
        packet_id=packet.packet_id,
        duplicate=packet.duplicate,
        payload_format_indicator=packet.payload_format_indicator,
        message_expiry_interval=packet.message_expiry_interval,
        content_type=packet.content_type,
        response_topic=packet.response_topic,
        correlation_data=packet.correlation_data,
        subscription_ids=packet.subscription_ids,
        user_properties=properties,
    )
