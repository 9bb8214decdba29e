"""Reads MQTT 3.1.1 (OASIS Standard, 2014) into the packets of MQTT 5.

Section numbers are those of the 3.1.1 specification.  A reader gets the whole buffer and the bounds of one packet's
body, so that nothing but payloads and texts is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import mqtt5
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode, QoS, SubAckReasonCode

from nearcast.errors import ProtocolError

LEVEL: Final = 4
"""What CONNECT calls the protocol's version."""

NO_EXPIRY: Final = 0xFFFF_FFFF
"""A session that is not clean has no end (3.1.2.4)."""

RETURN_CODES: Final = {
    0: ConnAckReasonCode.SUCCESS,
    1: ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION,
    2: ConnAckReasonCode.CLIENT_ID_NOT_VALID,
    3: ConnAckReasonCode.SERVER_UNAVAILABLE,
    4: ConnAckReasonCode.BAD_USER_NAME_OR_PASSWORD,
    5: ConnAckReasonCode.NOT_AUTHORIZED,
}
"""Of CONNACK (table 3.1)."""

_MALFORMED: Final = int(DisconnectReasonCode.MALFORMED_PACKET)
_PROTOCOL: Final = int(DisconnectReasonCode.PROTOCOL_ERROR)
_QOS: Final = (QoS.AT_MOST_ONCE, QoS.AT_LEAST_ONCE, QoS.EXACTLY_ONCE)
_WILDCARDS: Final = frozenset("+#\0")

Reader = Callable[[bytes, int, int], mqtt5.Packet]


def read(data: bytes, first: int, start: int, end: int) -> mqtt5.Packet:
    """The packet with first byte ``first`` and the body ``data[start:end]``, or ``ProtocolError``."""
    if first & 0xF0 == 0x30:
        return read_publish(data, first, start, end)
    reader = _READERS.get(first)
    if reader is None:
        raise ProtocolError(f"no packet of MQTT 3.1.1 begins with 0x{first:02x}", _MALFORMED)
    return reader(data, start, end)


def text(data: bytes, start: int, end: int) -> tuple[str, int]:
    """The UTF-8 text at ``start`` and where it ends (1.5.3)."""
    after = start + 2
    if after > end:
        raise ProtocolError("the packet ends within the length of a text", _MALFORMED)
    stop = after + (data[start] << 8) + data[start + 1]
    if stop > end:
        raise ProtocolError("the packet ends within a text", _MALFORMED)
    try:
        decoded = data[after:stop].decode()  # refuses lone surrogates [MQTT-1.5.3-1]
    except UnicodeDecodeError:
        raise ProtocolError("a text of the packet is not valid UTF-8", _MALFORMED) from None
    if "\0" in decoded:
        raise ProtocolError("a text of the packet holds a NUL character", _MALFORMED)
    return decoded, stop


def read_publish(data: bytes, first: int, start: int, end: int) -> mqtt5.PublishPacket:
    after = start + 2
    if after > end:
        raise ProtocolError("the PUBLISH ends before its topic", _MALFORMED)
    stop = after + (data[start] << 8) + data[start + 1]
    if stop > end:
        raise ProtocolError("the PUBLISH ends within its topic", _MALFORMED)
    try:
        topic = data[after:stop].decode()
        if "\0" in topic:
            raise ProtocolError("the topic holds a NUL character", _MALFORMED)
        if first == 0x30:
            return mqtt5.PublishPacket(topic, data[stop:end])
        qos = first >> 1 & 3
        if qos == 0:
            if first & 8:
                raise ProtocolError("a PUBLISH of QoS 0 cannot be a duplicate [MQTT-3.3.1-2]", _PROTOCOL)
            return mqtt5.PublishPacket(topic, data[stop:end], retain=True)
        if qos == 3:
            raise ProtocolError("there is no QoS 3 [MQTT-3.3.1-4]", _MALFORMED)
        packet_id, stop = _packet_id(data, stop, end)
        return mqtt5.PublishPacket(
            topic,
            data[stop:end],
            qos=_QOS[qos],
            packet_id=packet_id,
            retain=bool(first & 1),
            duplicate=bool(first & 8),
        )
    except UnicodeDecodeError:
        raise ProtocolError("the topic is not valid UTF-8", _MALFORMED) from None
    except ValueError:  # mqtt5 refuses what is empty or holds a wildcard
        raise ProtocolError(f"{topic!r:.60} is no topic: empty, or with a wildcard [MQTT-3.3.2-2]", _PROTOCOL) from None


