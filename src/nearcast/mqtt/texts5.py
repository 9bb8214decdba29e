"""Checks the texts of an MQTT 5 packet before ``mqtt5`` reads it.

``mqtt5`` 0.x panics on bytes that are no UTF-8 instead of raising, and takes NUL characters, both of which MQTT
forbids (MQTT 5, 1.5.4).  So the texts of a packet that holds anything but ASCII are walked over here first.
Whoever walks must find the fields within their bounds; where they are not, that is said here too, because ``mqtt5`` would
read on beyond the properties.
"""

from __future__ import annotations

from typing import Final

from mqtt5 import DisconnectReasonCode

from nearcast.errors import ProtocolError

_MALFORMED: Final = int(DisconnectReasonCode.MALFORMED_PACKET)
_TEXT, _PAIR, _BINARY, _NUMBER = -1, -2, -3, -4
# By identifier: how many bytes the value of a property has, or what it is (MQTT 5, table 2-4).
_PROPERTIES: Final = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
    **dict.fromkeys((0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F), _TEXT),
    **dict.fromkeys((0x09, 0x16), _BINARY),
    0x0B: _NUMBER,
    0x26: _PAIR,
}
# By packet type: how many bytes stand before the properties.
_BEFORE: Final = {2: 2, 4: 3, 5: 3, 6: 3, 7: 3, 8: 2, 9: 2, 10: 2, 11: 2, 14: 1, 15: 1}


def check_texts(data: bytes, first: int, start: int, end: int) -> None:
    """Raise ``ProtocolError`` if a text of the packet with the body ``data[start:end]`` is no text."""
    kind = first >> 4
    if kind == 3:
        _publish(data, first, start, end)
    elif kind == 1:
        _connect(data, start, end)
    elif kind in _BEFORE:
        at = start + _BEFORE[kind]
        if at >= end:  # the short forms, without properties
            return
        at = _properties(data, at, end)
        while kind in (8, 10) and at < end:  # the filters of SUBSCRIBE, each with a byte of options, or UNSUBSCRIBE
            at = _text(data, at, end) + (kind == 8)


def _publish(data: bytes, first: int, start: int, end: int) -> None:
    at = _text(data, start, end)
    if first & 0x06:
        at += 2
    _properties(data, at, end)


def _connect(data: bytes, start: int, end: int) -> None:
    at = _text(data, start, end)
    if at + 4 > end:
        raise _beyond()
    flags = data[at + 1]
    at = _text(data, _properties(data, at + 4, end), end)
    if flags & 0x04:
        at = _binary(data, _text(data, _properties(data, at, end), end), end)
    if flags & 0x80:
        _text(data, at, end)


def _properties(data: bytes, start: int, end: int) -> int:
    """Check the texts among the properties; where they end."""
    size, at = number(data, start, end)
    stop = at + size
    if stop > end:
        raise _beyond()
    while at < stop:
        kind = _PROPERTIES.get(data[at])
        at += 1
        if kind is None:
            raise ProtocolError(f"0x{data[at - 1]:02x} is no property (2.2.2.2)", _MALFORMED)
        if kind > 0:
            at += kind
        elif kind == _NUMBER:
            _, at = number(data, at, stop)
        elif kind == _BINARY:
            at = _binary(data, at, stop)
        else:
            at = _text(data, at, stop)
            if kind == _PAIR:
                at = _text(data, at, stop)
    if at != stop:
        raise _beyond()
    return stop


def number(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A variable byte integer and where it ends (MQTT 5, 1.5.5)."""
    value = shift = 0
    while at < end and shift < 28:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _beyond()


def _binary(data: bytes, start: int, end: int) -> int:
    if start + 2 > end:
        raise _beyond()
    stop = start + 2 + (data[start] << 8) + data[start + 1]
    if stop > end:
        raise _beyond()
    return stop


def _beyond() -> ProtocolError:
    return ProtocolError("a field of the packet goes beyond its end", _MALFORMED)


def _text(data: bytes, start: int, end: int) -> int:
    stop = _binary(data, start, end)
    try:
        text = data[start + 2 : stop].decode()
    except UnicodeDecodeError:
        raise ProtocolError("a text of the packet is not valid UTF-8", _MALFORMED) from None
    if "\0" in text:
        raise ProtocolError("a text of the packet holds a NUL character", _MALFORMED)
    return stop
