"""How a broker comes into a federation: whom it asks, whom it refuses, and for how long it waits for the others."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

from nearcast.broker.federation.settings import FederationSettings
from nearcast.errors import ConnectionFailed, SetupError
from nearcast.runtime.live.addresses import address_of, host_and_port, name_of
from nearcast.runtime.live.secured import Introduction, NotUnderstood, WrongSecret
from nearcast.runtime.live.tcp import TcpLink
from nearcast.runtime.ports import Address

log: Final = logging.getLogger(__name__)

SETTLING: Final = 10.0
"""Seconds for which clients are not let in while other brokers are looked for."""

PAUSE: Final = 1.0
"""Seconds between two attempts to join."""


def shown_address(name: str, settings: FederationSettings, host: str, port: int) -> Address:
    """Under which others know the broker of that name, which listens there."""
    said = settings.advertise
    shown = (host, port) if said is None else host_and_port(said)
    if _is_everywhere(shown[0]):
        raise SetupError(
            f"other brokers cannot reach this one at {shown[0]}; say under which address they can: federation.advertise"
        )
    return address_of(name, *shown)


def objection(name: str, instance: str, other: Introduction) -> str:
    """Why the broker of that name is not linked with somebody who knows the secret; mostly there is no reason."""
    if other.instance == instance:
        return "it is this broker itself; join another one"
    if name_of(other.address) == name:
        return f"two brokers are named {name!r}; give each a name of its own (federation.name)"
    return ""


@dataclass(slots=True, eq=False)
class Joining:
    link: TcpLink
    meet: Callable[[Address], None]
    """Told of who was found."""

    _told: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def told(self) -> None:
        """A neighbour has said what it knows."""
        self._told.set()

    async def settled(self) -> None:
        """Until it knows what the others know: a client that were let in before would be taken for a new one, and what it publishes
        would find nobody.  If nobody is there, that is so.
        """
        try:
            async with asyncio.timeout(SETTLING):
                await self._told.wait()
        except TimeoutError:
            log.warning("no other broker is in reach; clients are let in all the same")

    async def join(self, text: str) -> None:
        """The first time at once, so that an operator hears what is wrong; then for as long as it takes."""
        host, port = host_and_port(text)
        try:
            self.meet(await self.link.greet(host, port))
        except (WrongSecret, NotUnderstood) as error:
            raise SetupError(f"cannot join the federation: {error}") from None
        except ConnectionFailed as error:
            log.warning("the federation is not joined yet: %s", error)
            self._start(self._join_later(host, port))

    async def _join_later(self, host: str, port: int) -> None:
        said = ""
        while True:
            await asyncio.sleep(PAUSE)
            try:
                self.meet(await self.link.greet(host, port))
            except ConnectionFailed as error:
                if str(error) != said:
                    said = str(error)
                    log.warning("the federation is not joined yet: %s", error)
            else:
                return

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_everywhere(host: str) -> bool:
    """Whether that is where to listen, but not where to be found."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
