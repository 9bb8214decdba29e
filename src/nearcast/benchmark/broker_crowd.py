"""Many clients of one server on one thread: plain sockets, one epoll, bytes prepared beforehand.

An event loop would make an object of every chunk and call a protocol with it.  Here all connections read into one
buffer, which machine code walks over (``broker_frames``): the busier the server, the more each read brings, so that
the generator becomes cheaper per message just when it matters.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import numpy as np

from nearcast.benchmark.broker_frames import KINDS, REFUSED, Numbers, Scan, mqtt_frames
from nearcast.benchmark.broker_packets import CONNACK, PING, PINGRESP, PUBACK, PUBLISH, Dialect
from nearcast.errors import BenchmarkError

PATIENCE: Final = 60.0
"""Seconds without any byte after which something that was sent counts as lost."""

_BUFFER: Final = 1 << 20
_SMALLEST_FRAME: Final = 16
_CONNECTING_AT_ONCE: Final = 200

Arrival = Callable[["Link", Numbers, Numbers], None]


class Link:
    """One client: its number, its socket, what was begun but not finished in either direction, acknowledgements."""

    __slots__ = ("acknowledged", "began", "number", "socket", "unsent")

    def __init__(self, number: int, connection: socket.socket) -> None:
        self.number, self.socket = number, connection
        self.began, self.unsent = b"", b""
        self.acknowledged = 0


def _ignore(link: Link, numbers: Numbers, identifiers: Numbers) -> None:
    """What a crowd does with deliveries until it is told otherwise."""


class Crowd:
    """A context manager; leaving closes all connections."""

    def __init__(self, port: int, payload: int, scan: Scan = mqtt_frames, dialect: Dialect | None = None) -> None:
        self.dialect = dialect or Dialect(5)
        self.links: list[Link] = []
        self.tally = np.zeros(KINDS, np.int64)
        self.arrived: Arrival = _ignore
        self.scan = scan
        self._port, self._payload = port, payload
        self._poll = select.epoll()
        self._by_descriptor: dict[int, Link] = {}
        self._unsent: set[Link] = set()
        self._view = memoryview(bytearray(_BUFFER))
        self._buffer = np.frombuffer(self._view, np.uint8)
        self._numbers = np.empty(_BUFFER // _SMALLEST_FRAME, np.int64)
        self._identifiers = np.empty_like(self._numbers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for link in self.links:
            link.socket.close()
        self._poll.close()

    def open(self) -> Link:
        """A connection on which nothing was said yet."""
        connection = socket.create_connection(("127.0.0.1", self._port), PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        link = Link(len(self.links), connection)
        self.links.append(link)
        self._by_descriptor[connection.fileno()] = link
        self._poll.register(connection, select.EPOLLIN)
        return link

    def connect(self, names: Sequence[str]) -> list[Link]:
        """MQTT clients of these names, greeted and accepted."""
        links: list[Link] = []
        for first in range(0, len(names), _CONNECTING_AT_ONCE):
            wanted = int(self.tally[CONNACK])
            for name in names[first : first + _CONNECTING_AT_ONCE]:
                link = self.open()
                self.send(link, self.dialect.connect(name))
                links.append(link)
                wanted += 1
            self.wait(CONNACK, wanted)
        return links

    def send(self, link: Link, data: bytes) -> None:
        if link.unsent:
            link.unsent += data
            return
        try:
            sent = link.socket.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            link.unsent = data[sent:]
            self._unsent.add(link)

    def poll(self, seconds: float = 0.0) -> bool:
        """Read what is there, waiting up to that many seconds for it; was there anything?"""
        if self._unsent:
            self._send_rest()
        ready = self._poll.poll(seconds)
        for descriptor, _ in ready:
            self._read(self._by_descriptor[descriptor])
        return bool(ready)

    def wait(self, kind: int, count: int) -> None:
        """Until that many packets of the kind have come since the beginning."""
        if missing := self.hope(kind, count, PATIENCE):
            raise BenchmarkError(f"waited {PATIENCE:g} s for packets of type {kind}: {missing} of {count} did not come")
        if self.tally[REFUSED]:
            raise BenchmarkError(f"the server refused {self.tally[REFUSED]} requests")

    def hope(self, kind: int, count: int, patience: float) -> int:
        """The same, but after that many seconds of silence say how many are missing."""
        silent_since = time.perf_counter()
        while self.tally[kind] < count:
            now = time.perf_counter()
            if self.poll(0.1):
                silent_since = now
            elif now - silent_since > patience:
                return count - int(self.tally[kind])
        return 0

    def ask(self, requests: Iterable[tuple[Link, bytes]], kind: int) -> None:
        """Send each request, then wait for as many answers of the kind."""
        wanted = int(self.tally[kind])
        for link, request in requests:
            self.send(link, request)
            wanted += 1
        self.wait(kind, wanted)

    def settle(self, probe: Link) -> None:
        """Until the server has handled all that was sent before, on any connection.

        Servers serve connections in the order in which they became readable (epoll keeps a queue), so the answer to
        a ping that was sent last comes last; two pings, in case the first was served out of order within its round.
        """
        for _ in range(2):
            self.ask([(probe, PING)], PINGRESP)

    def _read(self, link: Link) -> None:
        began = link.began
        used = len(began)
        if used:
            self._view[:used] = began
        try:
            received = link.socket.recv_into(self._view[used:])
        except BlockingIOError:
            return
        if not received:
            raise BenchmarkError(f"the server closed connection {link.number}")
        tally = self.tally
        before, acknowledged = tally[PUBLISH], tally[PUBACK]
        stop = used + received
        consumed = self.scan(self._buffer, stop, self._payload, self._numbers, self._identifiers, tally)
        link.began = self._view[consumed:stop].tobytes() if consumed < stop else b""
        link.acknowledged += int(tally[PUBACK] - acknowledged)
        found = int(tally[PUBLISH] - before)
        if found:
            self.arrived(link, self._numbers[:found], self._identifiers[:found])

    def _send_rest(self) -> None:
        for link in list(self._unsent):
            with suppress(BlockingIOError):
                link.unsent = link.unsent[link.socket.send(link.unsent) :]
            if not link.unsent:
                self._unsent.discard(link)
