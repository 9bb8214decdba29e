"""What all simulated networks share: links with ports, delivery, and the books of every byte.

A network model decides when a parcel arrives and whether it does; here it is opened, counted and handed to whoever listens.
Messages pass as the frozen objects they are; with ``check_wire`` they pass through the encoder, as they would live.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final

from nearcast.errors import UnknownName
from nearcast.model.time import Instant
from nearcast.runtime.energy import EnergyProfile, Spent
from nearcast.runtime.links import (
    LINK_DOWN,
    NOBODY_LISTENS,
    QUEUE_FULL,
    RECEIVED,
    RECEIVER_DOWN,
    SENT,
    UNKNOWN_RECEIVER,
    PortedLink,
    Traffic,
)
from nearcast.runtime.messages import PORT_BYTES, Message, encoded, kind_of
from nearcast.runtime.ports import Address, Repeated, Sending
from nearcast.runtime.simulation.kernel import Simulation

# A network model needs the words of the books too.
__all__ = [
    "LINK_DOWN",
    "NOBODY_LISTENS",
    "QUEUE_FULL",
    "RECEIVED",
    "RECEIVER_DOWN",
    "SENT",
    "UNKNOWN_RECEIVER",
    "Network",
    "Parcel",
    "SimulatedLink",
    "Traffic",
    "why_unheard",
]


MOST_MEASURED: Final = 1_024


class Parcel:
    """A message on its way."""

    __slots__ = ("door", "kind", "message", "receiver", "sender", "sent", "size")

    def __init__(
        self,
        sender: SimulatedLink,
        receiver: Address | None,
        port: int,
        message: Message,
        kind: str,
        size: int,
        sent: Instant,
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        """None: whoever hears it, or several."""

        self.door = port, type(message)
        self.message = message
        self.kind = kind
        self.size = size
        """Bytes on the wire, what the network adds included."""

        self.sent = sent


class SimulatedLink(PortedLink):
    """One host's interface to a network."""

    def __init__(self, network: Network, host: str, node: int) -> None:
        super().__init__(network.interface, host, network.simulation.observers, local=network.local)
        self.network: Final = network
        self.address = host
        self.node: Final = node
        """The row of this host in tables by node number."""

        self._listened = 0
        self._listening_since: Instant | None = None

    @property
    def listened(self) -> int:
        """For how many microseconds somebody listened here, on whatever port: for that long the radio was on."""
        since = self._listening_since
        return self._listened + (0 if since is None else self.network.simulation.time - since)

    def post(self, to: Address | None, port: int, message: Message) -> Sending:
        return self.network.post(self, to, port, message)

    def post_all(self, to: Iterable[Address], port: int, message: Message) -> None:
        self.network.post_all(self, to, port, message)

    def repeater(self, port: int) -> Repeated | None:
        return self.network.repeater(self, port)

    def once(self, port: int, group: Hashable | None) -> None:
        self.network.once(self, port, group)

    def attend(self) -> None:
        self.network.attend(self)

    def unread(self, port: int) -> int:
        return self.network.unread(self, port)

    def switch(self, on: bool) -> None:
        super().switch(on)
        self.network.switched(self, on)

    def doors_changed(self) -> None:
        super().doors_changed()
        self.network.doors_changed(self)
        if bool(self.open_ports) != (self._listening_since is not None):
            self._listened = self.listened
            self._listening_since = self.network.simulation.time if self.open_ports else None


def why_unheard(receiver: SimulatedLink) -> str:
    """The reason why ``hand_over`` just answered no."""
    return NOBODY_LISTENS if receiver.up else RECEIVER_DOWN


