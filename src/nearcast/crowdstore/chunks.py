"""Objects that are too large for one message travel in chunks, each of which can be asked for again."""

from __future__ import annotations

from typing import Final

from nearcast.crowdstore.objects import Metadata, digest_of
from nearcast.errors import InvalidValue

CHUNK: Final = 1_024
"""Bytes: with all headers it fits into one frame of any radio of the house, 1,500 bytes and more, and below the threshold of RTS/CTS
in THYME's evaluation (6.2), so that a lost frame costs little."""


def chunk_count(size: int) -> int:
    """Of an object of that size; an empty one is one empty chunk."""
    return max(1, -(-size // CHUNK))


def chunk_of(content: bytes, number: int) -> bytes:
    """One of them; they are counted from 0."""
    if not 0 <= number < chunk_count(len(content)):
        raise InvalidValue(f"an object of {len(content)} bytes has no chunk {number}")
    return content[number * CHUNK : (number + 1) * CHUNK]


class Assembly:
    """An object that is coming in.  It takes as much room as has come: how large the object is, is only what somebody says."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata: Final = metadata
        self._count: Final = chunk_count(metadata.size)
        self._chunks: Final[dict[int, bytes]] = {}
        self._first = 0
        """All before this one are here."""

    def add(self, number: int, data: bytes) -> bool:
        """Take a chunk; false if it is of no use: not of this object, or here already."""
        if not 0 <= number < self._count or number in self._chunks or len(data) != self._length(number):
            return False
        self._chunks[number] = data
        return True

    def missing(self, most: int) -> tuple[int, ...]:
        """The first of those that have not come."""
        while self._first in self._chunks:
            self._first += 1
        found: list[int] = []
        for number in range(self._first, self._count):
            if len(found) == most:
                break
            if number not in self._chunks:
                found.append(number)
        return tuple(found)

    @property
    def size(self) -> int:
        """Bytes that have come."""
        return len(self._chunks) * CHUNK

    @property
    def complete(self) -> bool:
        return len(self._chunks) == self._count

    def content(self) -> bytes | None:
        """The object, once it is complete; none, and all is forgotten, if it is not what was published."""
        content = b"".join(self._chunks[number] for number in range(self._count))
        if digest_of(content) == self.metadata.digest:
            return content
        self._chunks.clear()
        self._first = 0
        return None

    def _length(self, number: int) -> int:
        return min(CHUNK, self.metadata.size - number * CHUNK)
