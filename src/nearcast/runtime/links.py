"""What the links of both halves share: ports that are open, the books of every byte, and the words for what was lost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from nearcast.errors import InvalidInput
from nearcast.runtime.messages import Codec, Message
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import (
    Address,
    Endpoint,
    Link,
    Receive,
    ReceiveAll,
    ReceiveTogether,
    Repeated,
    Sending,
    U,
    Unacknowledged,
)

SENT: Final = "sent"
RECEIVED: Final = "received"

# Why a message never arrived; the words of the table ``drops``.
LINK_DOWN: Final = "link down"
RECEIVER_DOWN: Final = "receiver down"
NOBODY_LISTENS: Final = "nobody listens"
UNKNOWN_RECEIVER: Final = "unknown receiver"
QUEUE_FULL: Final = "queue full"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one kind of message over one interface of one host, in one direction (a row of ``traffic``)."""

    interface: str
    direction: str
    kind: str
    host: str
    messages: int
    bytes: int


Door = tuple[int, type[Message]]
"""A port, and a kind of message that comes in there."""

Late = tuple[Any, ReceiveAll[Any]]
"""Who may be told later, and by what function, together with others of its kind."""

Together = tuple[Any, ReceiveTogether[Any]]
"""Who may be told at the same time as others, and by what function."""

Listener = tuple[Receive, list[int], Late | None, Together | None]
"""Who gets what comes in at a door, the entry of the books for it, who may be told later, and who together with others."""


class OpenPort(Endpoint):
    """A port of a link on which somebody listens."""

    def __init__(self, link: PortedLink, port: int, receive: Receive, kinds: tuple[type[Message], ...]) -> None:
        self.link: Final = link
        self.port: Final = port
        self.receive: Final = receive
        self.kinds: Final = frozenset(kinds)
        self.codec: Final[Codec[Any]] = Codec(*kinds)
        self.late: Final[dict[type[Message], Late]] = {}
        self.jointly: Final[dict[type[Message], Together]] = {}
        self.group: Hashable | None = None
        """As ``once`` said last."""

        self.in_vain: Unacknowledged | None = None
        """Whom to tell of what was not acknowledged."""

        self._unread_before: Final = link.unread(port)

    def send(self, to: Address, message: Message) -> Sending:
        return self.link.post(to, self.port, message)

    def send_all(self, to: Iterable[Address], message: Message) -> None:
        self.link.post_all(to, self.port, message)

    def broadcast(self, message: Message) -> Sending:
        if not self.link.local:
            raise InvalidInput(f"{self.link.interface} reaches hosts by address only; it has no broadcast")
        return self.link.post(None, self.port, message)

    def later(self, kind: type[Message], receiver: U | None, receive_all: ReceiveAll[U]) -> None:
        if receiver is None:
            self.late.pop(kind, None)
        else:
            self.late[kind] = receiver, receive_all
        self.link.doors_changed()

    def together(self, kind: type[Message], receiver: U, receive_together: ReceiveTogether[U]) -> None:
        self.jointly[kind] = receiver, receive_together
        self.link.doors_changed()

    def repeater(self) -> Repeated:
        return self.link.repeater(self.port) or super().repeater()

    def once(self, group: Hashable | None) -> None:
        self.group = group
        self.link.once(self.port, group)

    def attend(self) -> None:
        self.link.attend()

    @property
    def unread(self) -> int:
        return self.link.unread(self.port) - self._unread_before

    def unacknowledged(self, in_vain: Unacknowledged) -> None:
        self.in_vain = in_vain

    def close(self) -> None:
        self.link.close(self)


class PortedLink(Link):
    """One host's interface, with its open ports and its books; it outlives failures of the host, its ports do not."""

    def __init__(self, interface: str, host: str, observers: Observers, *, local: bool) -> None:
        self.interface = interface
        self.observers: Final = observers
        self.local = local
        self.host: Final = host
        self.up = False
        self.books: Final[dict[tuple[str, str], list[int]]] = {}
        """(direction, kind) to [messages, bytes]."""

        self.listeners: Final[dict[Door, Listener]] = {}
        """Those that ``listener`` has found since the doors last changed."""

        self.open_ports: Final[dict[int, OpenPort]] = {}

    @abstractmethod
    def post(self, to: Address | None, port: int, message: Message) -> Sending:
        """Take a message from an open port; to ``None``: to whoever hears it."""

    def post_all(self, to: Iterable[Address], port: int, message: Message) -> None:
        """Take one message for several receivers."""
        for address in to:
            self.post(address, port, message)

    def repeater(self, port: int) -> Repeated | None:  # noqa: ARG002 - of no port
        """As ``Endpoint.repeater``; none: everything is handed over all the same."""
        return None

    def once(self, port: int, group: Hashable | None) -> None:
        """As ``Endpoint.once``."""

    def attend(self) -> None:
        """As ``Endpoint.attend``."""

    def unread(self, port: int) -> int:  # noqa: ARG002 - of no port
        """How many messages were only counted there."""
        return 0

    def open(self, port: int, receive: Receive, *kinds: type[Message]) -> Endpoint:
        if self.observers.watching:
            self.observers.refuse("open a port")
        if not 0 <= port <= 255:
            raise InvalidInput(f"port {port} is outside 0 to 255")
        if not kinds:
            raise InvalidInput(f"port {port} was opened for no kind of message; name those that it understands")
        if port in self.open_ports:
            raise InvalidInput(f"port {port} of {self.interface} is open already on host {self.host!r}")
        endpoint = OpenPort(self, port, receive, kinds)
        self.open_ports[port] = endpoint
        self.doors_changed()
        return endpoint

    def listener(self, door: Door, kind: str) -> Listener | None:
        """Who listens there to that kind; nobody does while the link is down."""
        port, message = door
        endpoint = self.open_ports.get(port)
        if endpoint is None or message not in endpoint.kinds:
            return None
        late, jointly = endpoint.late.get(message), endpoint.jointly.get(message)
        found = self.listeners[door] = (endpoint.receive, self.entry(RECEIVED, kind), late, jointly)
        return found

    def close(self, endpoint: OpenPort) -> None:
        if self.observers.watching:
            self.observers.refuse("close a port")
        if self.open_ports.get(endpoint.port) is endpoint:
            del self.open_ports[endpoint.port]
            self.doors_changed()

    def switch(self, on: bool) -> None:
        """Up when its host joins, down when it leaves or fails; going down closes all ports."""
        self.up = on
        if not on:
            self.open_ports.clear()
            self.doors_changed()

    def doors_changed(self) -> None:
        """A port was opened or closed, or what comes in there goes another way."""
        self.listeners.clear()

    def count(self, direction: str, kind: str, size: int, messages: int = 1) -> None:
        """Book so many messages of that size each."""
        entry = self.entry(direction, kind)
        entry[0] += messages
        entry[1] += messages * size

    def entry(self, direction: str, kind: str) -> list[int]:
        """Of the books."""
        try:
            return self.books[direction, kind]
        except KeyError:
            entry = self.books[direction, kind] = [0, 0]
            return entry

    def traffic(self) -> Iterator[Traffic]:
        """The books."""
        for (direction, kind), (messages, size) in self.books.items():
            yield Traffic(self.interface, direction, kind, self.host, messages, size)

    def total(self, way: str) -> tuple[int, int]:
        """Messages and bytes that went that way."""
        rows = [row for row in self.traffic() if row.direction == way]
        return sum(row.messages for row in rows), sum(row.bytes for row in rows)
