"""Writes the packets of MQTT 5 as MQTT 3.1.1, leaving out what that has no words for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import mqtt5
from mqtt5 import ConnAckReasonCode

from nearcast.mqtt.codec3_reader import LEVEL, RETURN_CODES

_FAILURE: Final = 0x80
# The enumerations of mqtt5 are no integers: neither hashable nor ordered, and every member is true.
_RETURN_CODE: Final = {int(reason): code for code, reason in RETURN_CODES.items()} | {
    # What 3.1.1 has no code for, as the nearest it has (table 3.1).
    int(ConnAckReasonCode.BANNED): 5,
    int(ConnAckReasonCode.BAD_AUTHENTICATION_METHOD): 4,
    int(ConnAckReasonCode.TOPIC_NAME_INVALID): 5,
}
_UNAVAILABLE: Final = 3


def write(packet: mqtt5.Packet) -> bytes:
    """The bytes of the packet; none for what a server of 3.1.1 does not send (DISCONNECT with a reason, AUTH)."""
    return _WRITERS[type(packet)](packet)


def publish(packet: mqtt5.PublishPacket) -> bytes:
    topic = packet.topic.encode()
    qos = int(packet.qos)
    first = 0x30 | packet.duplicate << 3 | qos << 1 | packet.retain
    head = len(topic).to_bytes(2, "big") + topic
    if qos:
        head += (packet.packet_id or 0).to_bytes(2, "big")
    return _framed(first, head + packet.payload)


def _framed(first: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0x80:
        return bytes((first, size)) + body
    head = bytearray((first,))
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head) + body


def _field(content: str | bytes) -> bytes:
    raw = content.encode() if isinstance(content, str) else content  # mqtt5 has seen that it is not too long
    return len(raw).to_bytes(2, "big") + raw


def _connect(packet: mqtt5.ConnectPacket) -> bytes:
    will = packet.will
    flags = packet.clean_start << 1
    parts = [_field(packet.client_id)]
    if will is not None:
        flags |= 0x04 | int(will.qos) << 3 | will.retain << 5
        parts += [_field(will.topic), _field(will.payload or b"")]
    if packet.username is not None:
        flags |= 0x80
        parts.append(_field(packet.username))
    if packet.password is not None:
        flags |= 0x40
        parts.append(_field(packet.password))
    head = b"\x00\x04MQTT" + bytes((LEVEL, flags)) + packet.keep_alive.to_bytes(2, "big")
    return _framed(0x10, head + b"".join(parts))


def _connack(packet: mqtt5.ConnAckPacket) -> bytes:
    code = _RETURN_CODE.get(int(packet.reason_code), _UNAVAILABLE)
    return bytes((0x20, 2, packet.session_present and code == 0, code))  # [MQTT-3.2.2-4]


def _subscribe(packet: mqtt5.SubscribePacket) -> bytes:
    filters = b"".join(_field(one.pattern) + bytes((int(one.max_qos),)) for one in packet.topic_filters)
    return _framed(0x82, packet.packet_id.to_bytes(2, "big") + filters)


def _suback(packet: mqtt5.SubAckPacket) -> bytes:
    codes = bytes(min(int(code), _FAILURE) for code in packet.reason_codes)
    return _framed(0x90, packet.packet_id.to_bytes(2, "big") + codes)


def _unsubscribe(packet: mqtt5.UnsubscribePacket) -> bytes:
    return _framed(0xA2, packet.packet_id.to_bytes(2, "big") + b"".join(map(_field, packet.patterns)))


def _disconnect(packet: mqtt5.DisconnectPacket) -> bytes:
    # Only clients disconnect, and only without a reason; a server closes the connection (3.14).
    return b"\xe0\x00" if packet.reason_code == mqtt5.DisconnectReasonCode.NORMAL_DISCONNECTION else b""


def _acknowledgement(first: int) -> Callable[[Any], bytes]:
    def writer(packet: Any) -> bytes:
        return bytes((first, 2, packet.packet_id >> 8, packet.packet_id & 0xFF))

    return writer


_WRITERS: Final[dict[type, Callable[[Any], bytes]]] = {
    mqtt5.PublishPacket: publish,
    mqtt5.ConnectPacket: _connect,
    mqtt5.ConnAckPacket: _connack,
    mqtt5.PubAckPacket: _acknowledgement(0x40),
    mqtt5.PubRecPacket: _acknowledgement(0x50),
    mqtt5.PubRelPacket: _acknowledgement(0x62),
    mqtt5.PubCompPacket: _acknowledgement(0x70),
    mqtt5.SubscribePacket: _subscribe,
    mqtt5.SubAckPacket: _suback,
    mqtt5.UnsubscribePacket: _unsubscribe,
    mqtt5.UnsubAckPacket: _acknowledgement(0xB0),
    mqtt5.PingReqPacket: lambda _: b"\xc0\x00",
    mqtt5.PingRespPacket: lambda _: b"\xd0\x00",
    mqtt5.DisconnectPacket: _disconnect,
    mqtt5.AuthPacket: lambda _: b"",
}
