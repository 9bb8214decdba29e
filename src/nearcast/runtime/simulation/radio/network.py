"""Hosts on the radio: the engine's frames are their messages."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.links import QUEUE_FULL, SENT, Traffic
from nearcast.runtime.ports import Repeated, Sending
from nearcast.runtime.simulation.kernel import NEVER, Engine, Simulation
from nearcast.runtime.simulation.motion import Motion
from nearcast.runtime.simulation.network import (
    RECEIVED,
    UNKNOWN_RECEIVER,
    Network,
    Parcel,
    SimulatedLink,
    why_unheard,
)
from nearcast.runtime.simulation.radio.engine import BROADCAST, RadioEngine
from nearcast.runtime.simulation.radio.layout import DOORS, KNOWN, UNREAD, Int32s
from nearcast.runtime.simulation.radio.profile import RadioProfile
from nearcast.runtime.simulation.radio.reports import Acceptance, Outcome, Reports
from nearcast.runtime.simulation.radio.statistics import RadioStatistics

TOO_LARGE: Final = "too large"

_REASONS: Final = {
    Outcome.RETRIES_EXHAUSTED: "retries exhausted",
    Outcome.EXPIRED: "waited too long",
    Outcome.SWITCHED_OFF: "switched off",
}
_OUTCOMES: Final = tuple(Outcome)
_SENDING: Final = {Acceptance.ACCEPTED: Sending.ACCEPTED, Acceptance.QUEUED: Sending.QUEUED}


class RadioNetwork(Network, Engine):
    """A local network: addressed messages and broadcasts to whoever is near enough.

    The engine counts nanoseconds from the start of the run; what it reports, hosts hear at the next whole microsecond.
    """

    def __init__(
        self,
        simulation: Simulation,
        profile: RadioProfile,
        motion: Motion,
        *,
        interface: str = "wifi",
        check_wire: bool = False,
    ) -> None:
        super().__init__(simulation, interface, local=True, overhead=profile.frame_bytes(0), check_wire=check_wire)
        self.profile: Final = profile
        self.energy = profile.energy
        self.engine: Final = RadioEngine(
            profile, motion.table, simulation.random.number(interface) % 2**63, start_us=simulation.start
        )
        # Not every host has this radio, and those that have it are not up yet.
        for node in range(len(motion.table)):
            self.engine.power(node, on=False, at_ns=0)
        self._by_node: Final[dict[int, SimulatedLink]] = {}
        self._on_air: Final[dict[int, Parcel]] = {}
        self._heard: Final[dict[int, int]] = {}
        self._unheard: Final[dict[int, str]] = {}
        """Why what came to the one it was for was of no use there; what was acknowledged may be among it."""

        self._headers: Final = profile.frame_bytes(0)
        self._longest: Final = profile.longest_payload
        self._keys = 0
        self._copies: Final[dict[tuple[int, Hashable], int]] = {}
        """The numbers of messages that go from host to host, by port and what they say of themselves; the newest."""

        self._numbers = 0
        self._doors: Final[dict[tuple[int, str], int]] = {}
        """Ports and kinds of messages of which copies are only counted, with their places in the engine's books."""

        self._knowing: Final[dict[int, Int32s]] = {}
        self._booked: Final = self.engine.unread.copy()
        simulation.add_engine(self)

    def attach(self, host: str, node: int) -> SimulatedLink:
        link = super().attach(host, node)
        self._by_node[node] = link
        return link

    def transmit(self, parcel: Parcel) -> Sending:
        to = BROADCAST
        if parcel.receiver is not None:
            if parcel.receiver not in self.links:
                return self._refuse(parcel, UNKNOWN_RECEIVER)
            to = self.links[parcel.receiver].node
            if to == parcel.sender.node:
                raise InvalidInput(f"host {parcel.receiver!r} sent a message over {self.interface} to itself")
        payload = parcel.size - self._headers
        if payload > self._longest:
            return self._refuse(parcel, TOO_LARGE)
        self._keys += 1
        copy, door = self._copy(parcel)
        sender, now = parcel.sender.node, self._nanoseconds(parcel.sent)
        acceptance = self.engine.send(sender, to, payload, self._keys, now, copy=copy, door=door)
        if acceptance != Acceptance.DROPPED:
            self._on_air[self._keys] = parcel
        if self.engine.reporting:
            self._tell(self.engine.reports())
        else:
            self._update()
        return self._refuse(parcel, QUEUE_FULL) if acceptance == Acceptance.DROPPED else _SENDING[acceptance]

    def switched(self, link: SimulatedLink, on: bool) -> None:
        self.engine.power(link.node, on, self._nanoseconds(self.simulation.time))
        self._tell(self.engine.reports())

    def step(self, limit: Instant) -> None:
        """Everything strictly before ``limit``, up to the first instant at which somebody is to be told."""
        reached = self.engine.advance(self._nanoseconds(limit) - 1)
        reports = self.engine.reports()
        if reports.delivered or reports.completed:
            self.simulation.jump(self.simulation.start + -(-reached // 1_000))
        self._tell(reports)

    def _tell(self, reports: Reports) -> None:
        """Hand over what arrived, and write down what became of frames (also of those that waited when a station went off)."""
        self._update()
        on_air, by_node, heard, hand_over = self._on_air, self._by_node, self._heard, self.hand_over
        for key, receiver, _ in reports.delivered:
            parcel, link = on_air[key], by_node[receiver]
            if hand_over(parcel, link):
                heard[key] = heard.get(key, 0) + 1
            elif parcel.receiver is not None:
                self._unheard[key] = why_unheard(link)
        for key, _, outcome in reports.completed:
            unheard = self._unheard.pop(key, None)
            count = heard.pop(key, 0) + (outcome >> UNREAD)
            self._complete(on_air.pop(key), _OUTCOMES[outcome & (1 << UNREAD) - 1], count, unheard)

    # Copies that need not be read

    def repeater(self, link: SimulatedLink, port: int) -> Repeated | None:
        number_of, known = self._copies.get, self.engine.known(link.node)
        self._knowing[link.node] = known

        def repeated(name: Hashable) -> None:
            number = number_of((port, name))
            if number is not None:
                known[number % KNOWN] = number

        return repeated

    def attend(self, link: SimulatedLink) -> None:
        if link.node in self._knowing:
            self._knowing[link.node][:] = 0

    def unread(self, link: SimulatedLink, port: int) -> int:
        doors = [place for (known, _), place in self._doors.items() if known == port]
        return int(self.engine.unread[link.node, doors, 0].sum())

    def traffic(self) -> Iterator[Traffic]:
        fresh = self.engine.unread - self._booked
        self._booked[:] = self.engine.unread
        for (_, kind), place in self._doors.items():
            for node, link in self._by_node.items():
                if fresh[node, place, 0]:
                    entry = link.entry(RECEIVED, kind)
                    entry[0] += int(fresh[node, place, 0])
                    entry[1] += int(fresh[node, place, 1])
        return super().traffic()

    def _copy(self, parcel: Parcel) -> tuple[int, int]:
        """The number of the message of which a parcel is a copy, and its place in the books; 0 if it has no copies."""
        name = getattr(parcel.message, "repetition", None)
        if name is None:
            return 0, 0
        port, _ = parcel.door
        door = self._doors.get((port, parcel.kind))
        if door is None:
            if len(self._doors) == DOORS:
                return 0, 0
            door = self._doors[port, parcel.kind] = len(self._doors)
        number = self._copies.get((port, name))
        if number is None:
            self._numbers += 1
            number = self._copies[port, name] = self._numbers
            if len(self._copies) > KNOWN:
                del self._copies[next(iter(self._copies))]
        return number, door

    @property
    def in_flight(self) -> int:
        return len(self._on_air)

    def statistics(self) -> RadioStatistics:
        return self.engine.statistics()

    def _complete(self, parcel: Parcel, outcome: Outcome, heard: int, unheard: str | None) -> None:
        lost = outcome in _REASONS and not heard and unheard is None
        # Booked once if it has been on air, however often it was tried: the engine counts attempts.
        if not lost or outcome is Outcome.RETRIES_EXHAUSTED:
            parcel.sender.count(SENT, parcel.kind, parcel.size)
        if lost:
            self.lose(parcel, _REASONS[outcome])
            return
        self.note(parcel, unheard or (SENT if parcel.receiver is None else RECEIVED), heard)

    def _refuse(self, parcel: Parcel, reason: str) -> Sending:
        self.lose(parcel, reason)
        return Sending.DROPPED

    def _update(self) -> None:
        due = self.engine.next_ns
        self.next = NEVER if due >= NEVER else self.simulation.start + due // 1_000

    def _nanoseconds(self, time: Instant) -> int:
        return (time - self.simulation.start) * 1_000
