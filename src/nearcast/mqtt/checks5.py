"""What MQTT 5 demands of packets and ``mqtt5`` lets pass.

Section numbers are those of the MQTT 5 specification.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mqtt5
from mqtt5 import DisconnectReasonCode

from nearcast.errors import ProtocolError

_MALFORMED: Final = int(DisconnectReasonCode.MALFORMED_PACKET)
_PROTOCOL: Final = int(DisconnectReasonCode.PROTOCOL_ERROR)
_TOPIC: Final = int(DisconnectReasonCode.TOPIC_NAME_INVALID)
_FORBIDDEN_IN_TOPICS: Final = frozenset("+#\0")

FROM_CLIENTS: Final = frozenset({1, 3, 4, 5, 6, 7, 8, 10, 12, 14, 15})
FROM_SERVERS: Final = frozenset({2, 3, 4, 5, 6, 7, 9, 11, 13, 14, 15})
"""Packet types that each side may send (table 2-1)."""

_REASONS: Final = {
    "Topic alias must be != 0": int(DisconnectReasonCode.TOPIC_ALIAS_INVALID),
    "Topic alias must be set if topic is empty": _PROTOCOL,
    "Receive maximum must be != 0": _PROTOCOL,
    "Subscription ID must be != 0": _PROTOCOL,
}


def malformed(error: ValueError) -> ProtocolError:
    """What ``mqtt5`` said, with the reason code that the specification wants for it."""
    message = str(error)
    reason = _PROTOCOL if message.startswith("Duplicate value") else _REASONS.get(message, _MALFORMED)
    return ProtocolError(f"the packet cannot be read: {message}", reason)


def check_publish(packet: mqtt5.PublishPacket, first: int, *, from_client: bool) -> None:
    """The rare cases; the reader has seen that one of them may apply."""
    if "\0" in packet.topic:
        raise ProtocolError("the topic holds a NUL character (1.5.4)", _MALFORMED)
    if "+" in packet.topic or "#" in packet.topic:
        raise ProtocolError(f"the topic {packet.topic!r:.60} holds a wildcard (3.3.2.1)", _TOPIC)
    if first & 0x0E == 0x08:
        raise ProtocolError("a PUBLISH of QoS 0 cannot be a duplicate (3.3.1.1)", _PROTOCOL)
    if packet.packet_id == 0:
        raise ProtocolError("a packet identifier is not 0 (2.2.1)", _PROTOCOL)
    if packet.payload_format_indicator > 1:
        raise ProtocolError("the payload format indicator is 0 or 1 (3.3.2.3.2)", _MALFORMED)
    if from_client and packet.subscription_ids:
        raise ProtocolError("only servers send subscription identifiers in a PUBLISH (3.3.4)", _PROTOCOL)
    response_topic = packet.response_topic
    if response_topic is not None and not _FORBIDDEN_IN_TOPICS.isdisjoint(response_topic):
        raise ProtocolError("the response topic holds a wildcard or NUL (3.3.2.3.5)", _PROTOCOL)
    for name, value in packet.user_properties:
        if "\0" in name or "\0" in value:
            raise ProtocolError("a user property holds a NUL character (1.5.4)", _MALFORMED)
    if "\0" in (packet.content_type or ""):
        raise ProtocolError("the content type holds a NUL character (1.5.4)", _MALFORMED)


def check_other(packet: mqtt5.Packet, data: bytes, start: int, end: int) -> None:
    """Of any packet but PUBLISH, with the body ``data[start:end]``."""
    check = _CHECKS.get(type(packet))
    if check is not None:
        check(packet, data, start, end)


def _check_connect(packet: mqtt5.ConnectPacket, data: bytes, start: int, _end: int) -> None:
    flags = data[start + 7]
    if flags & 0x01:
        raise ProtocolError("the reserved flag of CONNECT is set (3.1.2.3)", _MALFORMED)
    if not flags & 0x04 and flags & 0x38:
        raise ProtocolError("QoS or retain of a will is set, but there is none (3.1.2.6)", _MALFORMED)
    if packet.max_packet_size == 0:
        raise ProtocolError("the maximum packet size is not 0 (3.1.2.11.4)", _PROTOCOL)
    if packet.authentication_data is not None and packet.authentication_method is None:
        raise ProtocolError("authentication data needs an authentication method (3.1.2.11.10)", _PROTOCOL)
    will = packet.will
    if will is None:
        return
    if not will.topic or not _FORBIDDEN_IN_TOPICS.isdisjoint(will.topic):
        raise ProtocolError(f"{will.topic!r:.60} is no topic for a will (3.1.3.3)", _TOPIC)
    if will.payload_format_indicator > 1:
        raise ProtocolError("the payload format indicator of the will is 0 or 1 (3.1.3.2.3)", _MALFORMED)
    if will.response_topic is not None and not _FORBIDDEN_IN_TOPICS.isdisjoint(will.response_topic):
        raise ProtocolError("the response topic of the will holds a wildcard or NUL (3.1.3.2.6)", _PROTOCOL)


def _check_packet_id(packet: Any, _data: bytes, _start: int, _end: int) -> None:
    if packet.packet_id == 0:
        raise ProtocolError("a packet identifier is not 0 (2.2.1)", _PROTOCOL)


def _check_subscribe(packet: mqtt5.SubscribePacket, data: bytes, start: int, end: int) -> None:
    _check_packet_id(packet, data, start, end)
    if not packet.topic_filters:
        raise ProtocolError("a SUBSCRIBE holds at least one topic filter (3.8.3)", _PROTOCOL)
    for topic_filter in packet.topic_filters:
        if not topic_filter.pattern:
            raise ProtocolError("a topic filter is empty (4.7.3)", _PROTOCOL)
        if topic_filter.no_local and topic_filter.pattern.startswith("$share/"):
            raise ProtocolError("a shared subscription cannot be 'no local' (3.8.3.1)", _PROTOCOL)
    # The options are the last byte of each filter, and the last filter ends the packet.
    at = end
    for topic_filter in reversed(packet.topic_filters):
        if data[at - 1] & 0xC0:
            raise ProtocolError("reserved bits of the subscription options are set (3.8.3.1)", _MALFORMED)
        at -= 3 + len(topic_filter.pattern.encode())


def _check_unsubscribe(packet: mqtt5.UnsubscribePacket, data: bytes, start: int, end: int) -> None:
    _check_packet_id(packet, data, start, end)
    if not packet.patterns:
        raise ProtocolError("an UNSUBSCRIBE holds at least one topic filter (3.10.3)", _PROTOCOL)
    if not all(packet.patterns):
        raise ProtocolError("a topic filter is empty (4.7.3)", _PROTOCOL)


_CHECKS: Final[dict[type, Callable[[Any, bytes, int, int], None]]] = {
    mqtt5.ConnectPacket: _check_connect,
    mqtt5.PubAckPacket: _check_packet_id,
    mqtt5.PubRecPacket: _check_packet_id,
    mqtt5.PubRelPacket: _check_packet_id,
    mqtt5.PubCompPacket: _check_packet_id,
    mqtt5.SubscribePacket: _check_subscribe,
    mqtt5.SubAckPacket: _check_packet_id,
    mqtt5.UnsubscribePacket: _check_unsubscribe,
    mqtt5.UnsubAckPacket: _check_packet_id,
}