def _packet_id(data: bytes, start: int, end: int) -> tuple[int, int]:
    after = start + 2
    if after > end:
        raise ProtocolError("the packet ends before its packet identifier", _MALFORMED)
    packet_id = (data[start] << 8) + data[start + 1]
    if packet_id == 0:
        raise ProtocolError("a packet identifier is not 0 [MQTT-2.3.1-1]", _PROTOCOL)
    return packet_id, after


def _only_packet_id(data: bytes, start: int, end: int) -> int:
    packet_id, after = _packet_id(data, start, end)
    _finished(after, end)
    return packet_id


def _finished(after: int, end: int) -> None:
    if after != end:
        raise ProtocolError(f"{end - after} bytes follow the end of the packet", _MALFORMED)


def _binary(data: bytes, start: int, end: int) -> tuple[bytes, int]:
    after = start + 2
    stop = after + (data[start] << 8) + data[start + 1] if after <= end else end + 1
    if stop > end:
        raise ProtocolError("the packet ends within a field of bytes", _MALFORMED)
    return data[after:stop], stop


def _connect(data: bytes, start: int, end: int) -> mqtt5.ConnectPacket:
    protocol, at = text(data, start, end)
    if protocol != "MQTT" or at + 4 > end or data[at] != LEVEL:
        raise ProtocolError("this is no CONNECT of MQTT 3.1.1", int(ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION))
    flags = data[at + 1]
    keep_alive = (data[at + 2] << 8) + data[at + 3]
    _check_connect_flags(flags)
    client_id, at = text(data, at + 4, end)
    clean = bool(flags & 0x02)
    if not client_id and not clean:
        raise ProtocolError(
            "an empty client id needs a clean session [MQTT-3.1.3-8]", int(ConnAckReasonCode.CLIENT_ID_NOT_VALID)
        )
    will = username = password = None
    if flags & 0x04:
        topic, at = text(data, at, end)
        if not topic or not _WILDCARDS.isdisjoint(topic):
            raise ProtocolError(f"{topic!r:.60} is no topic for a will", int(ConnAckReasonCode.TOPIC_NAME_INVALID))
        payload, at = _binary(data, at, end)
        will = mqtt5.Will(topic, payload=payload, qos=_QOS[flags >> 3 & 3], retain=bool(flags & 0x20))
    if flags & 0x80:
        username, at = text(data, at, end)
    if flags & 0x40:
        password, at = _binary(data, at, end)
    _finished(at, end)
    return mqtt5.ConnectPacket(
        client_id,
        username=username,
        password=password,
        clean_start=clean,
        will=will,
        keep_alive=keep_alive,
        session_expiry_interval=0 if clean else NO_EXPIRY,
    )


def _check_connect_flags(flags: int) -> None:
    if flags & 0x01:
        raise ProtocolError("the reserved flag of CONNECT is set [MQTT-3.1.2-3]", _MALFORMED)
    if flags & 0x18 == 0x18:
        raise ProtocolError("a will has no QoS 3 [MQTT-3.1.2-14]", _MALFORMED)
    if not flags & 0x04 and flags & 0x38:
        raise ProtocolError("QoS or retain of a will is set, but there is none [MQTT-3.1.2-13]", _MALFORMED)
    if flags & 0x40 and not flags & 0x80:
        raise ProtocolError("a password needs a user name [MQTT-3.1.2-22]", _MALFORMED)


