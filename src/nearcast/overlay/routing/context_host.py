"""A device with its applications (ContextHost, 2.4.1).

Each application registers contexts of its own: aspects of one person that nobody needs to know to belong together.  An access medium
may bring messages that are for others, and what the network knows may be coarse or late; so the last check, against the contexts
as they are now, is made here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from nearcast.errors import InvalidInput
from nearcast.model.event import Event, checked_attributes
from nearcast.model.history import Context
from nearcast.model.time import Instant
from nearcast.overlay.assurance import AssuranceSettings, AssuredEndpoint
from nearcast.overlay.routing.access import (
    PORT,
    TO_DEVICE,
    Present,
    RegisterAgain,
    Registration,
    Relay,
    Relayed,
    Send,
)
from nearcast.overlay.routing.messages import attributes_tree
from nearcast.overlay.routing.wire import event_in, meets, routed
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint
from nearcast.runtime.recent import Recent

Receive = Callable[[Event], None]


class Companion(Protocol):
    """Whoever knows under which identities contexts are registered (``overlay.temporal``)."""

    def start(self, host: Host, device: ContextHost) -> None: ...

    def identity(self, aspect: str) -> str | None:
        """The one to use now; none: there is none yet."""

    def moved(self) -> None:
        """The device is elsewhere; its contexts are registered anew right after."""

    def hear(self, sender: Address, body: bytes) -> None: ...


class Application:
    """What one application says of whoever carries the device."""

    def __init__(self, host: ContextHost, number: int, receive: Receive) -> None:
        self._host: Final = host
        self._number: Final = number
        self._receive: Final = receive
        self._contexts: Final[dict[str, tuple[int, Context]]] = {}

    def register(self, name: str, context: Context) -> None:
        """Register a context, or replace the one of this name."""
        checked = checked_attributes(context, frozenset())
        number = self._contexts[name][0] if name in self._contexts else self._host.new_number()
        self._contexts[name] = number, checked
        self._host.say(number, checked, self.aspect(name), self)

    def deregister(self, name: str) -> None:
        number, _ = self._contexts.pop(name)
        self._host.say(number, None)

    def aspect(self, name: str) -> str:
        """Of a context that comes and goes: the same whenever it is registered, and telling nothing of it."""
        return hashlib.blake2b(f"{self._number}/{name}".encode(), digest_size=8).hexdigest()

    def receive(self, event: Event) -> None:
        """It was for one of its contexts, at some other time."""
        self._receive(event)

    def hear(self, event: Event) -> bool:
        """Whether it was for one of its contexts."""
        if not any(meets(event, context) for _, context in self._contexts.values()):
            return False
        self._receive(event)
        return True


class ContextHost(Component):
    """``node``: that of the access network in which the device is; none: in no one."""

    def __init__(
        self,
        node: Address | None,
        interface: str = "access",
        refresh: float = 10.0,
        companion: Companion | None = None,
        assurance: AssuranceSettings | None = None,
    ) -> None:
        self._assurance: Final = assurance
        self._node = node
        self._companion: Final = companion
        self._interface: Final = interface
        self._refresh: Final = refresh
        self._applications: Final[list[Application]] = []
        self._current: Final[dict[int, Context]] = {}
        self._version = 0
        self._versions: Final[dict[int, int]] = {}
        self._since: Final[dict[int, Instant]] = {}
        self._aspects: Final[dict[int, str]] = {}
        self._owners: Final[dict[str, Application]] = {}
        """By aspect, also of contexts that are gone."""

        self._numbers = 0
        self._seen: Final = Recent()
        self.refused = 0
        """Messages that were for nobody here."""

        self.malformed = 0

        self._host: Host
        self._endpoint: Endpoint | None = None

    def application(self, receive: Receive) -> Application:
        application = Application(self, len(self._applications), receive)
        self._applications.append(application)
        return application

    def start(self, host: Host) -> None:
        self._host = host
        self._version = host.now()  # above those of an earlier life
        self._endpoint = AssuredEndpoint(host, self._interface, PORT, self._hear, TO_DEVICE, (Send,), self._assurance)
        self._since.update(dict.fromkeys(self._current, host.now()))
        if self._companion is not None:
            self._companion.start(host, self)
        host.timers.every(self._refresh, self._say_present, first=host.random("context host").uniform(0, self._refresh))
        self._register_all()

    def move_to(self, node: Address | None) -> None:
        """Another access network: leave the old one, enter the new one."""
        now = self._host.now()
        self._since.update(dict.fromkeys(self._current, now))
        for number in self._current:
            self._say(number, None)
        self._node = node
        if self._companion is not None:
            self._companion.moved()
        self._register_all()

    @property
    def aspects(self) -> tuple[str, ...]:
        """Of the contexts that there are."""
        return tuple(dict.fromkeys(self._aspects[number] for number in self._current))

    def renew(self, aspect: str) -> None:
        """There is an identity for it, or another one: what is registered is registered under it."""
        for number, context in self._current.items():
            if self._aspects[number] == aspect:
                self._say(number, context)

    def relay(self, to: Address, service: str, body: bytes) -> None:
        """Say something to somebody elsewhere, by way of the node."""
        self._send(Relay(to, service, body))

    def receive(self, event: Event, aspects: Iterable[str]) -> None:
        """A message for what these contexts were, or will have been: there is no last check."""
        owners = dict.fromkeys(self._owners[aspect] for aspect in aspects if aspect in self._owners)
        for application in owners:
            application.receive(event)
        self.refused += not owners

    def publish(self, event: Event) -> None:
        self._send(Send(routed(event, self._host.name)))

    def new_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def say(self, number: int, context: Context | None, aspect: str = "", owner: Application | None = None) -> None:
        if self._endpoint is not None:
            self._since[number] = self._host.now()
        if context is None:
            self._current.pop(number, None)
        else:
            self._current[number] = context
            self._aspects[number] = aspect
            if owner is not None:
                self._owners[aspect] = owner
        self._say(number, context)
        if context is None:
            for known in (self._versions, self._since, self._aspects):
                known.pop(number, None)

    def _say(self, number: int, context: Context | None) -> None:
        self._version += 1
        self._versions[number] = self._version
        identity = None
        if context is not None and self._companion is not None:
            identity = self._companion.identity(self._aspects[number])
        attributes = None if context is None else attributes_tree(context)
        self._send(Registration(number, self._version, attributes, self._since.get(number), identity))

    def _register_all(self) -> None:
        for number, context in self._current.items():
            self._say(number, context)

    def _say_present(self) -> None:
        self._send(Present(tuple((number, self._versions[number]) for number in self._current), self._version))

    def _send(self, message: Message) -> None:
        if self._endpoint is not None and self._node is not None:
            self._endpoint.send(self._node, message)

    def _hear(self, _node: Address, message: Any) -> None:
        if isinstance(message, RegisterAgain):
            self._register_all()
            return
        if isinstance(message, Relayed):
            if self._companion is not None:
                self._companion.hear(message.sender, message.body)
            return
        try:
            event = event_in(message)
        except InvalidInput:
            self.malformed += 1
            return
        if self._seen.add(message.id, self._host.now()):
            heard = [application.hear(event) for application in self._applications]
            if not any(heard):
                self.refused += 1
