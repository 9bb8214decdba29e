"""Wires between hosts that have addresses: the internet as an overlay sees it.

Every host can send to every other.  Each message takes a time of its own, so one may overtake another; some are lost; and a
cut, between two hosts or two sets of them, takes all that would cross it until it heals.  Nobody is told of either: IP does not
say.  Queues and bandwidth are left out: between routers it is distance that takes time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.links import RECEIVED, SENT, UNKNOWN_RECEIVER
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.distributions import Distribution, Uniform
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network, Parcel, SimulatedLink, why_unheard

LOST: Final = "lost"
CUT: Final = "cut"

DRAWN_AT_ONCE: Final = 32
"""Delays of one sender; one by one they take longer."""

_ACROSS_A_COUNTRY: Final = Uniform(0.01, 0.05)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """What the way between two hosts is like, in either direction."""

    delay: Distribution = _ACROSS_A_COUNTRY
    """Seconds; the documents give none."""

    loss: float = 0.0
    """The probability that a message is lost."""

    def __post_init__(self) -> None:
        if self.delay.least < 0:
            raise InvalidInput(f"a delay cannot be negative, but {self.delay} can; truncate it at 0")
        if not 0 <= self.loss <= 1:
            raise InvalidInput(f"loss is a probability between 0 and 1, not {self.loss!r}")


@dataclass(frozen=True, slots=True)
class WiredStatistics:
    sent: int
    """Taken by the network; each of them was received, was lost, or is in flight."""

    received: int
    lost: Mapping[str, int]
    """By reason."""

    in_flight: int


class Cut:
    """Nothing passes between the two sides, until it heals."""

    __slots__ = ("_network", "one", "other")

    def __init__(self, network: WiredNetwork, one: frozenset[Address], other: frozenset[Address] | None) -> None:
        self._network: Final = network
        self.one: Final = one
        self.other: Final = other
        """None: everybody else."""

    def parts(self, sender: Address, receiver: Address) -> bool:
        if self.other is None:
            return (sender in self.one) != (receiver in self.one)
        return (sender in self.one and receiver in self.other) or (sender in self.other and receiver in self.one)

    def heal(self) -> None:
        """Messages pass again; healing twice is fine."""
        self._network.heal(self)


class WiredNetwork(Network):
    """All wires are alike but those that ``lay`` was told of."""

    def __init__(
        self,
        simulation: Simulation,
        wire: Wire | None = None,
        *,
        overhead: int = 28,
        interface: str = "wired",
        check_wire: bool = False,
    ) -> None:
        super().__init__(simulation, interface, local=False, overhead=overhead, check_wire=check_wire)
        self._wire: Final = wire or Wire()
        self._wires: Final[dict[tuple[Address, Address], Wire]] = {}
        self._cuts: Final[list[Cut]] = []
        self._random: Final[dict[Address, tuple[Random, list[int]]]] = {}
        """By sender: its numbers, and delays that are drawn already."""

        self._lost: Final[Counter[str]] = Counter()
        self._in_flight = 0

    def attach(self, host: str, node: int) -> SimulatedLink:
        link = super().attach(host, node)
        # By sender: what others send does not change how long this host's messages take.
        self._random[host] = self.simulation.random.stream(self.interface, host), []
        return link

    def lay(self, one: Address, other: Address, wire: Wire) -> None:
        """From now on the way between these two is like that."""
        self._wires[one, other] = self._wires[other, one] = wire

    def cut(self, one: Iterable[Address], other: Iterable[Address] | None = None) -> Cut:
        """Part these hosts from those, or from everybody else; also what is on its way is lost if it would arrive meanwhile."""
        cut = Cut(self, frozenset(one), None if other is None else frozenset(other))
        self._cuts.append(cut)
        return cut

    def heal(self, cut: Cut) -> None:
        if cut in self._cuts:
            self._cuts.remove(cut)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def transmit(self, parcel: Parcel) -> Sending:
        sender, to = parcel.sender, parcel.receiver
        receiver = self.links.get(to) if to is not None else None
        if receiver is None:
            self.lose(parcel, UNKNOWN_RECEIVER)
            return Sending.DROPPED
        entry = sender.books.get((SENT, parcel.kind)) or sender.entry(SENT, parcel.kind)
        entry[0] += 1
        entry[1] += parcel.size
        random, drawn = self._random[sender.address]
        # Drawn in any case: a cut does not change the times of what is sent after it.
        laid = self._wires.get((sender.address, receiver.address)) if self._wires else None
        if laid is not None:
            wire, microseconds = laid, round(laid.delay.sample(random) * MICROSECONDS)
        else:
            wire = self._wire
            if not drawn:
                drawn.extend(round(delay * MICROSECONDS) for delay in wire.delay.samples(random, DRAWN_AT_ONCE))
            microseconds = drawn.pop()
        if wire.loss and random.random() < wire.loss:
            self._fail(parcel, sender, LOST)
        elif self._cuts and self._parted(parcel):
            self._fail(parcel, sender, CUT)
        else:
            self._in_flight += 1
            self.simulation.at(parcel.sent + microseconds, self._arrive, (parcel, receiver))
        return Sending.ACCEPTED

    def statistics(self) -> WiredStatistics:
        sent = received = 0
        for link in self.links.values():
            for (direction, _), (messages, _) in link.books.items():
                sent += messages if direction == SENT else 0
                received += messages if direction == RECEIVED else 0
        return WiredStatistics(sent, received, dict(self._lost), self._in_flight)

    def _arrive(self, on_its_way: tuple[Parcel, SimulatedLink]) -> None:
        parcel, receiver = on_its_way
        self._in_flight -= 1
        if self._cuts and self._parted(parcel):
            self._fail(parcel, receiver, CUT)
        elif self.hand_over(parcel, receiver):
            # As ``note``, for what happens most often.
            self.messages(
                parcel.sent,
                self.simulation.time,
                self.interface,
                parcel.kind,
                parcel.sender.address,
                parcel.receiver,
                parcel.size,
                RECEIVED,
                1,
            )
        else:
            # ``hand_over`` has told of the drop already.
            self._lost[why_unheard(receiver)] += 1
            self.note(parcel, why_unheard(receiver), 0)

    def _parted(self, parcel: Parcel) -> bool:
        sender, receiver = parcel.sender.address, parcel.receiver
        assert receiver is not None
        return any(cut.parts(sender, receiver) for cut in self._cuts)

    def _fail(self, parcel: Parcel, at: SimulatedLink, reason: str) -> None:
        self._lost[reason] += 1
        self._drops(self.simulation.time, self.interface, at.address, parcel.kind, reason, 1, parcel.size)
        self.note(parcel, reason, 0)
