"""The street: processes that are started, told what to do, and asked what came of it."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, NoReturn

import msgspec

from nearcast.cli.demo.adhoc.walker import TOPIC, VICINITY, Account, Order, WalkerSettings
from nearcast.cli.demo.child import ChildProcess
from nearcast.dissemination.adhoc.registry import MECHANISMS
from nearcast.errors import SetupError, TimedOut
from nearcast.model.area import Circle
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.runtime.live.sockets import group_socket, own_socket
from nearcast.transition.text import mechanism_in

SPACING: Final = 30.0
"""Metres between two people: with those on their right and left they are always within a range of 60 m."""

PATIENCE: Final = 120.0
"""Seconds of patience with all processes; the machine may be busy."""

QUIET: Final = 1.0
"""Seconds in which nothing came any more: then everything has."""

ECHO: Final = 5.0
"""Seconds in which what is sent to the group must come back."""

CLOSE_CALL: Final = 1.0
"""Metres: who was so near to the end of somebody's vicinity may have been in it or not, as both have walked on."""

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class StreetSettings:
    processes: int = 10
    seconds: float = 10.0
    first: str = "FLOODING"
    then: str = "GOSSIP(p=0.7)"
    radius: float = 60.0
    address: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Row:
    """What one process did."""

    process: str
    pid: int
    sent: int
    heard: int
    delivered: int
    forwarded: int
    suppressed: int
    doubled: int
    mechanism: str


@dataclass(frozen=True, slots=True)
class Outcome:
    rows: tuple[Row, ...]
    events: int
    due: int
    """Copies that were due by the definition of delivery, wherever radios reach."""

    arrived: int
    """Of these."""

    stray: int
    """Copies that nobody was due."""

    first: str
    then: str

    @property
    def recall(self) -> float:
        return self.arrived / self.due if self.due else 1.0


class Street:
    """People in a row, of whom each hears the next ones."""

    def __init__(self, settings: StreetSettings, tell: Tell) -> None:
        self._settings: Final = settings
        self._tell: Final = tell
        self._first: Final = mechanism_in(settings.first, MECHANISMS)
        self._then: Final = mechanism_in(settings.then, MECHANISMS)
        self._children: Final[list[ChildProcess]] = []

    async def perform(self) -> Outcome:
        try:
            return await self._perform()
        except TimeoutError:
            raise TimedOut(f"the processes of the demo did not answer within {PATIENCE:.0f} s") from None

    async def _perform(self) -> Outcome:
        settings = self._settings
        group, group_port = await meeting_point(settings.address)
        self._tell(f"starting {settings.processes} processes, which meet at {group}:{group_port} on {settings.address}")
        async with AsyncExitStack() as stack:
            for number in range(settings.processes):
                await self._start(number, group, group_port, stack)
            async with asyncio.timeout(PATIENCE):
                for child in self._children:
                    await self._hear(child)
            self._tell(
                f"all are there, {SPACING:.0f} m apart; radios reach {settings.radius:.0f} m. They talk: {self._first}"
            )
            await self._all(Order(do="talk"))
            await asyncio.sleep(settings.seconds / 2)
            self._tell(f"one of them changes to {self._then}")
            await self._order(self._children[0], Order(do="initiate", mechanism=settings.then))
            await asyncio.sleep(settings.seconds / 2)
            await self._all(Order(do="hush"))
            await self._settled()
            accounts = await self._all(Order(do="end"), answered=True)
        return self._outcome(accounts)

    async def _start(self, number: int, group: str, group_port: int, stack: AsyncExitStack) -> None:
        settings = self._settings
        walker = WalkerSettings(
            name=f"walker-{number}",
            east=number * SPACING,
            mechanism=settings.first,
            radius=settings.radius,
            address=settings.address,
            group=group,
            group_port=group_port,
            seed=secrets.randbits(32),
        )
        child = ChildProcess()
        told = msgspec.json.encode(walker).decode()
        await child.start(lambda _: ["-m", "nearcast.cli.demo.adhoc.walker", told])
        self._children.append(child)
        stack.push_async_callback(child.end, by_itself=True)

    async def _all(self, order: Order, *, answered: bool = False) -> list[Account]:
        for child in self._children:
            await self._order(child, order)
        return [await self._hear(child) for child in self._children] if answered else []

    async def _order(self, child: ChildProcess, order: Order) -> None:
        try:
            child.stdin.write(msgspec.json.encode(order) + b"\n")
            await child.stdin.drain()
        except (OSError, RuntimeError):  # it does not read any more; the second is uvloop's word for it
            await self._miss(child)

    async def _hear(self, child: ChildProcess) -> Account:
        line = await _line(child.stdout)
        if not line:
            await self._miss(child)
        return msgspec.json.decode(line, type=Account)

    async def _miss(self, child: ChildProcess) -> NoReturn:
        await child.silence
        raise SetupError(f"a process of the demo has ended{child.last_words}")

    async def _settled(self) -> None:
        """Nothing is on its way any more."""
        before: Sequence[Account] = ()
        async with asyncio.timeout(PATIENCE):
            while True:
                now = await self._all(Order(do="count"), answered=True)
                if now == before:
                    return
                before = now
                await asyncio.sleep(QUIET)

    def _outcome(self, accounts: Sequence[Account]) -> Outcome:
        rows = tuple(
            Row(
                process=each.name,
                pid=child.pid,
                sent=each.published,
                heard=each.heard,
                delivered=each.delivered,
                forwarded=each.forwarded,
                suppressed=each.suppressed,
                doubled=each.doubled,
                mechanism=each.mechanism,
            )
            for each, child in zip(accounts, self._children, strict=True)
        )
        due, close = due_copies(accounts)
        got = {(name, each.name) for each in accounts for name in each.got}
        events = sum(len(each.said) for each in accounts)
        return Outcome(
            rows, events, len(due), len(due & got), len(got - due - close), str(self._first), str(self._then)
        )


