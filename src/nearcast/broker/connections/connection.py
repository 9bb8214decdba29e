"""One network connection: bytes in, bytes out.

What is written during one turn of the loop goes out with one system call at its end: system calls, not Python, are what
limits a broker here.  A connection that takes nothing is *congested*: messages of quality 0 are dropped when its share of
memory is full, others wait in the session, and if that lasts too long it is cut off.  Nobody else notices.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from mqtt5 import Packet, PubRelPacket

from nearcast.broker.access import Peer
from nearcast.broker.access.certificates import certificate_name
from nearcast.errors import ProtocolError
from nearcast.model.time import Instant
from nearcast.mqtt.stream import PacketReader, encode

log: Final = logging.getLogger(__name__)
LARGEST_CONNECT: Final = 256 * 1024
"""Bytes that somebody may send of whom nothing is known: enough for a will, and a token."""

HIGH_WATER: Final = 256 * 1024
"""Bytes that the operating system has not taken yet, beyond which a connection counts as congested."""


def _nothing() -> None: ...


class Flusher:
    """Lets everything that was written during a turn of the loop go out at its end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, settle: Callable[[], None] = _nothing) -> None:
        self._loop: Final = loop
        self._waiting: list[Connection] = []
        self._expected = False
        self.settle = settle
        """What is to be done first at the end of a turn: it may write."""

    def add(self, connection: Connection) -> None:
        self._waiting.append(connection)
        if not self._expected:
            self.expect()

    def expect(self) -> None:
        """There will be something to do at the end of this turn."""
        if not self._expected:
            self._expected = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        try:
            self.settle()
        finally:
            self._expected = False
            waiting, self._waiting = self._waiting, []
            for connection in waiting:
                try:
                    connection.flush()
                except Exception:  # whatever it is, the others are not to wait for ever
                    log.exception("what was said to %s is lost, and so it is cut off", connection.peer.address)
                    connection.abort()


class Listener(Protocol):
    """Whoever hears what comes over a connection."""

    def heard(self, packet: Packet) -> None:
        """A packet has come."""

    def misunderstood(self, error: ProtocolError) -> None:
        """What came is not MQTT; nothing more is read."""

    def lost(self) -> None:
        """The connection is gone."""

    def uncongested(self) -> None:
        """There is room again."""


@dataclass(slots=True)
class Traffic:
    """Bytes and packets of all connections."""

    bytes_in: int = 0
    bytes_out: int = 0
    packets_in: int = 0


@dataclass(frozen=True, slots=True)
class Terms:
    """What every connection of a listener is given."""

    flusher: Flusher
    traffic: Traffic
    now: Callable[[], Instant]
    largest_packet: int
    most_output: int
    listen: Callable[[Connection], Listener]


