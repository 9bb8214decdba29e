"""Hosts that listen to each other on one machine, for tests of their links."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from tests.runtime.live.virtual import neighbourhood, started

from nearcast.runtime.host import Component, Host
from nearcast.runtime.live import LiveRuntime, UdpLink, UdpNetwork
from nearcast.runtime.live.udp import HEADERS
from nearcast.runtime.messages import PORT_BYTES, Message, encoded
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Endpoint

PORT: Final = 9


class Text(Message, frozen=True, tag="text"):
    text: str


class Number(Message, frozen=True, tag="number"):
    number: int


class Listener(Component):
    """Keeps what it hears."""

    def __init__(self, *kinds: type[Message]) -> None:
        self._kinds = kinds or (Text,)
        self.heard: list[tuple[Address, Message]] = []

    def start(self, host: Host) -> None:
        self.endpoint: Endpoint = host.link("wifi").open(PORT, self._receive, *self._kinds)

    def _receive(self, sender: Address, message: Message) -> None:
        self.heard.append((sender, message))


class Street:
    """Some hosts that listen, and the rows that they emit."""

    def __init__(self, names: str, network: UdpNetwork | None = None, *kinds: type[Message]) -> None:
        observers = Observers()
        self.rows: dict[str, list[tuple[Any, ...]]] = {"messages": [], "drops": [], "clients": []}
        for table, rows in self.rows.items():
            observers.analyze(table, _keeping(rows))
        self.runtime = LiveRuntime(observers=observers)
        self.network = network or neighbourhood()
        self.listeners = {name: Listener(*kinds) for name in names}
        for name, listener in self.listeners.items():
            self.runtime.add(name, _built_of(listener), [self.network])

    def link(self, name: str) -> UdpLink:
        return self.runtime.hosts[name].links["wifi"]

    def endpoint(self, name: str) -> Endpoint:
        return self.listeners[name].endpoint

    def heard(self, name: str) -> list[tuple[Address, Message]]:
        return self.listeners[name].heard

    async def told(self, story: Callable[[], Awaitable[None]]) -> None:
        """Run while the story is told."""
        running = await started(self.runtime)
        try:
            await story()
        finally:
            self.runtime.stop()
            await running


def size(message: Message) -> int:
    return HEADERS + PORT_BYTES + len(encoded(message))


def _keeping(rows: list[tuple[Any, ...]]) -> Callable[..., None]:
    return lambda *row: rows.append(row)


def _built_of(component: Component) -> Callable[[], list[Component]]:
    return lambda: [component]
