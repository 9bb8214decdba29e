"""Objects that are too large for one message travel in chunks, each of which can be asked for again."""

from __future__ import annotations

from collections.abc import Iterable
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
    """An object that is coming in."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata: Final = metadata
        self._chunks: Final[list[bytes | None]] = [None] * chunk_count(metadata.size)
        self._left = len(self._chunks)

    def add(self, number: int, data: bytes) -> bool:
        """Take a chunk; false if it is of no use: not of this object, or here already."""
        if not 0 <= number < len(self._chunks) or self._chunks[number] is not None or len(data) != self._length(number):
            return False
        self._chunks[number] = data
        self._left -= 1
        return True

    def missing(self, most: int) -> tuple[int, ...]:
        """The first of those that have not come."""
        found: list[int] = []
        for number, chunk in enumerate(self._chunks):
            if len(found) == most:
                break
            if chunk is None:
                found.append(number)
        return tuple(found)

    @property
    def complete(self) -> bool:
        return not self._left

    def content(self) -> bytes | None:
        """The object, once it is complete; none, and all is forgotten, if it is not what was published."""
        chunks: Iterable[bytes] = (chunk for chunk in self._chunks if chunk is not None)
        content = b"".join(chunks)
        if digest_of(content) == self.metadata.digest:
            return content
        self._chunks[:] = [None] * len(self._chunks)
        self._left = len(self._chunks)
        return None

    def _length(self, number: int) -> int:
        return min(CHUNK, self.metadata.size - number * CHUNK)
