"""A cellular network: every client has its own way to the core, up and down; brokers are in the core.

A message of a client waits in the client's uplink queue, is transmitted, and reaches the core after the uplink's latency.  A
message to a client reaches its base station after the downlink's latency, waits in the client's downlink queue, and is
transmitted.  From client to client it does both.  Infrastructure (brokers) is part of the core: no latency, no queue.

What the network has taken goes its way, whatever becomes of its sender.  As with UDP, it is for an address, not for a life of
the host: it is lost if the receiver is down at the instant of arrival, and whoever is up then gets it, also a host that
failed and came back meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from nearcast.model.time import Instant
from nearcast.runtime.links import QUEUE_FULL, RECEIVED, SENT, UNKNOWN_RECEIVER
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.cellular_outages import Coverage, coverage_of
from nearcast.runtime.simulation.cellular_profile import BYPASS, BearerProfile, CellularProfile
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network, Parcel, SimulatedLink, why_unheard

# Why a parcel never arrived, beside the reasons that all networks share.
CELL_OVERLOADED: Final = "cell overloaded"
NO_COVERAGE: Final = "no coverage"
TRANSMISSION_LOST: Final = "transmission lost"

DRAWN_AHEAD: Final = 32
"""Latencies that a bearer draws at a time."""


@dataclass(frozen=True, slots=True)
class CellularStatistics:
    clients: int
    infrastructure: int
    sent: int
    """Taken by the network; each of them was received, was lost, or is in flight."""

    received: int
    lost: Mapping[str, int]
    """By reason."""

    refused: Mapping[str, int]
    """By reason: the sender was told that nobody will get it."""

    in_flight: int


class TransmitQueue:
    """A queue before a channel of constant bandwidth, first come, first served, without any events.

    Its state is one instant, until which the channel is busy; the backlog follows from it.  Nanoseconds: a byte of a fast
    channel takes less than a microsecond.
    """

    __slots__ = ("_limit", "_nanoseconds_per_byte", "busy_until")

    def __init__(self, bandwidth: float | None, limit: int) -> None:
        self._nanoseconds_per_byte: Final = 8e9 / bandwidth if bandwidth else 0.0
        self._limit: Final = limit * self._nanoseconds_per_byte
        self.busy_until = 0

    def duration(self, size: int) -> int:
        """How long the transmission takes."""
        return int(size * self._nanoseconds_per_byte)

    def admit(self, now: int, size: int) -> int:
        """When the transmission will be over; -1 if the queue is full."""
        stay = int(size * self._nanoseconds_per_byte)
        if self.busy_until > now:
            stay += self.busy_until - now
        if stay > self._limit:
            return -1
        self.busy_until = departure = now + stay
        return departure


class Bearer:
    """One client's way through the air in one direction."""

    __slots__ = (
        "_ahead",
        "_latencies",
        "_latency",
        "_latest",
        "_ordered",
        "_random",
        "coverage",
        "hazardous",
        "loss",
        "queue",
    )

    def __init__(self, profile: BearerProfile, coverage: Coverage | None, random: Random, *, ordered: bool) -> None:
        self.queue: Final = TransmitQueue(profile.bandwidth, profile.queue_bytes)
        self.coverage: Final = coverage
        self.loss: Final = profile.loss
        self.hazardous: Final = coverage is not None or profile.loss > 0
        self._latency: Final = profile.latency
        self._random: Final = random
        # What becomes of a transmission is drawn from the same stream, in turns with latencies.
        self._ahead: Final = 1 if self.hazardous else DRAWN_AHEAD
        self._latencies: list[int] = []
        """Microseconds; the next one last."""

        self._ordered: Final = ordered
        self._latest = 0

    def arrival(self, start: Instant) -> Instant:
        """When what sets out at ``start`` is at the other end, by a latency of its own."""
        if not self._latencies:
            drawn = self._latency.samples(self._random, self._ahead)
            self._latencies = [int(seconds * 1e6) for seconds in reversed(drawn)]
        arrival = start + self._latencies.pop()
        if self._ordered:
            arrival = self._latest = max(arrival, self._latest)
        return arrival

    def fate(self, size: int, departure: int) -> str | None:
        """Why the transmission that ends at ``departure`` fails; None: it does not."""
        if self.coverage is not None and self.coverage.lacks(departure - self.queue.duration(size), departure):
            return NO_COVERAGE
        return TRANSMISSION_LOST if self._random.random() < self.loss else None