def due_copies(accounts: Sequence[Account]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Event and receiver, by the definition of delivery; and those pairs that were too close to tell."""
    history = History()
    subscription = Subscription(TOPIC, area=Circle(VICINITY), id="around", no_local=True)
    events: list[Event] = []
    for each in accounts:
        history.subscribed(each.name, each.track[0][0], subscription)
        for at, lat, lon in each.track:
            history.moved(each.name, at, Point(lat, lon))
        events += [
            Event(said.id, TOPIC, said.time, publisher=each.name, place=Point(said.lat, said.lon)) for said in each.said
        ]
    due: set[tuple[str, str]] = set()
    close: set[tuple[str, str]] = set()
    for event in events:
        wanted = receivers(history, event, event.published)
        assert event.place is not None
        for each in accounts:
            where = history.client(each.name).position.at(event.published)
            if where is not None and abs(distance(where, event.place) - VICINITY) <= CLOSE_CALL:
                close.add((event.id, each.name))
            elif each.name in wanted:
                due.add((event.id, each.name))
    return due, close


async def meeting_point(address: str) -> tuple[str, int]:
    """A group of which others know nothing, and that really carries what is sent to it."""
    number = secrets.randbelow(2**16)
    group = f"239.255.{number // 256}.{number % 256}"
    own = own_socket((address, 0))
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("", 0))
            port = int(free.getsockname()[1])
        heard = group_socket((group, port), address)
        try:
            await _comes_back(own, heard, (group, port), address)
        finally:
            heard.close()
    finally:
        own.close()
    return group, port


async def _comes_back(own: socket.socket, heard: socket.socket, group: tuple[str, int], address: str) -> None:
    advice = "allow multicast there (`ip link set lo multicast on`), or give --address of an interface that can"
    try:
        own.sendto(b"?", group)
        async with asyncio.timeout(ECHO):
            await asyncio.get_running_loop().sock_recv(heard, 1)
    except TimeoutError:
        raise SetupError(f"what is multicast on {address} is not heard on this machine; {advice}") from None
    except OSError as error:
        raise SetupError(f"cannot multicast on {address}: {error.strerror or error}; {advice}") from error


async def _line(reader: asyncio.StreamReader) -> bytes:
    """However long it is: a stream has a limit."""
    parts: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                parts.append(await reader.readuntil(b"\n"))
            except asyncio.LimitOverrunError as error:
                parts.append(await reader.readexactly(error.consumed))
                continue
            except asyncio.IncompleteReadError as error:
                parts.append(error.partial)
            return b"".join(parts)
