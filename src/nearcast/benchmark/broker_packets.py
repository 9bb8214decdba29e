"""The few MQTT packets that a load generator sends, as bytes: version 5 (level 5) and 3.1.1 (level 4).

Packets are encoded before the measured time, so speed does not matter here; and not by the broker's own codec, so
that a mistake of it does not cancel out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nearcast.errors import BenchmarkError

CONNACK: Final = 2
PUBLISH: Final = 3
PUBACK: Final = 4
SUBACK: Final = 9
UNSUBACK: Final = 11
PINGRESP: Final = 13
PING: Final = bytes((0xC0, 0))
NUMBER_BYTES: Final = 8

_USER_PROPERTY: Final = 0x26
_CLEAN_START: Final = 0x02
Properties = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Dialect:
    level: int

    def connect(self, name: str, keep_alive: int = 0) -> bytes:
        return _packet(
            0x10,
            _text("MQTT")
            + bytes((self.level, _CLEAN_START))
            + keep_alive.to_bytes(2, "big")
            + self._properties()
            + _text(name),
        )

    def subscribe(
        self, filters: Sequence[str], qos: int = 0, properties: Properties = (), identifier: int = 1
    ) -> bytes:
        wanted = b"".join(_text(each) + bytes((qos,)) for each in filters)
        return _packet(0x82, identifier.to_bytes(2, "big") + self._properties(properties) + wanted)

    def unsubscribe(self, filters: Sequence[str], identifier: int = 2) -> bytes:
        return _packet(0xA2, identifier.to_bytes(2, "big") + self._properties() + b"".join(map(_text, filters)))

    def publish(
        self, topic: str, payload: bytes, qos: int = 0, identifier: int = 0, properties: Properties = ()
    ) -> bytes:
        numbered = identifier.to_bytes(2, "big") if qos else b""
        return _packet(0x30 | qos << 1, _text(topic) + numbered + self._properties(properties) + payload)

    def _properties(self, properties: Properties = ()) -> bytes:
        if self.level < 5:
            if properties:
                raise BenchmarkError("MQTT 3.1.1 has no properties")
            return b""
        encoded = b"".join(bytes((_USER_PROPERTY,)) + _text(name) + _text(value) for name, value in properties)
        return _length(len(encoded)) + encoded


class Stamps:
    """Blocks of publishes to one topic, alike but for the number that each payload begins with (and its packet id)."""

    def __init__(self, dialect: Dialect, topic: str, payload: int, block: int, qos: int = 0) -> None:
        one = dialect.publish(topic, bytes(payload), qos, 1)
        self.block = block
        self._bytes = np.tile(np.frombuffer(one, np.uint8), (block, 1))
        number = len(one) - payload
        self._number = self._bytes[:, number : number + NUMBER_BYTES]
        # The packet id stands before the properties, of which there are none.
        identifier = number - (1 if dialect.level >= 5 else 0) - 2
        self._identifier = self._bytes[:, identifier : identifier + 2] if qos else None

    def take(self, first: int, count: int | None = None) -> bytes:
        """Publishes number ``first`` and the following, ``count`` of them or a whole block."""
        numbers = np.arange(first, first + self.block)
        self._number[:] = _big_endian(numbers, ">u8", NUMBER_BYTES)
        if self._identifier is not None:
            self._identifier[:] = _big_endian(packet_identifiers(numbers), ">u2", 2)
        return self._bytes[: self.block if count is None else count].tobytes()


def packet_identifiers(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 to 65,535, again and again: far more than are ever in flight."""
    return numbers % 65_535 + 1


def acknowledgements(identifiers: NDArray[np.int64]) -> bytes:
    """A PUBACK for each."""
    packets = np.empty((len(identifiers), 4), np.uint8)
    packets[:, 0], packets[:, 1] = PUBACK << 4, 2
    packets[:, 2:] = _big_endian(identifiers, ">u2", 2)
    return packets.tobytes()


def numbered(number: int, size: int) -> bytes:
    """A payload of that size which begins with the number."""
    return number.to_bytes(NUMBER_BYTES, "big").ljust(size, b"\0")


def _big_endian(numbers: NDArray[np.int64], kind: str, width: int) -> NDArray[np.uint8]:
    return numbers.astype(kind).view(np.uint8).reshape(-1, width)


def _packet(first: int, rest: bytes) -> bytes:
    return bytes((first,)) + _length(len(rest)) + rest


def _length(value: int) -> bytes:
    encoded = bytearray()
    while True:
        value, low = divmod(value, 128)
        encoded.append(low | 128 if value else low)
        if not value:
            return bytes(encoded)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded
