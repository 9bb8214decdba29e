"""Keeps a client connected: connects, notices that the connection is gone, connects again, and goes on where it was."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import mqtt5

from nearcast.client.address import Address
from nearcast.client.connection import Connection
from nearcast.client.protocol import (
    Answered,
    ClientProtocol,
    Delivered,
    Dismissed,
    Flow,
    ProtocolStatistics,
    Receipt,
    Write,
)
from nearcast.client.refusals import dismissed, is_final
from nearcast.errors import (
    ConnectionFailed,
    Denied,
    InvalidEvent,
    NearcastError,
    NotAuthenticated,
    ProtocolError,
    TimedOut,
)

log: Final = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 30.0


@dataclass(frozen=True, slots=True)
class Terms:
    """How a client connects, and how patient it is."""

    address: Address
    client_id: str
    tls: ssl.SSLContext | None = None
    clean_start: bool = False
    session_expiry: int = 3600
    """Seconds for which the broker remembers this client while it is away."""

    kept: bool = False
    """The session outlives a client that leaves in an orderly way."""

    keep_alive: int = 30
    """Seconds; after twice as long without a sign of life the connection counts as lost."""

    timeout: float = 30.0
    """Seconds for which every operation waits for the broker."""

    receive_maximum: int = 1000
    """Deliveries that the broker may send before the first of them is taken."""

    max_in_flight: int = 256
    """Publications that may wait for their acknowledgement; the next one waits before it is sent."""

    largest_packet: int = 16 * 1024 * 1024
    properties: tuple[tuple[str, str], ...] = ()
    others: tuple[Address, ...] = ()
    """Other brokers of the same federation, to which to go if the first one is gone."""


class Listener(ABC):
    """Whoever wants to know what happens on a link."""

    @abstractmethod
    def delivered(self, delivery: Delivered) -> None:
        """The broker has sent a message."""

    @abstractmethod
    def lost(self) -> None:
        """The connection is gone; the link tries to get another."""

    @abstractmethod
    def resumed(self, *, session_present: bool) -> None:
        """Connected again; without its session the broker knows nothing any more."""

    @abstractmethod
    def ended(self, error: NearcastError | None) -> None:
        """Nothing will come any more; with an error if nobody wanted that."""


@dataclass(frozen=True, slots=True)
class LinkStatistics:
    connected: bool
    connections: int
    protocol: ProtocolStatistics


def pauses(chance: Callable[[], float] = random.random) -> Iterator[float]:
    """Seconds before each attempt: twice as long each time, and never the same for all clients of a broker that restarts."""
    pause = FIRST_PAUSE
    while True:
        yield pause * (0.5 + chance() / 2)
        pause = min(pause * 2, LONGEST_PAUSE)


@dataclass(slots=True, eq=False)
class Link:
    """One client's way to its broker."""

    terms: Terms
    listener: Listener
    protocol: ClientProtocol = field(default_factory=ClientProtocol)
    address: Address = field(init=False)
    """Where the broker is that it is connected to, or will be."""

    _connection: Connection | None = None
    _answers: dict[Flow, asyncio.Future[Answered]] = field(default_factory=dict)
    _posted: dict[Flow, asyncio.Future[None]] = field(default_factory=dict)
    _up: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _slots: asyncio.Semaphore = field(init=False)
    _failure: NearcastError | None = None
    _largest: int | None = None
    """Bytes of a packet that the broker takes."""

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.terms.max_in_flight)
        self.address = self.terms.address

    def statistics(self) -> LinkStatistics:
        return LinkStatistics(self._connection is not None, self.protocol.connection, self.protocol.statistics())

    # Coming and going

    async def open(self) -> bool:
        """Connect; answers whether the broker remembers this client.  What is wrong now is the caller's to know at once."""
        connection = await self._connect(clean_start=self.terms.clean_start)
        self._task = asyncio.create_task(self._keep_up(connection), name=f"nearcast {self.terms.client_id}")
        return connection.acknowledgement.session_present

    async def close(self) -> None:
        """Leave in an orderly way."""
        self._failure = self._failure or ConnectionFailed("this client has been closed")
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        connection, self._connection = self._connection, None
        if connection is not None:
            expiry = None if self.terms.kept else 0
            self.protocol.disconnect(mqtt5.DisconnectPacket(session_expiry_interval=expiry))
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(1):
                    await connection.write_now()
            await connection.close()
        self._end(None)

    async def go_to(self, address: Address) -> None:
        """Another broker from now on; the session follows, if both belong to one federation."""
        self.address = address
        if self._connection is not None:
            await self._connection.close()

    def _next_address(self) -> Address:
        """The one after the one that could not be reached."""
        known = list(dict.fromkeys((self.terms.address, *self.terms.others)))
        if self.address not in known:
            return known[0]
        return known[(known.index(self.address) + 1) % len(known)]

    async def _connect(self, *, clean_start: bool) -> Connection:
        terms = self.terms
        packet = mqtt5.ConnectPacket(
            terms.client_id,
            username=self.address.user,
            password=None if self.address.password is None else self.address.password.encode(),
            clean_start=clean_start,
            keep_alive=terms.keep_alive,
            session_expiry_interval=terms.session_expiry,
            receive_max=terms.receive_maximum,
            max_packet_size=terms.largest_packet,
            user_properties=list(terms.properties),
        )
        connection = await Connection.open(self.address, terms.tls, packet, self.protocol, terms.timeout)
        self._connection = connection
        self._largest = connection.acknowledgement.max_packet_size
        connection.heard = asyncio.get_running_loop().time()
        self.protocol.established(connection.acknowledgement)
        self._up.set()
        connection.flush()
        return connection

    async def _keep_up(self, connection: Connection) -> None:
        while True:
            try:
                await self._use(connection)
            except ConnectionFailed as error:
                failure = error
            except Exception as error:
                log.exception("this client has failed")
                failure = self._failure = ConnectionFailed(f"this client has failed: {type(error).__name__}: {error}")
            finally:
                self._up.clear()
            self._connection = None
            self.protocol.lost()
            self._drop_posted()
            self.listener.lost()
            await connection.close()
            if self._failure is not None:
                self._end(self._failure)
                return
            log.info("%s; connecting again", failure)
            try:
                connection = await self._connect_again()
            except NearcastError as error:
                self._end(error)
                return
            self.listener.resumed(session_present=connection.acknowledgement.session_present)

    async def _connect_again(self) -> Connection:
        for pause in pauses():
            await asyncio.sleep(pause)
            try:
                return await self._connect(clean_start=False)
            except (NotAuthenticated, Denied):
                raise
            except NearcastError as error:
                log.info("%s", error)
                self.address = self._next_address()
        raise AssertionError("there is always another pause")

    async def _use(self, connection: Connection) -> None:
        """Until the connection is lost, which is always raised."""
        tasks = [
            asyncio.create_task(work) for work in (self._read(connection), connection.write(), self._watch(connection))
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, asyncio.CancelledError):
                continue
            if isinstance(outcome, ConnectionFailed):
                raise outcome
            if isinstance(outcome, (OSError, ProtocolError)):
                raise ConnectionFailed(f"the connection to {self.address} is lost: {outcome}") from outcome
            if isinstance(outcome, BaseException):
                raise outcome

    async def _read(self, connection: Connection) -> None:
        now = asyncio.get_running_loop().time
        async for packet in connection.packets(now):
            happened = self.protocol.receive(packet)
            match happened:
                case Delivered():
                    self.listener.delivered(happened)
                case Answered():
                    self._settle(happened)
                case Dismissed():
                    error = dismissed(str(self.address), happened.reason, happened.message)
                    if is_final(happened.reason):
                        self._failure = error
                    raise error
            connection.flush()
        raise ConnectionFailed(f"{self.address} has closed the connection")

    def _settle(self, answer: Answered) -> None:
        posted = self._posted.pop(answer.flow, None)
        if posted is not None and not posted.done():
            posted.set_result(None)
        future = self._answers.pop(answer.flow, None)
        if future is not None and not future.done():
            future.set_result(answer)

    async def _watch(self, connection: Connection) -> None:
        """Ask for a sign of life now and then (3.1.2.10)."""
        if not connection.keep_alive:
            await asyncio.Event().wait()
        now = asyncio.get_running_loop().time
        while now() - connection.heard < 2 * connection.keep_alive:
            await asyncio.sleep(connection.keep_alive / 2)
            self.protocol.ping()
            connection.flush()
        raise ConnectionFailed(f"nothing was heard of {self.address} for {2 * connection.keep_alive:g} s")

    def _end(self, error: NearcastError | None) -> None:
        self._failure = self._failure or error
        assert self._failure is not None
        for future in self._answers.values():
            if not future.done():
                future.set_exception(self._failure)
        self._answers.clear()
        self._drop_posted()
        self._up.set()  # whoever waits is to see the failure
        self.listener.ended(error)

    # Sending

    async def publish(
        self, packet: Callable[[int | None], mqtt5.PublishPacket], qos: int, what: str, patience: float | None
    ) -> Answered | None:
        """Quality 0: sent when this returns; otherwise acknowledged.  ``patience`` instead of the usual timeout."""
        data = packet(1 if qos else None).write()
        if self._largest is not None and len(data) > self._largest:
            raise InvalidEvent(
                f"{what} has {len(data)} bytes with its properties; the broker takes {self._largest} at most"
            )
        limit = self.terms.timeout if patience is None else patience
        try:
            async with asyncio.timeout(limit):
                if not qos:
                    await self._publish_once(data)
                    return None
                async with self._slots:
                    return await self._answer(self.protocol.send(lambda number: packet(number).write(), qos))
        except TimeoutError:
            raise self._timed_out(what, limit) from None

    async def _publish_once(self, data: bytes) -> None:
        while True:
            await self._up.wait()
            if self._failure is not None:
                raise self._failure
            connection = self._connection
            if connection is None:
                continue
            await connection.drain()
            if connection is self._connection:
                self.protocol.publish_once(data)
                connection.flush()
                return

    async def ask(self, write: Write, what: str) -> Answered:
        """SUBSCRIBE or UNSUBSCRIBE, and the answer."""
        try:
            async with asyncio.timeout(self.terms.timeout):
                return await self._answer(self.protocol.send(write))
        except TimeoutError:
            raise self._timed_out(what, self.terms.timeout) from None

    async def _answer(self, flow: Flow) -> Answered:
        if self._failure is not None:
            self.protocol.abandon(flow)
            raise self._failure
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._answers[flow] = future
        self.flush()
        try:
            return await future
        finally:
            if self._answers.pop(flow, None) is not None:
                self.protocol.abandon(flow)

    def _timed_out(self, what: str, limit: float) -> TimedOut:
        state = "no connection at present" if self._connection is None else "connected"
        return TimedOut(
            f"{what} was not acknowledged within {limit:g} s ({state}); it may have arrived all the same: "
            "try again, with the same id if it is an event, or with a longer timeout"
        )

    def post(self, packet: Callable[[int | None], mqtt5.PublishPacket]) -> asyncio.Future[None]:
        """Quality 1, for what is void when the connection is lost; done when it was answered or has become void."""
        posted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._connection is None:
            posted.set_result(None)
            return posted
        flow = self.protocol.send(lambda number: packet(number).write(), 1)
        flow.abandoned = True
        self._posted[flow] = posted
        self.flush()
        return posted

    def _drop_posted(self) -> None:
        posted, self._posted = self._posted, {}
        for flow, future in posted.items():
            self.protocol.abandon(flow)
            if not future.done():
                future.set_result(None)

    @property
    def is_over(self) -> bool:
        """Nothing can be sent any more."""
        return self._failure is not None

    def acknowledge(self, receipt: Receipt) -> None:
        self.protocol.acknowledge(receipt)
        self.flush()

    def flush(self) -> None:
        if self._connection is not None:
            self._connection.flush()