class Connection(asyncio.Protocol):
    protocol: ClassVar = "mqtt"

    __slots__ = (
        "_closing",
        "_listener",
        "_out",
        "_reader",
        "_terms",
        "_unflushed",
        "closing_since",
        "congested",
        "congested_since",
        "heard_at",
        "partial_since",
        "peer",
        "transport",
        "version",
    )

    def __init__(self, terms: Terms, *, tls: bool = False) -> None:
        self._terms: Final = terms
        self._reader: Final = PacketReader(min(terms.largest_packet, LARGEST_CONNECT))
        self.partial_since: Instant = 0
        """Since when a packet has been coming; 0: none is."""

        self._out: list[bytes] = []
        self._unflushed = 0
        """Bytes of these."""

        self._closing = False
        self.closing_since: Instant = 0
        self.version = 5
        self.congested = False
        self.congested_since: Instant = 0
        self.heard_at: Instant = terms.now()
        self.peer = Peer("", 0, tls, None)
        self.transport: asyncio.Transport
        self._listener: Listener

    # From the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]  # uvloop's is none of asyncio's class
        transport.set_write_buffer_limits(high=HIGH_WATER)  # type: ignore[attr-defined]
        self.peer = _peer_of(transport, self.peer.tls)
        self._listener = self._terms.listen(self)

    def data_received(self, data: bytes) -> None:
        self._terms.traffic.bytes_in += len(data)
        self.heard_at = self._terms.now()
        self.understand(data)

    def understand(self, data: bytes) -> None:
        """MQTT, however it came."""
        if self._closing:
            return
        reader, listener = self._reader, self._listener
        complete = False
        try:
            for packet in reader.packets(data):
                complete = True
                self._terms.traffic.packets_in += 1
                self.version = reader.version or self.version
                reader.largest = self._terms.largest_packet
                listener.heard(packet)
                if self._closing:
                    return
        except ProtocolError as error:
            listener.misunderstood(error)
            return
        if not reader.holds:
            self.partial_since = 0
        elif complete or not self.partial_since:
            self.partial_since = self.heard_at

    def connection_lost(self, _error: Exception | None) -> None:
        self._closing = True
        self._listener.lost()
        del self._listener  # they know each other: only the garbage collector would find them, and it looks rarely

    def pause_writing(self) -> None:
        self.congested, self.congested_since = True, self._terms.now()

    def resume_writing(self) -> None:
        self.congested = False
        if not self._closing:
            self._listener.uncongested()

    # To the client

    def write(self, data: bytes) -> None:
        """Bytes of a packet: they go out at the end of this turn of the loop."""
        out = self._out
        if not out:
            self._terms.flusher.add(self)
        out.append(data)
        self._unflushed += len(data)
        if self._unflushed > HIGH_WATER:
            self.flush()  # so that a turn in which much is said learns of congestion before it has said it all

    def write_all(self, packets: list[bytes]) -> None:
        """The same for many of them.  They are not joined before they go out: all who get the same share it till then."""
        if packets:
            if not self._out:
                self._terms.flusher.add(self)
            self._out += packets
            self._unflushed += sum(map(len, packets))
            if self._unflushed > HIGH_WATER:
                self.flush()

    def send(self, packet: Packet | PubRelPacket) -> None:
        self.write(encode(packet, self.version))

    def flush(self) -> None:
        out, self._out, self._unflushed = self._out, [], 0
        if out and not self.transport.is_closing():
            data = out[0] if len(out) == 1 else b"".join(out)
            self._terms.traffic.bytes_out += len(data)
            self.put(data)
            if self.congested:
                self.check_memory()

    def check_memory(self) -> None:
        """Messages wait when a client takes nothing; who asks and asks and takes no answer either has to go."""
        most = 2 * self._terms.most_output + self._terms.largest_packet
        if self.transport.get_write_buffer_size() > most:
            self.abort()

    def put(self, data: bytes) -> None:
        """Hand bytes to the network."""
        self.transport.write(data)

    def has_room(self) -> bool:
        """Whether a message of quality 0 may still be added although the client takes nothing at present."""
        return self._unflushed + self.transport.get_write_buffer_size() < self._terms.most_output

    def refuse(self, error: ProtocolError, *, connected: bool) -> None:
        """Say why, and close."""
        answer = self._reader.refusal(error, connected=connected)
        if answer:
            self.write(answer)
        self.close()

    def close(self) -> None:
        """After what was written has gone out."""
        if not self._closing:
            self._closing, self.closing_since = True, self._terms.now()
            self.flush()
            self.transport.close()

    def abort(self) -> None:
        """At once: the other side takes nothing any more."""
        self._closing = True
        self._out, self._unflushed = [], 0
        self.transport.abort()

    def pause(self) -> None:
        """Read nothing for a while."""
        if not self._closing:
            self.transport.pause_reading()

    def go_on(self) -> None:
        if not self._closing:
            self.transport.resume_reading()

    @property
    def listener(self) -> str:
        """By which it came: mqtt, mqtts, websocket or websockets."""
        return self.protocol + ("s" if self.peer.tls else "")

    @property
    def closing(self) -> bool:
        return self._closing


def _peer_of(transport: Any, tls: bool) -> Peer:
    name = transport.get_extra_info("peername")
    certificate = transport.get_extra_info("peercert") if tls else None
    address, port = (str(name[0]), int(name[1])) if isinstance(name, tuple) else ("", 0)
    return Peer(address, port, tls, certificate_name(certificate))
