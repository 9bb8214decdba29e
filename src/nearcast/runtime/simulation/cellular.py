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
from typing import Final

from nearcast.runtime.links import QUEUE_FULL, RECEIVED, SENT, UNKNOWN_RECEIVER
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.cellular_bearer import CELL_OVERLOADED, NO_COVERAGE, Bearer, cell_queue
from nearcast.runtime.simulation.cellular_downlinks import Downlinks, SteppedDownlinks
from nearcast.runtime.simulation.cellular_foresight import ForeseenDownlinks, stride_of
from nearcast.runtime.simulation.cellular_late import LateClients
from nearcast.runtime.simulation.cellular_outages import coverage_of
from nearcast.runtime.simulation.cellular_profile import BYPASS, CellularProfile
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Network, Parcel, SimulatedLink, why_unheard

CORE: Final = -1
"""The downlink of infrastructure: it has none."""


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


class _Station:
    """A host as the network sees it; infrastructure has no bearers."""

    __slots__ = ("_network", "_simulation", "address", "downlink", "link", "up")

    def __init__(self, network: CellularNetwork, link: SimulatedLink, up: Bearer | None) -> None:
        self._network: Final = network
        self._simulation: Final = network.simulation
        self.link: Final = link
        self.address: Final = link.address
        self.up: Final = up
        self.downlink = CORE
        """The number that it has there."""

    def descend(self, parcel: Parcel) -> None:
        """From the core to this host."""
        if self.downlink != CORE:
            self._network.downlinks.send([self.downlink], parcel)
        elif self._simulation.time > parcel.sent:
            self.arrive(parcel)
        else:
            # From broker to broker, or over a network without any delay: never from inside the call that sent it.
            self._simulation.at(self._simulation.time, self.arrive, parcel, apart=True)

    def arrive(self, parcel: Parcel) -> None:
        network = self._network
        if self.downlink != CORE:  # in the core nobody minds what clients do not know yet
            self._simulation.backlog.catch_up()
        if not network.hand_over(parcel, self.link):
            network.give_up(parcel, why_unheard(self.link), self.address)
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

    def fail(self, failure: tuple[Parcel, str]) -> None:
        """It was lost on its way down."""
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
        self._late: Final = LateClients(simulation, self.interface)
        self.downlinks: Final = self._made_downlinks()
        self._at: Final = simulation.at
        self._infrastructure: Final = frozenset(infrastructure)
        self._stations: Final[dict[Address | None, _Station]] = {}
        self._cell_up: Final = cell_queue(profile.uplink)
        self._lost: Final[Counter[str]] = Counter()
        self._refused: Final[Counter[str]] = Counter()

    def _made_downlinks(self) -> Downlinks:
        if not stride_of(self.profile):
            return SteppedDownlinks(self.simulation, self.profile)
        downlinks = ForeseenDownlinks(self.simulation, self.profile, self._late.tell)
        self._late.behind, self.messages = downlinks.behind, self._late.note
        return downlinks

    def attach(self, host: str, node: int) -> SimulatedLink:
        link = super().attach(host, node)
        if host in self._infrastructure:
            self._stations[host] = _Station(self, link, None)
            return link
        # Streams by direction: what a client receives does not change the latency of what it sends.
        stream, profile = self.simulation.random.stream, self.profile
        coverage = coverage_of(host, profile, self.simulation.start * 1_000, stream(self.interface, host, "coverage"))
        up = Bearer(profile.uplink, coverage, stream(self.interface, host, "up"), ordered=profile.ordered)
        station = self._stations[host] = _Station(self, link, up)
        station.downlink = self.downlinks.add(station, coverage, stream(self.interface, host, "down"))
        self._late.links.append(link)
        return link

    def doors_changed(self, link: SimulatedLink) -> None:
        station = self._stations[link.address]
        if station.downlink != CORE and not self.check_wire:
            self.downlinks.later(station.downlink, self._late.door_of(link))

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
        stations, receivers = self._stations, list[int]()
        parcel = self.parcel(link, None, port, message)
        for address in to:
            receiver = stations.get(address)
            if receiver is None or receiver.downlink == CORE:
                self.post(link, address, port, message)
            else:
                receivers.append(receiver.downlink)
        if receivers:
            link.count(SENT, parcel.kind, parcel.size, len(receivers))
            self.downlinks.send(receivers, parcel)

    def lose(self, parcel: Parcel, reason: str) -> None:
        """Refuse it: only what nobody took is lost this way here."""
        self._refused[reason] += 1
        super().lose(parcel, reason)

    @property
    def in_flight(self) -> int:
        return self.statistics().in_flight

    def statistics(self) -> CellularStatistics:
        self.simulation.backlog.catch_up()
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
            self._at(over, self._fail_ascending, (parcel, reason), apart=True)
        elif self._cell_up is not None:
            self._at(over, self._at_cell, parcel, apart=True)
        else:
            self._at(uplink.arrival(over), self._in_core, parcel, apart=True)
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
            self._at(uplink.arrival(-(-departure // 1_000)), self._in_core, parcel, apart=True)

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