class Network(ABC):
    """A model of a network, with the books of its links.

    It must be made after all observers were added: it binds to them once.
    """

    def __init__(self, simulation: Simulation, interface: str, *, local: bool, overhead: int, check_wire: bool) -> None:
        self.simulation: Final = simulation
        self.interface: Final = interface
        self.local: Final = local
        self.energy: EnergyProfile | None = None
        """What it costs the batteries of its hosts, where that is known."""

        self.links: Final[dict[Address, SimulatedLink]] = {}
        self._overhead: Final = overhead + PORT_BYTES
        self.check_wire: Final = check_wire
        self.messages: Callable[..., None] = simulation.observers.emitter("messages")
        """Takes the rows of messages whose fate is known (``note``)."""

        self._drops: Final = simulation.observers.emitter("drops")
        self._measured: Final[dict[int, tuple[Message, str, int]]] = {}
        """By identity: lately sent messages, of what kind they are, and how large."""

    def attach(self, host: str, node: int) -> SimulatedLink:
        """The interface of a host to this network; it is down at first."""
        if host in self.links:
            raise UnknownName(f"there is a host {host!r} on {self.interface} already; give each its own name")
        link = self.links[host] = SimulatedLink(self, host, node)
        return link

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """Parcels whose fate is not known yet."""

    @abstractmethod
    def transmit(self, parcel: Parcel) -> Sending:
        """Take a parcel from a link that is up; later call ``arrive`` or ``lose``, once for each receiver.

        Whoever answers DROPPED has called ``lose``.
        """

    def switched(self, link: SimulatedLink, on: bool) -> None:
        """A link went up or down."""

    def doors_changed(self, link: SimulatedLink) -> None:
        """Somebody else may listen there, or in another way."""
        self.attend(link)

    def repeater(self, link: SimulatedLink, port: int) -> Repeated | None:  # noqa: ARG002 - not for all networks
        """To be told that whoever listens there needs no more messages of a name (``Endpoint.repeater``)."""
        return None

    def once(self, link: SimulatedLink, port: int, group: Hashable | None) -> None:
        """Whoever listens there needs each message of a group once (``Endpoint.once``)."""

    def attend(self, link: SimulatedLink) -> None:
        """From now on it needs all of them again."""

    def unread(self, link: SimulatedLink, port: int) -> int:  # noqa: ARG002 - where all are handed over, none
        """How many were only counted since the run began."""
        return 0

    def post(self, link: SimulatedLink, to: Address | None, port: int, message: Message) -> Sending:
        parcel = self.parcel(link, to, port, message)
        if not link.up:
            self.lose(parcel, LINK_DOWN)
            return Sending.DROPPED
        return self.transmit(parcel)

    def post_all(self, link: SimulatedLink, to: Iterable[Address], port: int, message: Message) -> None:
        for address in to:
            self.post(link, address, port, message)

    def parcel(self, link: SimulatedLink, to: Address | None, port: int, message: Message) -> Parcel:
        """Pack a message, if whoever sends it may."""
        if self.simulation.observers.watching:
            self.simulation.observers.refuse("send a message")
        # What is sent again, to several, or from one to the next, is measured once.
        measured = self._measured.get(id(message))
        if measured is None or measured[0] is not message:
            if len(self._measured) >= MOST_MEASURED:
                self._measured.clear()
            measured = message, kind_of(message), len(encoded(message)) + self._overhead
            self._measured[id(message)] = measured
        return Parcel(link, to, port, message, measured[1], measured[2], self.simulation.time)

    def arrive(self, parcel: Parcel, receiver: SimulatedLink) -> None:
        """The parcel reached the one it was sent to, now."""
        if self.hand_over(parcel, receiver):
            self.note(parcel, RECEIVED, 1)
        else:
            self.note(parcel, why_unheard(receiver), 0)

    def lose(self, parcel: Parcel, reason: str) -> None:
        """It reached nobody, and will not."""
        self._drops(self.simulation.time, self.interface, parcel.sender.address, parcel.kind, reason, 1, parcel.size)
        self.note(parcel, reason, 0)

    def hand_over(self, parcel: Parcel, receiver: SimulatedLink) -> bool:
        """Give it to whoever listens; false if nobody could.  The row of the message is for whoever knows its whole fate."""
        listener = receiver.listeners.get(parcel.door) or receiver.listener(parcel.door, parcel.kind)
        if listener is None:
            reason = why_unheard(receiver)
            self._drops(self.simulation.time, self.interface, receiver.address, parcel.kind, reason, 1, parcel.size)
            return False
        receive, entry, _, _ = listener
        entry[0] += 1
        entry[1] += parcel.size
        receive(parcel.sender.address, self._rewritten(parcel, receiver) if self.check_wire else parcel.message)
        return True

    def _rewritten(self, parcel: Parcel, receiver: SimulatedLink) -> Message:
        """The message as it comes out of its bytes."""
        port, _ = parcel.door
        message: Message = receiver.open_ports[port].codec.decoded(encoded(parcel.message))
        return message

    def note(self, parcel: Parcel, outcome: str, received: int, receiver: Address | None = None) -> None:
        """The row of a message whose fate is known: what became of it, and how many got it.

        ``receiver`` is one of the several that the parcel was for.
        """
        self.messages(
            parcel.sent,
            self.simulation.time,
            self.interface,
            parcel.kind,
            parcel.sender.address,
            receiver or parcel.receiver,
            parcel.size,
            outcome,
            received,
        )

    def traffic(self) -> Iterator[Traffic]:
        """The books of all links."""
        self.simulation.backlog.catch_up()
        for link in self.links.values():
            yield from link.traffic()

    def spent(self) -> Iterator[tuple[SimulatedLink, Spent]]:
        """What each link has cost; nothing where no costs are known."""
        if self.energy is None:
            return
        rows: dict[str, list[Traffic]] = {}
        for row in self.traffic():
            rows.setdefault(row.host, []).append(row)
        for link in self.links.values():
            yield link, self.energy.spent(rows.get(link.host, ()), link.listened)
