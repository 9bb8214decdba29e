"""What all attacks have in common: addresses to come from, and how it is told what became of them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

PATIENCE: Final = 30.0
STRANGERS: Final = tuple(f"127.0.0.{number}" for number in range(2, 10))
KNOWN: Final = tuple(f"127.0.0.{number}" for number in range(20, 28))
"""Of those who show a right password, whom the strangers' wrong ones are not to keep out."""

FLOODS: Final = ("127.0.0.40",)


@dataclass(frozen=True)
class Outcome:
    through: bool
    """Was let in, was told something, did something, or was not stopped."""

    answer: str
    """As the broker said it."""


@dataclass
class Target:
    """Where the broker is, and what the attacker knows."""

    ports: dict[str, int]
    tokens: dict[str, str]
    """By what is wrong with them."""

    plans: dict[str, Any]
    """``forged`` by somebody else, and one that was ``seen``: a planner signed it, and it was carried out."""

    papers: dict[str, tuple[str, str]]
    """Certificate and key: ``foreign``, and ``mallory`` who has one of the right authority."""

    connect_time: float
    """Seconds after which the broker gives up those who are slow."""

    turn: int = field(default=0)

    async def connection(
        self, port: str, addresses: tuple[str, ...] = STRANGERS, context: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.turn += 1
        local = (addresses[self.turn % len(addresses)], 0)
        opening = asyncio.open_connection("127.0.0.1", self.ports[port], local_addr=local, ssl=context)
        return await asyncio.wait_for(opening, PATIENCE)


@dataclass(frozen=True)
class Attack:
    kind: str
    run: Callable[[Target], Awaitable[Outcome]]
    must_say: str | None = None
    """An answer that has to be among those it gets: else something else has refused it before it came to that."""
