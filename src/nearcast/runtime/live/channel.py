"""A TCP connection between two ends that have proven who they are: sealed frames, in order."""

from __future__ import annotations

import asyncio
from typing import Final

from nearcast.runtime.live.secured import LENGTH, TAG, Introduction, NotUnderstood, Sealed, framed

_FAREWELL: Final = 1.0
"""Seconds for the last words."""


class Channel:
    """A connection that both ends agree on."""

    def __init__(
        self,
        other: Introduction,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        outgoing: Sealed,
        incoming: Sealed,
        *,
        called: bool,
    ) -> None:
        self.other: Final = other
        self.called: Final = called
        """By the other end."""

        self._reader: Final = reader
        self._writer: Final = writer
        self._outgoing: Final = outgoing
        self._incoming: Final = incoming

    @property
    def open(self) -> bool:
        """Whether anything can be written; that the connection is gone may be known before it is heard."""
        return not self._writer.transport.is_closing()

    @property
    def waiting(self) -> int:
        return self._writer.transport.get_write_buffer_size() if self.open else 0

    def send(self, data: bytes) -> bool:
        """Whether it is on its way, as far as is known."""
        if not self.open:
            return False
        try:
            self._writer.write(framed(self._outgoing.seal(data)))
        except (RuntimeError, OSError):  # uvloop raises where asyncio is silent
            return False
        return True

    async def receive(self, largest: int) -> bytes:
        return self._incoming.unseal(await frame(self._reader, largest + TAG))

    def close(self) -> None:
        if self.open:
            self._writer.transport.abort() if self.waiting else self._writer.close()

    async def end(self) -> None:
        """Close it when all has been taken; who takes nothing is not waited for."""
        self._writer.close()
        try:
            async with asyncio.timeout(_FAREWELL):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.transport.abort()
        except OSError:
            pass


async def frame(reader: asyncio.StreamReader, largest: int) -> bytes:
    """The next one, sealed or not."""
    length = int.from_bytes(await reader.readexactly(LENGTH), "big")
    if length > largest:
        raise NotUnderstood(f"a frame of {length} bytes; it is no broker, or is told to say too much at once")
    return await reader.readexactly(length)