class _Station:
    """A host as the network sees it; infrastructure has no bearers.

    What is on its way down is a callback of the station that it is for: nobody has to look for it, and what a broker sends to
    many is one parcel.
    """

    __slots__ = ("_at", "_network", "_simulation", "address", "down", "link", "up")

    def __init__(self, network: CellularNetwork, link: SimulatedLink, up: Bearer | None, down: Bearer | None) -> None:
        self._network: Final = network
        self._simulation: Final = network.simulation
        self._at: Final = network.simulation.at
        self.link: Final = link
        self.address: Final = link.address
        self.up: Final = up
        self.down: Final = down

    def descend(self, parcel: Parcel) -> None:
        """From the core to this host."""
        now = self._simulation.time
        if self.down is not None:
            self._at(self.down.arrival(now), self.enter, parcel)
        elif now > parcel.sent:
            self.arrive(parcel)
        else:
            # From broker to broker, or over a network without any delay: never from inside the call that sent it.
            self._at(now, self.arrive, parcel)

    def enter(self, parcel: Parcel) -> None:
        """At its base station: through the shared queue, if there is one, and its own, in the order of arrival here."""
        downlink, cell = self.down, self._network.cell_down
        assert downlink is not None
        entry = self._simulation.time * 1_000
        if cell is not None:
            entry = cell.admit(entry, parcel.size)
            if entry < 0:
                self._fail((parcel, CELL_OVERLOADED))
                return
        departure = downlink.queue.admit(entry, parcel.size)
        if departure < 0:
            self._fail((parcel, QUEUE_FULL))
        elif downlink.hazardous and (reason := downlink.fate(parcel.size, departure)) is not None:
            self._at(-(-departure // 1_000), self._fail, (parcel, reason))
        else:
            self._at(-(-departure // 1_000), self.arrive, parcel)

    def arrive(self, parcel: Parcel) -> None:
        network, link = self._network, self.link
        if not network.hand_over(parcel, link):
            network.give_up(parcel, why_unheard(link), self.address)
            return
        # As ``note``, for what happens most often.
        network.messages(
            parcel.sent,
            self._simulation.time,
            network.interface,
            parcel.kind,
            parcel.sender.address,
            self.address,
            parcel.size,
            RECEIVED,
            1,
        )

    def _fail(self, failure: tuple[Parcel, str]) -> None:
        parcel, reason = failure
        self._network.fail(parcel, reason, self.address, self.address)


class CellularNetwork(Network):
    """The cellular network of one run; ``infrastructure`` names the hosts that are part of its core."""

    def __init__(
        self,
        simulation: Simulation,
        profile: CellularProfile = BYPASS,
        *,
        infrastructure: Collection[Address] = (),
        interface: str = "cellular",
        check_wire: bool = False,
    ) -> None:
        super().__init__(simulation, interface, local=False, overhead=profile.overhead, check_wire=check_wire)
        self.profile: Final = profile
        self._at: Final = simulation.at
        self._infrastructure: Final = frozenset(infrastructure)
        self._stations: Final[dict[Address | None, _Station]] = {}
        self._cell_up: Final = _cell(profile.uplink)
        self.cell_down: Final = _cell(profile.downlink)
        """The queue that all clients share on their way down, if they do."""

        self._lost: Final[Counter[str]] = Counter()
        self._refused: Final[Counter[str]] = Counter()

    def attach(self, host: str, node: int) -> SimulatedLink:
        link = super().attach(host, node)
        up = down = None
        if host not in self._infrastructure:
            up, down = self._bearers(host)
        self._stations[host] = _Station(self, link, up, down)
        return link

    def transmit(self, parcel: Parcel) -> Sending:
        receiver = self._stations.get(parcel.receiver)
        if receiver is None:
            return self._refuse(parcel, UNKNOWN_RECEIVER)
        uplink = self._stations[parcel.sender.address].up
        if uplink is not None:
            return self._ascend(parcel, uplink)
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        receiver.descend(parcel)
        return Sending.ACCEPTED

    def post_all(self, link: SimulatedLink, to: Iterable[Address], port: int, message: Message) -> None:
        """What a broker does all the time: as ``post``, with what is the same for all receivers done once."""
        if self._stations[link.address].up is not None or not link.up:
            super().post_all(link, to, port, message)
            return
        stations, at, taken = self._stations, self._at, 0
        parcel = self.parcel(link, None, port, message)
        now = parcel.sent
        for address in to:
            receiver = stations.get(address)
            if receiver is None or receiver.down is None:
                self.post(link, address, port, message)
            else:
                taken += 1
                at(receiver.down.arrival(now), receiver.enter, parcel)
        if taken:
            link.count(SENT, parcel.kind, parcel.size, taken)

    def lose(self, parcel: Parcel, reason: str) -> None:
        """Refuse it: only what nobody took is lost this way here."""
        self._refused[reason] += 1
        super().lose(parcel, reason)

    @property
    def in_flight(self) -> int:
        return self.statistics().in_flight

    def statistics(self) -> CellularStatistics:
        sent = received = 0
        for link in self.links.values():
            for (direction, _), (messages, _) in link.books.items():
                sent += messages if direction == SENT else 0
                received += messages if direction == RECEIVED else 0
        infrastructure = sum(station.up is None for station in self._stations.values())
        return CellularStatistics(
            clients=len(self._stations) - infrastructure,
            infrastructure=infrastructure,
            sent=sent,
            received=received,
            lost=dict(self._lost),
            refused=dict(self._refused),
            in_flight=sent - received - self._lost.total(),
        )

    def _bearers(self, host: str) -> tuple[Bearer, Bearer]:
        # Streams by direction: what a client receives does not change the latency of what it sends.
        stream, profile = self.simulation.random.stream, self.profile
        coverage = coverage_of(host, profile, self.simulation.start * 1_000, stream(self.interface, host, "coverage"))
        up = Bearer(profile.uplink, coverage, stream(self.interface, host, "up"), ordered=profile.ordered)
        down = Bearer(profile.downlink, coverage, stream(self.interface, host, "down"), ordered=profile.ordered)
        return up, down

    def _refuse(self, parcel: Parcel, reason: str) -> Sending:
        self.lose(parcel, reason)
        return Sending.DROPPED

    def _ascend(self, parcel: Parcel, uplink: Bearer) -> Sending:
        now = parcel.sent * 1_000
        if uplink.coverage is not None and uplink.coverage.lacks(now, now):
            return self._refuse(parcel, NO_COVERAGE)
        waits = uplink.queue.busy_until > now
        departure = uplink.queue.admit(now, parcel.size)
        if departure < 0:
            return self._refuse(parcel, QUEUE_FULL)
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        over = -(-departure // 1_000)
        # What happens on air happens at the end of the transmission: the sender must not know now.
        if uplink.hazardous and (reason := uplink.fate(parcel.size, departure)) is not None:
            self._at(over, self._fail_ascending, (parcel, reason))
        elif self._cell_up is not None:
            self._at(over, self._at_cell, parcel)
        else:
            self._at(uplink.arrival(over), self._in_core, parcel)
        return Sending.QUEUED if waits else Sending.ACCEPTED

    def _at_cell(self, parcel: Parcel) -> None:
        """Through the queue that all clients share on their way up."""
        cell, uplink = self._cell_up, self._stations[parcel.sender.address].up
        assert cell is not None
        assert uplink is not None
        departure = cell.admit(self.simulation.time * 1_000, parcel.size)
        if departure < 0:
            self._fail_ascending((parcel, CELL_OVERLOADED))
        else:
            self._at(uplink.arrival(-(-departure // 1_000)), self._in_core, parcel)

    def _in_core(self, parcel: Parcel) -> None:
        self._stations[parcel.receiver].descend(parcel)

    def _fail_ascending(self, failure: tuple[Parcel, str]) -> None:
        """On its way up."""
        parcel, reason = failure
        self.fail(parcel, reason, parcel.sender.address, parcel.receiver)

    def fail(self, parcel: Parcel, reason: str, host: Address, receiver: Address | None) -> None:
        """What was on its way to the receiver is lost, at that host's end."""
        self._drops(self.simulation.time, self.interface, host, parcel.kind, reason, 1, parcel.size)
        self.give_up(parcel, reason, receiver)

    def give_up(self, parcel: Parcel, reason: str, receiver: Address | None) -> None:
        self._lost[reason] += 1
        self.note(parcel, reason, 0, receiver)


def _cell(profile: BearerProfile) -> TransmitQueue | None:
    if profile.cell_bandwidth is None:
        return None
    return TransmitQueue(profile.cell_bandwidth, profile.cell_queue_bytes)
