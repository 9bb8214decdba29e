"""Packets out of a stream of bytes, in MQTT 5 or 3.1.1, and back.

The reader sees every byte that comes in, so it is written for speed: a whole packet in one chunk is read where it lies,
and what is checked of every PUBLISH is what cannot be left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import mqtt5
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode

from nearcast.errors import ProtocolError
from nearcast.mqtt import checks5, codec3
from nearcast.mqtt.texts5 import check_texts

V311: Final = 4
V5: Final = 5
LARGEST_PACKET: Final = 268_435_455 + 5
"""Bytes that MQTT itself allows."""

_CONNECT: Final = 0x10
_PUBLISH: Final = 0x30
_DUPLICATES_OF_QOS_0: Final = (0x38, 0x39)
_ACKNOWLEDGEMENTS: Final = frozenset({0x40, 0x50, 0x62, 0x70})
_MALFORMED: Final = int(DisconnectReasonCode.MALFORMED_PACKET)
_PROTOCOL: Final = int(DisconnectReasonCode.PROTOCOL_ERROR)
_TOO_LARGE: Final = int(DisconnectReasonCode.PACKET_TOO_LARGE)
_UNSUPPORTED: Final = int(ConnAckReasonCode.UNSUPPORTED_PROTOCOL_VERSION)
_read5: Final = mqtt5.read


@dataclass(frozen=True, slots=True)
class ReaderStatistics:
    version: int | None
    held: int
    """Bytes of a packet that has not come in whole."""


class PacketReader:
    """Turns the chunks of one connection into packets.

    Without a ``version`` it is a server's: the first packet must be a CONNECT, which says the version, and there is no
    second one.  With a version it is a client's.
    """

    def __init__(self, largest: int = LARGEST_PACKET, version: int | None = None) -> None:
        self.largest = largest
        """Bytes that a packet may have; may be changed at any time."""
        self.version = version
        self._from_client = version is None
        self._allowed = checks5.FROM_CLIENTS if self._from_client else checks5.FROM_SERVERS
        self._refusal_version: int | None = version
        self._held: list[bytes] = []
        self._held_size = 0
        self._needed = 0

    def statistics(self) -> ReaderStatistics:
        return ReaderStatistics(self.version, self._held_size)

    @property
    def holds(self) -> bool:
        """Whether a part of a packet has come."""
        return self._held_size > 0

    def packets(self, data: bytes) -> Iterator[mqtt5.Packet]:
        """The packets that are complete with this chunk.

        What comes after a ``ProtocolError`` is not read any more: answer with ``refusal`` and close.  The iterator must be
        used up before the next chunk is given.
        """
        if self._held_size:
            self._held.append(data)
            self._held_size += len(data)
            if self._held_size < self._needed:
                return iter(())
            data = b"".join(self._held)
            self._held.clear()
            self._held_size = 0
        if self.version == V5:
            return self._packets5(data, 0)
        if self.version == V311:
            return self._packets3(data, 0)
        return self._first_packets(data)

    def refusal(self, error: ProtocolError, *, connected: bool) -> bytes:
        """What a server answers before it closes: CONNACK until the client is connected, DISCONNECT afterwards.

        Nothing to whoever never spoke MQTT (MQTT 5, 4.13).
        """
        if self._refusal_version is None:
            return b""
        if connected:
            return encode(
                mqtt5.DisconnectPacket(reason_code=_disconnect_reason(error.reason), reason_str=str(error)),
                self._refusal_version,
            )
        return encode(
            mqtt5.ConnAckPacket(reason_code=_connack_reason(error.reason), reason_str=str(error)), self._refusal_version
        )

    def _packets5(self, data: bytes, at: int) -> Iterator[mqtt5.Packet]:
        view = memoryview(data)
        size = len(data)
        ascii_only = data.isascii()
        packet: Any  # the first byte says of which class
        while at < size:
            first = data[at]
            try:
                if not ascii_only and not _has_ascii_head(data, first, at):
                    _check_texts(data, at, size)
                packet, used = _read5(view[at:] if at else view)
            except IndexError:
                self._hold(data, at, size)
                return
            except ValueError as error:
                raise checks5.malformed(error) from None
            except ProtocolError:
                raise
            except BaseException as error:  # noqa: BLE001 - a panic is no Exception
                raise _panicked(error) from None
            if used > self.largest:
                raise self._too_large(used)
            if first & 0xF0 == _PUBLISH:
                # Only what most messages do not have needs a closer look.
                topic = packet.topic
                if (
                    "\0" in topic
                    or "+" in topic
                    or "#" in topic
                    or packet.packet_id == 0
                    or first in _DUPLICATES_OF_QOS_0
                    or packet.user_properties
                    or packet.subscription_ids
                    or packet.payload_format_indicator
                    or packet.response_topic is not None
                    or packet.content_type is not None
                ):
                    if packet.write() != data[at : at + used]:
                        # Written another way than mqtt5 does: perhaps its properties go on beyond their length, which
                        # mqtt5 does not see.
                        _check_texts(data, at, size)
                    checks5.check_publish(packet, first, from_client=self._from_client)
            elif first not in _ACKNOWLEDGEMENTS or used != 4 or not (data[at + 2] or data[at + 3]):
                self._check_other(packet, data, at, at + used)
            at += used
            yield packet

    def _packets3(self, data: bytes, at: int) -> Iterator[mqtt5.Packet]:
        size = len(data)
        while at < size:
            first = data[at]
            header = _header(data, at, size)
            if header is None or header[1] > size:
                self._hold(data, at, size)
                return
            start, end = header
            if end - at > self.largest:
                raise self._too_large(end - at)
            at = end
            if first & 0xF0 == _PUBLISH:
                yield codec3.read_publish(data, first, start, end)
            elif first >> 4 in self._allowed and first != _CONNECT:
                yield codec3.read(data, first, start, end)
            else:
                raise _misplaced(first)

    def _first_packets(self, data: bytes) -> Iterator[mqtt5.Packet]:
        """The CONNECT, which says the version, and what follows it."""
        if not data:
            return
        if data[0] != _CONNECT:
            raise ProtocolError("the first packet of a connection is a CONNECT (3.1)", _PROTOCOL)
        header = _header(data, 0, len(data))
        if header is None or header[1] > len(data):
            self._hold(data, 0, len(data))
            return
        start, end = header
        if end > self.largest:
            raise self._too_large(end)
        level = _level(data, start, end)
        self._refusal_version = V5 if level >= V5 else V311
        if level not in (V311, V5):
            raise ProtocolError(f"MQTT of level {level} is not spoken here; connect with MQTT 5 or 3.1.1", _UNSUPPORTED)
        packet = self._connect5(data, start, end) if level == V5 else codec3.read(data, _CONNECT, start, end)
        self.version = level
        yield packet
        yield from self._packets5(data, end) if level == V5 else self._packets3(data, end)

    def _connect5(self, data: bytes, start: int, end: int) -> mqtt5.Packet:
        check_texts(data, _CONNECT, start, end)
        try:
            packet, _ = _read5(memoryview(data)[:end])
        except (IndexError, ValueError) as error:
            raise checks5.malformed(ValueError(str(error))) from None
        except BaseException as error:  # noqa: BLE001 - a panic is no Exception
            raise _panicked(error) from None
        checks5.check_other(packet, data, start, end)
        return packet

    def _check_other(self, packet: mqtt5.Packet, data: bytes, at: int, end: int) -> None:
        first = data[at]
        if first >> 4 not in self._allowed or first == _CONNECT:
            raise _misplaced(first)
        header = _header(data, at, end)
        assert header is not None, "it was read already"
        if first >> 4 > 7 or end - header[0] > 3:  # not of the usual acknowledgements, which have no texts
            check_texts(data, first, header[0], end)
        checks5.check_other(packet, data, header[0], end)

    def _hold(self, data: bytes, at: int, size: int) -> None:
        """Keep the beginning of a packet, unless it would become too large."""
        header = _header(data, at, size)
        if header is None:
            self._needed = size - at + 1
        else:
            self._needed = header[1] - at
            if self._needed > self.largest:
                raise self._too_large(self._needed)
            if self._needed <= size - at:
                raise ProtocolError("the packet ends within one of its fields", _MALFORMED)
        self._held.append(data[at:])
        self._held_size = size - at

    def _too_large(self, size: int) -> ProtocolError:
        return ProtocolError(f"a packet of {size} bytes is larger than the {self.largest} allowed here", _TOO_LARGE)


def encode(packet: mqtt5.Packet, version: int) -> bytes:
    """The bytes of the packet in that version; none if the version has no such packet."""
    return packet.write() if version == V5 else codec3.write(packet)


def _header(data: bytes, at: int, size: int) -> tuple[int, int] | None:
    """Where the body of the packet at ``at`` begins and ends; ``None`` if its length has not come in whole."""
    at += 1
    if at >= size:
        return None
    length = data[at]
    if length < 0x80:
        return at + 1, at + 1 + length
    length &= 0x7F
    for shift in (7, 14, 21):
        at += 1
        if at >= size:
            return None
        byte = data[at]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return at + 1, at + 1 + length
    raise ProtocolError("the length of the packet has more than four bytes", _MALFORMED)


def _has_ascii_head(data: bytes, first: int, at: int) -> bool:
    """Whether all texts of the packet are ASCII, as far as that is quickly seen: mostly only the payload is not.

    ``IndexError`` if the packet has not come in so far.
    """
    length = data[at + 1]
    if first & 0xF0 == _PUBLISH:
        if length >= 0x80:
            if data[at + 2] >= 0x80:
                return False
            at += 1  # a length of two bytes
        start = at + 4  # of the topic
        stop = start + (data[start - 2] << 8) + data[start - 1]  # of the topic
        if first & 0x06:
            stop += 2  # the packet identifier, which need not be ASCII
            return data[stop] == 0 and data[start : stop - 2].isascii()
        size = data[stop]  # of the properties
        return size < 0x80 and data[start : stop + 1 + size].isascii()
    return length == 2 and first in _ACKNOWLEDGEMENTS


def _check_texts(data: bytes, at: int, size: int) -> None:
    header = _header(data, at, size)
    if header is None or header[1] > size:
        raise IndexError  # as mqtt5 does
    check_texts(data, data[at], *header)


def _level(data: bytes, start: int, end: int) -> int:
    """The protocol level of a CONNECT; MQTT 3.1 calls itself MQIsdp."""
    body = data[start:end]
    for name in (b"\x00\x04MQTT", b"\x00\x06MQIsdp"):
        if body.startswith(name) and len(body) > len(name):
            level = body[len(name)]
            return level if name.endswith(b"MQTT") else min(level, 3)
    raise ProtocolError("the CONNECT is not one of MQTT", _MALFORMED)


def _misplaced(first: int) -> ProtocolError:
    kind = "a second CONNECT" if first == _CONNECT else f"a packet of type {first >> 4}"
    return ProtocolError(f"{kind} cannot stand here", _PROTOCOL)


def _panicked(error: BaseException) -> BaseException:
    """``mqtt5`` panics where it finds something that it did not expect; the packet is to blame."""
    if type(error).__name__ != "PanicException":
        return error
    return ProtocolError("the packet cannot be read", _MALFORMED)


def _disconnect_reason(reason: int) -> DisconnectReasonCode:
    try:
        return DisconnectReasonCode(reason)
    except ValueError:
        return DisconnectReasonCode.PROTOCOL_ERROR


def _connack_reason(reason: int) -> ConnAckReasonCode:
    try:
        return ConnAckReasonCode(reason)
    except ValueError:
        return ConnAckReasonCode.PROTOCOL_ERROR
