"""One whole broker of a federation, in this process: the other brokers are what the test says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.broker.in_memory import InMemory

from nearcast.broker.federation.federation import Federation
from nearcast.broker.federation.settings import FederationSettings
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending


class LoneBroker(InMemory):
    """Named ``here``; what it says to others is in ``said``."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        secret = folder / "secret"
        secret.write_text("known to all of them, and to nobody else")
        super().__init__(folder, FederationSettings(name="here", listen="127.0.0.1:0", secret_file=secret, **settings))
        self.said: list[tuple[Address, Message]] = []
        self.federation: Federation = self.broker.federation or _missing()

    async def start(self) -> None:
        await self.federation.start()
        self.federation.outlet = self._take

    def _take(self, to: Address, message: Message) -> Sending:
        self.said.append((to, message))
        return Sending.ACCEPTED


def _missing() -> Federation:
    raise AssertionError("it is alone")


@asynccontextmanager
async def lone_broker(folder: Path, **settings: Any) -> AsyncIterator[LoneBroker]:
    """In a folder that may have been used before."""
    rig = LoneBroker(folder, **settings)
    await rig.start()
    try:
        yield rig
    finally:
        await rig.federation.stop()
        rig.broker.close()
