"""Hosts on the radio: the engine's frames are their messages."""

from __future__ import annotations

from typing import Final

from nearcast.errors import InvalidInput
from nearcast.model.time import Instant
from nearcast.runtime.links import QUEUE_FULL, SENT
from nearcast.runtime.ports import Sending
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
from nearcast.runtime.simulation.radio.profile import RadioProfile
from nearcast.runtime.simulation.radio.reports import Acceptance, Outcome, Reports
from nearcast.runtime.simulation.radio.statistics import RadioStatistics

TOO_LARGE: Final = "too large"

_REASONS: Final = {
    Outcome.RETRIES_EXHAUSTED: "retries exhausted",
    Outcome.EXPIRED: "waited too long",
    Outcome.SWITCHED_OFF: "switched off",
}
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

        self._keys = 0
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
        payload = parcel.size - self.profile.frame_bytes(0)
        if payload > self.profile.longest_payload:
            return self._refuse(parcel, TOO_LARGE)
        self._keys += 1
        acceptance = self.engine.send(parcel.sender.node, to, payload, self._keys, self._nanoseconds(parcel.sent))
        if acceptance != Acceptance.DROPPED:
            self._on_air[self._keys] = parcel
        self._tell(self.engine.reports())
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
        for key, receiver, _ in reports.delivered:
            parcel, link = self._on_air[key], self._by_node[receiver]
            if self.hand_over(parcel, link):
                self._heard[key] = self._heard.get(key, 0) + 1
            elif parcel.receiver is not None:
                self._unheard[key] = why_unheard(link)
        for key, _, outcome in reports.completed:
            unheard = self._unheard.pop(key, None)
            self._complete(self._on_air.pop(key), Outcome(outcome), self._heard.pop(key, 0), unheard)

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
