"""Links between hosts that know each other's address, by TCP: in order, sealed, and made anew when they break.

A frame is the number of the port and the message in msgpack, sealed (``secured``).  A connection is opened when there is something to
say to somebody, and closed when there was nothing for long.  What cannot be sent now is dropped, and its sender told so: whoever
needs more than that keeps what it said until it is answered.  Between two hosts there is one connection; if both open one at the same
time, that of the lower address stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from nearcast.errors import ConnectionFailed, InvalidInput, SetupError
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.links import LINK_DOWN, NOBODY_LISTENS, QUEUE_FULL, RECEIVED, SENT, UNKNOWN_RECEIVER, PortedLink
from nearcast.runtime.live.addresses import name_of, where
from nearcast.runtime.live.channel import Channel, frame
from nearcast.runtime.live.secured import (
    LARGEST_HELLO,
    LENGTH,
    TAG,
    Handshake,
    Introduction,
    NotUnderstood,
    WrongSecret,
    complained,
    complaint,
    framed,
)
from nearcast.runtime.live.timers import Guard
from nearcast.runtime.messages import Message, encoded, kind_in, kind_of
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Clock, Sending

log: Final = logging.getLogger(__name__)

UNREACHABLE: Final = "unreachable"
TOO_LARGE: Final = "too large"
NOT_UNDERSTOOD: Final = "not understood"

_UNKNOWN_KIND: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSettings:
    """Times are seconds."""

    handshake: float = 10.0
    """So long both ends have to say who they are."""

    silence: float = 20.0
    """A connection on which nothing came for so long is closed: it is broken, or nobody needs it."""

    retry_after: float = 0.5
    """Between two attempts to reach somebody."""

    largest: int = 64 * 1024 * 1024
    """Bytes of a frame."""

    most_waiting: int = 8 * 1024 * 1024
    """Bytes that the network has not taken; beyond, messages are dropped."""

    queued: int = 256
    """Messages that wait for a connection to be made."""

    most_strangers: int = 64
    """Connections of those who have not proven who they are."""


@dataclass(frozen=True, slots=True)
class TcpStatistics:
    connected: int
    refused: int
    """Connections that did not come about: another secret, a name that is taken, something that is no broker."""

    sent: int
    sent_bytes: int
    received: int
    received_bytes: int
    dropped: Mapping[str, int]
    """By reason, in both directions."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this end is."""

    address: Address
    instance: str
    life: int
    secret: bytes


Acceptable = Callable[[Introduction], str]
"""Whether somebody who knows the secret may be linked with; the answer is what is wrong with it, or nothing."""