def _connack(data: bytes, start: int, end: int) -> mqtt5.ConnAckPacket:
    if end - start != 2 or data[start] > 1 or data[start + 1] not in RETURN_CODES:
        raise ProtocolError("a CONNACK of MQTT 3.1.1 is session present and a return code from 0 to 5", _MALFORMED)
    reason = RETURN_CODES[data[start + 1]]
    return mqtt5.ConnAckPacket(session_present=bool(data[start]), reason_code=reason)


def _subscribe(data: bytes, start: int, end: int) -> mqtt5.SubscribePacket:
    packet_id, at = _packet_id(data, start, end)
    filters = []
    while at < end:
        pattern, at = text(data, at, end)
        if not pattern:
            raise ProtocolError("a topic filter is empty [MQTT-4.7.3-1]", _PROTOCOL)
        if at >= end or data[at] > 2:
            raise ProtocolError("the QoS of a topic filter is missing or not 0, 1 or 2 [MQTT-3-8.3-4]", _MALFORMED)
        filters.append(mqtt5.TopicFilter(pattern, max_qos=_QOS[data[at]], retain_as_published=False))
        at += 1
    if not filters:
        raise ProtocolError("a SUBSCRIBE holds at least one topic filter [MQTT-3.8.3-3]", _PROTOCOL)
    return mqtt5.SubscribePacket(packet_id, filters)


def _suback(data: bytes, start: int, end: int) -> mqtt5.SubAckPacket:
    packet_id, at = _packet_id(data, start, end)
    codes = []
    for code in data[at:end]:
        if code not in (0, 1, 2, 0x80):
            raise ProtocolError(f"0x{code:02x} is no return code of SUBACK [MQTT-3.9.3-2]", _MALFORMED)
        codes.append(SubAckReasonCode(code))
    if not codes:
        raise ProtocolError("the SUBACK holds no return code", _MALFORMED)
    return mqtt5.SubAckPacket(packet_id, codes)


def _unsubscribe(data: bytes, start: int, end: int) -> mqtt5.UnsubscribePacket:
    packet_id, at = _packet_id(data, start, end)
    patterns = []
    while at < end:
        pattern, at = text(data, at, end)
        if not pattern:
            raise ProtocolError("a topic filter is empty [MQTT-4.7.3-1]", _PROTOCOL)
        patterns.append(pattern)
    if not patterns:
        raise ProtocolError("an UNSUBSCRIBE holds at least one topic filter [MQTT-3.10.3-2]", _PROTOCOL)
    return mqtt5.UnsubscribePacket(packet_id, patterns)


def _empty(packet: mqtt5.Packet) -> Reader:
    def reader(_data: bytes, start: int, end: int) -> mqtt5.Packet:
        _finished(start, end)
        return packet

    return reader


# By the first byte: type and flags, of which every value but these is forbidden [MQTT-2.2.2-2].
_READERS: Final[dict[int, Reader]] = {
    0x10: _connect,
    0x20: _connack,
    0x40: lambda data, start, end: mqtt5.PubAckPacket(_only_packet_id(data, start, end)),
    0x50: lambda data, start, end: mqtt5.PubRecPacket(_only_packet_id(data, start, end)),
    0x62: lambda data, start, end: mqtt5.PubRelPacket(_only_packet_id(data, start, end)),
    0x70: lambda data, start, end: mqtt5.PubCompPacket(_only_packet_id(data, start, end)),
    0x82: _subscribe,
    0x90: _suback,
    0xA2: _unsubscribe,
    0xB0: lambda data, start, end: mqtt5.UnsubAckPacket(_only_packet_id(data, start, end), []),
    0xC0: _empty(mqtt5.PingReqPacket()),
    0xD0: _empty(mqtt5.PingRespPacket()),
    0xE0: _empty(mqtt5.DisconnectPacket()),
}
