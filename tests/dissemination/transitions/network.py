"""A network for runs that are compared with each other although they send different messages.

What a message suffers depends on nothing but who sends it to whom, and when: so whatever two runs both send at one instant
arrives at one instant.  Latencies are drawn anew for every instant, so messages overtake each other all the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from hashlib import blake2b
from typing import Final

from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SENT, UNKNOWN_RECEIVER, Network, Parcel, SimulatedLink

Tap = Callable[[Instant, Address, Address, Message], None]
"""Told when, from whom, to whom, and what."""


class JitterNetwork(Network):
    """Latencies uniform between two bounds, no queues; messages of some kinds may be lost."""

    def __init__(
        self,
        simulation: Simulation,
        seed: int,
        *,
        latency: tuple[float, float] = (0.02, 0.4),
        lossy: Collection[str] = (),
        loss: float = 0.0,
        sent: Tap,
        received: Tap,
    ) -> None:
        super().__init__(simulation, "cellular", local=False, overhead=0, check_wire=True)
        self._seed: Final = seed
        self._least: Final = latency[0]
        self._spread: Final = latency[1] - latency[0]
        self._lossy: Final = lossy
        self._loss: Final = loss
        self._sent: Final = sent
        self._received: Final = received
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def latency(self, sender: Address, receiver: Address, now: Instant) -> int:
        """Microseconds."""
        return round((self._least + self._spread * self._draw("latency", sender, receiver, now)) * MICROSECONDS)

    def transmit(self, parcel: Parcel) -> Sending:
        sender, receiver, now = parcel.sender.address, parcel.receiver, self.simulation.time
        if receiver is None or receiver not in self.links:
            self.lose(parcel, UNKNOWN_RECEIVER)
            return Sending.DROPPED
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        self._sent(now, sender, receiver, parcel.message)
        if parcel.kind in self._lossy and self._draw("loss", sender, receiver, now) < self._loss:
            self.lose(parcel, "lost")
            return Sending.ACCEPTED
        self._in_flight += 1
        arrival = now + self.latency(sender, receiver, now)
        self.simulation.at(arrival, self._arrived, (parcel, self.links[receiver]))
        return Sending.ACCEPTED

    def _arrived(self, underway: tuple[Parcel, SimulatedLink]) -> None:
        parcel, receiver = underway
        self._in_flight -= 1
        if receiver.up:
            self._received(self.simulation.time, parcel.sender.address, receiver.address, parcel.message)
        self.arrive(parcel, receiver)

    def _draw(self, *what: object) -> float:
        digest = blake2b(repr((self._seed, *what)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64
