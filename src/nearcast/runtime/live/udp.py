"""Links to those nearby, by UDP: addressed to one host, or multicast to all on the same network.

A datagram is the number of the port and the message in msgpack, nothing else.  A host has one address, from which it sends
everything, and listens to the group beside it.  Multicast rather than broadcast: it works the same on the loopback interface,
where many processes of one machine are each other's neighbours, and it disturbs nobody who did not join.

What is lost on the way, nobody here can know.  So a row of ``messages`` is written by the sender when the kernel has taken
the message (outcome ``sent``, received by 0: nobody told us more), or when it has not; the receiver writes its books, and a
row of ``drops`` for what it could not use.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.links import (
    LINK_DOWN,
    NOBODY_LISTENS,
    QUEUE_FULL,
    RECEIVED,
    SENT,
    UNKNOWN_RECEIVER,
    PortedLink,
)
from nearcast.runtime.live.sockets import (
    SocketAddress,
    address_text,
    group_socket,
    is_multicast,
    is_unicast,
    own_socket,
    socket_address,
)
from nearcast.runtime.live.timers import Guard
from nearcast.runtime.messages import Message, encoded, kind_in, kind_of
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Clock, Sending

# Why a message never arrived, beside the reasons that all links share.
TOO_LARGE: Final = "too large"
NOT_UNDERSTOOD: Final = "not understood"
UNREACHABLE: Final = "unreachable"

HEADERS: Final = 28
"""Bytes that IPv4 and UDP add to every datagram."""

LARGEST: Final = 1_500 - HEADERS
"""Bytes of a datagram that Ethernet and Wi-Fi carry in one piece; of several pieces, losing one would lose them all."""

QUEUE: Final = 256
"""Messages that wait here when the kernel takes no more."""

_BURST: Final = 64
"""Datagrams read in one go: then the timers have their turn."""

_UNKNOWN_KIND: Final = "unknown"
_REASONS: Final = {
    errno.ENOBUFS: QUEUE_FULL,
    errno.ENOMEM: QUEUE_FULL,
    errno.EMSGSIZE: TOO_LARGE,
    errno.ENETDOWN: LINK_DOWN,
}


@dataclass(frozen=True, slots=True)
class UdpNetwork:
    """A network as one host sees it: the address of its interface, and the group of those nearby."""

    interface: str = "wifi"
    """The name under which bytes are counted."""

    address: str = "127.0.0.1"
    """Of the network interface, IPv4."""

    port: int = 0
    """UDP port of the host; 0: any that is free."""

    group: str = "239.255.78.67"
    """Multicast; hosts of another group are never neighbours."""

    group_port: int = 47_867

    def __post_init__(self) -> None:
        if not is_unicast(self.address):
            raise InvalidInput(f"{self.address!r} is not the IPv4 address of an interface, such as 192.168.1.20")
        if not is_multicast(self.group):
            raise InvalidInput(f"{self.group!r} is not an IPv4 multicast group, such as 239.255.0.1")
        if not 0 <= self.port < 65_536 or not 0 < self.group_port < 65_536:
            raise InvalidInput(f"UDP ports {self.port} and {self.group_port} must be within 1 to 65535 (port: or 0)")

    def attach(self, station: Station) -> UdpLink:
        """The interface of a host to this network; it is down at first."""
        return UdpLink(self, station)


@dataclass(frozen=True, slots=True)
class Station:
    """What a live link needs of the host that it belongs to."""

    host: str
    clock: Clock
    guard: Guard
    observers: Observers
    names: dict[Address, str]
    """The hosts of this process by address, for the records; filled by their links."""


@dataclass(frozen=True, slots=True)
class UdpStatistics:
    sent: int
    sent_bytes: int
    received: int
    received_bytes: int
    queued: int
    dropped: Mapping[str, int]
    """By reason, in both directions."""


class _Parcel(NamedTuple):
    receiver: Address | None
    target: SocketAddress
    kind: str
    data: bytes
    sent: Instant

    @property
    def size(self) -> int:
        return len(self.data) + HEADERS


class UdpLink(PortedLink):
    """One host's interface to a UDP network."""

    def __init__(self, network: UdpNetwork, station: Station) -> None:
        super().__init__(network.interface, station.host, station.observers, local=True)
        self.network: Final = network
        self.largest = LARGEST - 1  # the port
        self.address = address_text((network.address, network.port))
        self._station: Final = station
        self._messages: Final = station.observers.emitter("messages")
        self._drops: Final = station.observers.emitter("drops")
        self._dropped: Final[Counter[str]] = Counter()
        self._queue: Final[deque[_Parcel]] = deque()
        self._group: Final = (network.group, network.group_port)
        # Port 0 becomes a real one when the link first goes up, and stays it: who returns is found where it was.
        self._own: SocketAddress = (network.address, network.port)
        self._sockets: tuple[socket.socket, ...] = ()
        self._loop: asyncio.AbstractEventLoop | None = None

    def switch(self, on: bool) -> None:
        if on:
            self._open_sockets()
        super().switch(on)
        if not on:
            self._close_sockets()

    def post(self, to: Address | None, port: int, message: Message) -> Sending:
        if self._station.observers.watching:
            self._station.observers.refuse("send a message")
        target = self._group if to is None else socket_address(to)
        data = self.packed(bytes((port,)) + encoded(message))
        parcel = _Parcel(to, target or self._own, kind_of(message), data, self._station.clock.now())
        if not self.up:
            return self._lose(parcel, LINK_DOWN)
        if target is None:
            return self._lose(parcel, UNKNOWN_RECEIVER)
        if len(data) > LARGEST:
            return self._lose(parcel, TOO_LARGE)
        # Behind others there is no overtaking.
        outcome = None if self._queue else self._transmit(parcel)
        return self._enqueue(parcel) if outcome is None else outcome

    def packed(self, data: bytes) -> bytes:
        """The datagram for a message."""
        return data

    def unpacked(self, data: bytes) -> bytes | None:
        """The message of a datagram; none: this host cannot hear it."""
        return data

    def statistics(self) -> UdpStatistics:
        return UdpStatistics(*self.total(SENT), *self.total(RECEIVED), len(self._queue), dict(self._dropped))

    def _open_sockets(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        own = own_socket(self._own)
        try:
            group = group_socket(self._group, self.network.address)
        except BaseException:
            own.close()
            raise
        self._own = own.getsockname()
        self.address = address_text(self._own)
        self._station.names[self.address] = self.host
        self._sockets = (own, group)
        for opened in self._sockets:
            loop.add_reader(opened, self._read, opened)

    def _close_sockets(self) -> None:
        try:
            if self._queue:
                self._flush()
            while self._queue:
                self._lose(self._queue.popleft(), LINK_DOWN)
        finally:  # also if an observer raises
            for opened in self._sockets:
                if self._loop is not None:
                    self._loop.remove_reader(opened)
                    self._loop.remove_writer(opened)
                opened.close()
            self._sockets = ()
            self._queue.clear()

    def _transmit(self, parcel: _Parcel) -> Sending | None:
        """Hand it to the kernel; none if the kernel takes nothing just now."""
        try:
            self._sockets[0].sendto(parcel.data, parcel.target)
        except BlockingIOError:
            return None
        except OSError as error:
            return self._lose(parcel, _REASONS.get(error.errno or 0, UNREACHABLE))
        self.count(SENT, parcel.kind, parcel.size)
        self._note(parcel, SENT)
        return Sending.ACCEPTED

    def _enqueue(self, parcel: _Parcel) -> Sending:
        if len(self._queue) >= QUEUE:
            return self._lose(parcel, QUEUE_FULL)
        if not self._queue and self._loop is not None:
            self._loop.add_writer(self._sockets[0], self._station.guard, self._flush)
        self._queue.append(parcel)
        return Sending.QUEUED

    def _flush(self) -> None:
        while self._queue:
            parcel = self._queue.popleft()
            if self._transmit(parcel) is None:
                self._queue.appendleft(parcel)
                return
        if self._loop is not None:
            self._loop.remove_writer(self._sockets[0])

    def _read(self, opened: socket.socket) -> None:
        for _ in range(_BURST):
            try:
                # One byte more than there may be: whoever sends more is not one of us.
                data, source = opened.recvfrom(LARGEST + 1)
            except OSError:  # nothing more; or a callback has closed it
                return
            if source != self._own or opened is self._sockets[0]:  # nobody hears his own broadcasts
                self._station.guard(self._arrive, data, source)

    def _arrive(self, data: bytes, source: SocketAddress) -> None:
        size = len(data) + HEADERS
        message_bytes = self.unpacked(data) if len(data) <= LARGEST else b""
        if message_bytes is None:
            return
        if not message_bytes:
            self._drop(_UNKNOWN_KIND, NOT_UNDERSTOOD, size)
            return
        endpoint, body = self.open_ports.get(message_bytes[0]), memoryview(message_bytes)[1:]
        try:
            message = endpoint.codec.decoded(body) if endpoint else None
        except msgspec.DecodeError:
            message = None
        if endpoint is not None and message is not None:
            self.count(RECEIVED, kind_of(message), size)
            endpoint.receive(address_text(source), message)
            return
        kind = kind_in(body)
        # A message that is not for us, as in the simulated half; or no message at all.
        foreign = kind is not None and (endpoint is None or kind not in endpoint.codec.kinds)
        self._drop(kind or _UNKNOWN_KIND, NOBODY_LISTENS if foreign else NOT_UNDERSTOOD, size)

    def _lose(self, parcel: _Parcel, reason: str) -> Sending:
        self._drop(parcel.kind, reason, parcel.size)
        self._note(parcel, reason)
        return Sending.DROPPED

    def _drop(self, kind: str, reason: str, size: int) -> None:
        self._dropped[reason] += 1
        self._drops(self._station.clock.now(), self.interface, self.host, kind, reason, 1, size)

    def _note(self, parcel: _Parcel, outcome: str) -> None:
        names, to = self._station.names, parcel.receiver
        receiver = None if to is None else names.get(to, to)
        now = self._station.clock.now()
        self._messages(parcel.sent, now, self.interface, parcel.kind, self.host, receiver, parcel.size, outcome, 0)