class TcpLink(PortedLink):
    """One host's interface to all others that it knows the address of."""

    def __init__(
        self,
        interface: str,
        clock: Clock,
        guard: Guard,
        observers: Observers,
        acceptable: Acceptable,
        settings: TcpSettings | None = None,
    ) -> None:
        super().__init__(interface, "", observers, local=False)
        self.settings: Final = settings or TcpSettings()
        self.address = ""
        self._clock: Final = clock
        self._guard: Final = guard
        self._acceptable: Final = acceptable
        self._identity: Identity
        self._server: asyncio.Server | None = None
        self._channels: Final[dict[Address, Channel]] = {}
        self._calling: Final[dict[Address, list[tuple[str, bytes]]]] = {}
        """By address: what waits for the connection that is being made."""

        self._not_before: Final[dict[Address, int]] = {}
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._strangers: Final[dict[asyncio.StreamWriter, None]] = {}
        """In the order in which they came."""

        self._refused = 0
        self._dropped: Final[Counter[str]] = Counter()
        self._told: Final[dict[Address, str]] = {}
        """By address: what was wrong last, so that it is told once."""

    # Coming and going

    async def listen(self, host: str, port: int) -> int:
        """Open the port (0: any that is free), and say which it is."""
        try:
            self._server = await asyncio.start_server(self._came, host, port, limit=1 << 20)
        except OSError as error:
            raise SetupError(
                f"cannot listen for other brokers on {host}:{port}: {error.strerror or error}; "
                "is another broker running? Choose another port (--federate)"
            ) from None
        return int(self._server.sockets[0].getsockname()[1])

    def begin(self, identity: Identity) -> None:
        """From now on others are heard and reached."""
        self._identity = identity
        self.address = identity.address
        self.switch(on=True)

    async def end(self) -> None:
        """Close everything; what was said last goes out first."""
        self.switch(on=False)
        if self._server is not None:
            self._server.close()
        channels = list(self._channels.values())
        for channel in channels:
            await channel.end()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._channels.clear()

    def statistics(self) -> TcpStatistics:
        return TcpStatistics(
            len(self._channels), self._refused, *self.total(SENT), *self.total(RECEIVED), dict(self._dropped)
        )

    def connected(self, address: Address) -> bool:
        return address in self._channels

    async def greet(self, host: str, port: int) -> Address:
        """Who listens there; raises ``ConnectionFailed`` if that cannot be found out, or is nobody to be linked with."""
        channel = await self._open(host, port)
        self._keep(channel)
        return channel.other.address

    # Sending

    def post(self, to: Address | None, port: int, message: Message) -> Sending:
        assert to is not None, "there is no broadcast"
        kind, data = kind_of(message), bytes((port,)) + encoded(message)
        if not self.up:
            return self._lose(LINK_DOWN)
        if len(data) > self.settings.largest:
            return self._lose(TOO_LARGE)
        channel = self._channels.get(to)
        if channel is not None:
            if channel.waiting > self.settings.most_waiting:
                return self._lose(QUEUE_FULL)
            if not channel.send(data):
                return self._lose(UNREACHABLE)
            self.count(SENT, kind, len(data) + LENGTH + TAG)
            return Sending.ACCEPTED
        waiting = self._calling.get(to)
        if waiting is None:
            place = where(to)
            if place is None or to == self.address:
                return self._lose(UNKNOWN_RECEIVER)
            if self._clock.now() < self._not_before.get(to, 0):
                return self._lose(UNREACHABLE)
            waiting = self._calling[to] = []
            self._start(self._call(to, *place))
        if len(waiting) >= self.settings.queued:
            return self._lose(QUEUE_FULL)
        waiting.append((kind, data))
        return Sending.QUEUED

    def _lose(self, reason: str) -> Sending:
        self._dropped[reason] += 1
        return Sending.DROPPED

    async def _call(self, to: Address, host: str, port: int) -> None:
        try:
            channel = await self._open(host, port)
            if channel.other.address != to:
                channel.close()
                raise NotUnderstood(f"there is {channel.other.address} now, not {to}")
        except ConnectionFailed as error:
            self._not_before[to] = self._clock.now() + round(self.settings.retry_after * MICROSECONDS)
            self._dropped[UNREACHABLE] += len(self._calling.pop(to, ()))
            if self._told.get(to) != str(error):
                self._told[to] = str(error)
                log.info("%s is not reached: %s", to, error)
            return
        except BaseException:
            self._calling.pop(to, None)
            raise
        self._told.pop(to, None)
        self._keep(channel)
        self._hand_over(to)

    def _hand_over(self, to: Address) -> None:
        """What waited goes out, on whatever connection there is now."""
        channel = self._channels.get(to)
        for kind, data in self._calling.pop(to, ()):
            if channel is None or not channel.send(data):
                self._dropped[UNREACHABLE] += 1
            else:
                self.count(SENT, kind, len(data) + LENGTH + TAG)

    # Connections

    async def _open(self, host: str, port: int) -> Channel:
        place = f"{host}:{port}"
        try:
            async with asyncio.timeout(self.settings.handshake):
                reader, writer = await asyncio.open_connection(host, port, limit=1 << 20)
                try:
                    return await self._call_in(reader, writer)
                except BaseException:
                    writer.close()
                    raise
        except NotUnderstood as error:
            self._refused += 1
            raise NotUnderstood(f"{place}: {error}") from None
        except WrongSecret:
            self._refused += 1
            raise WrongSecret(
                f"{place}: it knows another secret; give all brokers of a federation the same file (--federation-secret-file)"
            ) from None
        except (asyncio.IncompleteReadError, ConnectionResetError):
            raise ConnectionFailed(
                f"{place} closed the connection; does it listen for other brokers, and has it the same secret?"
            ) from None
        except TimeoutError:
            raise ConnectionFailed(
                f"{place} did not say who it is within {self.settings.handshake:g} s; is it a broker's port for others (--federate)?"
            ) from None
        except OSError as error:
            if isinstance(error, ConnectionFailed):
                raise
            raise ConnectionFailed(f"{place} cannot be reached: {error.strerror or error}") from None

    async def _call_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Channel:
        handshake = self._handshake(called=False)
        writer.write(framed(handshake.introduction))
        other = handshake.hear(await frame(reader, LARGEST_HELLO))
        writer.write(framed(handshake.proof()))
        body = await frame(reader, LARGEST_HELLO)
        if (complaint_made := complained(body)) is not None:
            raise WrongSecret(complaint_made)
        problem = handshake.judged(body) or self._acceptable(other)
        if problem:
            raise NotUnderstood(problem)
        return Channel(other, reader, writer, handshake.outgoing, handshake.incoming, called=False)

    def _handshake(self, *, called: bool) -> Handshake:
        me = self._identity
        return Handshake(me.secret, me.address, me.instance, me.life, called=called)

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not self.up:
            writer.close()
            return
        if len(self._strangers) >= self.settings.most_strangers:
            # Who is one of us has proven it within a moment; who only holds a place gives it up to the next one.
            next(iter(self._strangers)).transport.abort()
        self._strangers[writer] = None
        try:
            async with asyncio.timeout(self.settings.handshake):
                channel = await self._answer(reader, writer)
        except ConnectionFailed as error:
            self._refused += 1
            log.warning("a connection from %s was refused: %s", _peer(writer), error)
            writer.close()
            return
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        except BaseException:
            writer.close()
            raise
        finally:
            self._strangers.pop(writer, None)
        self._keep(channel)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Channel:
        handshake = self._handshake(called=True)
        other = handshake.hear(await frame(reader, LARGEST_HELLO))
        writer.write(framed(handshake.introduction))
        try:
            handshake.check(await frame(reader, LARGEST_HELLO))
        except WrongSecret:
            writer.write(framed(complaint("another secret")))
            raise WrongSecret(f"{other.address:.80} knows another secret, or none") from None
        problem = self._acceptable(other) or self._taken(other)
        writer.write(framed(handshake.verdict(problem)))
        if problem:
            raise NotUnderstood(f"{other.address:.80}: {problem}")
        return Channel(other, reader, writer, handshake.outgoing, handshake.incoming, called=True)

    def _taken(self, other: Introduction) -> str:
        """Whether somebody else is linked with under that name."""
        for address, channel in self._channels.items():
            if name_of(address) == name_of(other.address) and channel.other.instance != other.instance:
                return f"another broker is named {name_of(address)!r} ({address}); give each a name of its own (federation.name)"
        return ""

    def _keep(self, channel: Channel) -> None:
        if not self.up:
            channel.close()
            return
        address = channel.other.address
        before = self._channels.get(address)
        if before is not None and before.other.life >= channel.other.life and not self._prefers(channel, before):
            channel.close()
            return
        self._channels[address] = channel
        if before is not None:
            before.close()
        self._start(self._read(channel))

    def _prefers(self, new: Channel, old: Channel) -> bool:
        """Of two connections between the same ends, both keep the one that the lower address opened, or the newer one."""
        if new.called == old.called:
            return True
        return new.called == (new.other.address < self.address)

    async def _read(self, channel: Channel) -> None:
        address = channel.other.address
        try:
            while True:
                async with asyncio.timeout(self.settings.silence):
                    data = await channel.receive(self.settings.largest)
                self._receive(address, data)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            if self._channels.get(address) is channel and isinstance(error, ConnectionFailed):
                log.warning("the connection with %s is given up: %s", address, error)
        finally:
            channel.close()
            if self._channels.get(address) is channel:
                del self._channels[address]

    def _receive(self, sender: Address, data: bytes) -> None:
        port, body = data[0] if data else -1, memoryview(data)[1:]
        endpoint = self.open_ports.get(port)
        if endpoint is None:
            self._dropped[NOBODY_LISTENS] += 1
            return
        try:
            message = endpoint.codec.decoded(body)
        except msgspec.DecodeError:
            self.count(RECEIVED, kind_in(body) or _UNKNOWN_KIND, len(data) + LENGTH + TAG)
            self._dropped[NOT_UNDERSTOOD] += 1
            return
        self.count(RECEIVED, kind_of(message), len(data) + LENGTH + TAG)
        self._guard(endpoint.receive, sender, message)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _peer(writer: asyncio.StreamWriter) -> str:
    with contextlib.suppress(InvalidInput, TypeError, IndexError):
        return "{}:{}".format(*writer.get_extra_info("peername")[:2])
    return "somewhere"
