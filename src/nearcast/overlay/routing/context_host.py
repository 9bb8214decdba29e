"""A device with its applications (ContextHost, 2.4.1).

Each application registers contexts of its own: aspects of one person that nobody needs to know to belong together.  An access medium
may bring messages that are for others, and what the network knows may be coarse or late; so the last check, against the contexts
as they are now, is made here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nearcast.errors import InvalidInput
from nearcast.model.delivery import addressed_by
from nearcast.model.event import Event, checked_attributes
from nearcast.model.history import Context
from nearcast.overlay.assurance import AssuranceSettings, AssuredEndpoint
from nearcast.overlay.routing.access import PORT, TO_DEVICE, Present, RegisterAgain, Registration, Send
from nearcast.overlay.routing.messages import attributes_tree
from nearcast.overlay.routing.wire import event_in, routed
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint
from nearcast.runtime.recent import Recent

Receive = Callable[[Event], None]


class Application:
    """What one application says of whoever carries the device."""

    def __init__(self, host: ContextHost, receive: Receive) -> None:
        self._host: Final = host
        self._receive: Final = receive
        self._contexts: Final[dict[str, tuple[int, Context]]] = {}

    def register(self, name: str, context: Context) -> None:
        """Register a context, or replace the one of this name."""
        checked = checked_attributes(context, frozenset())
        number = self._contexts[name][0] if name in self._contexts else self._host.new_number()
        self._contexts[name] = number, checked
        self._host.say(number, checked)

    def deregister(self, name: str) -> None:
        number, _ = self._contexts.pop(name)
        self._host.say(number, None)

    def hear(self, event: Event) -> bool:
        """Whether it was for one of its contexts."""
        if not addressed_by(event, (context for _, context in self._contexts.values())):
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
        assurance: AssuranceSettings | None = None,
    ) -> None:
        self._assurance: Final = assurance
        self._node = node
        self._interface: Final = interface
        self._refresh: Final = refresh
        self._applications: Final[list[Application]] = []
        self._current: Final[dict[int, Context]] = {}
        self._version = 0
        self._versions: Final[dict[int, int]] = {}
        self._numbers = 0
        self._seen: Final = Recent()
        self.refused = 0
        """Messages that were for nobody here."""

        self.malformed = 0

        self._host: Host
        self._endpoint: Endpoint | None = None

    def application(self, receive: Receive) -> Application:
        application = Application(self, receive)
        self._applications.append(application)
        return application

    def start(self, host: Host) -> None:
        self._host = host
        self._version = host.now()  # above those of an earlier life
        self._endpoint = AssuredEndpoint(host, self._interface, PORT, self._hear, TO_DEVICE, (Send,), self._assurance)
        host.timers.every(self._refresh, self._say_present, first=host.random("context host").uniform(0, self._refresh))
        self._register_all()

    def move_to(self, node: Address | None) -> None:
        """Another access network: leave the old one, enter the new one."""
        for number in self._current:
            self._say(number, None)
        self._node = node
        self._register_all()

    def publish(self, event: Event) -> None:
        self._send(Send(routed(event, self._host.name)))

    def new_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def say(self, number: int, context: Context | None) -> None:
        if context is None:
            self._current.pop(number, None)
        else:
            self._current[number] = context
        self._say(number, context)
        if context is None:
            del self._versions[number]

    def _say(self, number: int, context: Context | None) -> None:
        self._version += 1
        self._versions[number] = self._version
        self._send(Registration(number, self._version, None if context is None else attributes_tree(context)))

    def _register_all(self) -> None:
        for number, context in self._current.items():
            self._say(number, context)

    def _say_present(self) -> None:
        self._send(Present(tuple((number, self._versions[number]) for number in self._current), self._version))

    def _send(self, message: Message) -> None:
        if self._endpoint is not None and self._node is not None:
            self._endpoint.send(self._node, message)

    def _hear(self, _sender: Address, message: Any) -> None:
        if isinstance(message, RegisterAgain):
            self._register_all()
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
