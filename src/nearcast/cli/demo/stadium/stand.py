"""The stand: processes that are started, told what to do, killed, and asked what came of it."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NoReturn, Self

import msgspec

from nearcast.cli.demo.child import ChildProcess
from nearcast.cli.demo.stadium.fan import CELL, Account, FanSettings, Order
from nearcast.errors import SetupError, TimedOut

NAMES: Final = (
    "ada", "bob", "eve", "tom", "zoe", "kim", "leo", "mia", "sam", "uli", "ann", "ben", "cleo", "dan", "fay", "gus",
    "hal", "ida", "jan", "kai",
)  # fmt: skip
SHIFT: Final = 8.0
"""Metres between the middle of a cell and each of the two who stand in it."""

PATIENCE: Final = 60.0
"""Seconds in which anything that must come has come; the machine may be busy."""

LOOKING: Final = 0.2
"""Seconds between two looks at everybody."""

Accounts = Mapping[str, Account]


@dataclass(frozen=True, kw_only=True, slots=True)
class StandSettings:
    processes: int = 10
    address: str = "127.0.0.1"

    @property
    def columns(self) -> int:
        return max(2, math.ceil(math.sqrt(self.processes)))

    @property
    def rows(self) -> int:
        return math.ceil(math.ceil(self.processes / 2) / self.columns)

    @property
    def early(self) -> int:
        """So many are there when it begins; with the one who comes late they are a small crowd."""
        return max(4, math.floor(0.4 * self.processes))

    @property
    def many(self) -> float:
        """Half-way between few and all, as counts err: by their quotient."""
        return math.sqrt((self.early + 1) * self.processes)

    def name(self, number: int) -> str:
        return NAMES[number] if number < len(NAMES) else f"fan-{number}"

    def seat(self, number: int) -> tuple[float, float]:
        """Two to a cell: so each has somebody who keeps copies of what it publishes."""
        column, row = number // 2 % self.columns, number // 2 // self.columns
        return (column + 0.5) * CELL + (SHIFT if number % 2 else -SHIFT), (row + 0.5) * CELL


class Stand:
    """To be used with ``async with``."""

    def __init__(
        self, settings: StandSettings, group: str, group_port: int, broker: str, watch: Callable[[Accounts], None]
    ) -> None:
        self.settings: Final = settings
        self._group: Final = group, group_port
        self._broker: Final = broker
        self._watch: Final = watch
        self._people: Final[dict[str, ChildProcess]] = {}
        self._accounts: Final[dict[str, Account]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        children = list(self._people.values())
        self._people.clear()
        await asyncio.gather(*(child.end(by_itself=True) for child in children))

    @property
    def accounts(self) -> Accounts:
        return self._accounts

    def pid(self, name: str) -> int:
        return self._people[name].pid

    async def come(self, numbers: range, *, bridge: int | None = None) -> None:
        """These people, each in a process of its own."""
        for number in numbers:
            await self._start(number, self._broker if number == bridge else "")
        for number in numbers:
            await self._hear(self.settings.name(number))

    async def kill(self, name: str) -> None:
        """It is gone at once, and nobody was told."""
        child = self._people.pop(name)
        self._accounts.pop(name, None)
        os.kill(child.pid, signal.SIGKILL)
        await child.end(by_itself=True)

    async def order(self, name: str, order: Order) -> Account:
        """Have it done; raises what went wrong there."""
        await self._say(name, order)
        account = await self._hear(name)
        if account.problem:
            raise TimedOut(f"{name} {account.problem}")
        return account

    async def until(self, holds: Callable[[Accounts], bool], what: str) -> None:
        if not await self.happens(holds, PATIENCE):
            raise TimedOut(f"within {PATIENCE:.0f} s it did not happen that {what}")

    async def happens(self, holds: Callable[[Accounts], bool], patience: float) -> bool:
        """Whether it does, within so many seconds."""
        deadline = time.monotonic() + patience
        while not holds(await self.look()):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(LOOKING)
        return True

    async def look(self) -> Accounts:
        """How everybody is."""
        names = list(self._people)
        for name in names:
            await self._say(name, Order(do="count"))
        for name in names:
            await self._hear(name)
        self._watch(self._accounts)
        return self._accounts

    async def _start(self, number: int, broker: str) -> None:
        settings = self.settings
        east, north = settings.seat(number)
        fan = FanSettings(
            name=settings.name(number),
            east=east,
            north=north,
            columns=settings.columns,
            rows=settings.rows,
            many=settings.many,
            address=settings.address,
            group=self._group[0],
            group_port=self._group[1],
            broker=broker,
        )
        child = ChildProcess()
        told = msgspec.json.encode(fan).decode()
        await child.start(lambda _: ["-m", "nearcast.cli.demo.stadium.fan", told])
        self._people[fan.name] = child

    async def _say(self, name: str, order: Order) -> None:
        child = self._people[name]
        try:
            child.stdin.write(msgspec.json.encode(order) + b"\n")
            await child.stdin.drain()
        except (OSError, RuntimeError):  # it does not read any more; the second is uvloop's word for it
            await self._miss(name, child)

    async def _hear(self, name: str) -> Account:
        child = self._people[name]
        try:
            async with asyncio.timeout(PATIENCE):
                line = await child.stdout.readline()
        except TimeoutError:
            raise TimedOut(f"{name} did not answer within {PATIENCE:.0f} s") from None
        if not line:
            await self._miss(name, child)
        account = self._accounts[name] = msgspec.json.decode(line, type=Account)
        return account

    async def _miss(self, name: str, child: ChildProcess) -> NoReturn:
        await child.silence
        raise SetupError(f"the process of {name} has ended{child.last_words}")
