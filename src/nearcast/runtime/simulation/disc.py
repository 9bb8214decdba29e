"""A radio without contention: whoever is within its range hears everything, nobody else hears anything.

So STEAM emulated its radios (5: "an entity discards all communication messages received from entities located beyond T_R"), and so
closed forms see a network.  What collisions and fading do to a mechanism, ``radio`` tells.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.runtime.links import SENT, UNKNOWN_RECEIVER
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.motion import Motion, positions
from nearcast.runtime.simulation.network import Network, Parcel, SimulatedLink

OUT_OF_RANGE: Final = "out of range"


class DiscNetwork(Network):
    """Messages arrive ``delay`` microseconds after they were sent, at those who were near enough then."""

    def __init__(
        self,
        simulation: Simulation,
        motion: Motion,
        radius: float,
        *,
        delay: int = 1_000,
        interface: str = "wifi",
        check_wire: bool = False,
    ) -> None:
        super().__init__(simulation, interface, local=True, overhead=0, check_wire=check_wire)
        if not radius > 0 or delay < 0:
            raise InvalidInput(f"a radio with a range of {radius} m and a delay of {delay} µs cannot be")
        self.radius: Final = radius
        self._delay: Final = delay
        self._motion: Final = motion
        self._x: Final = np.zeros(len(motion.table))
        self._y: Final = np.zeros(len(motion.table))
        self._nodes: Final[dict[int, SimulatedLink]] = {}
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        return self._in_flight

    def attach(self, host: str, node: int) -> SimulatedLink:
        link = self._nodes[node] = super().attach(host, node)
        return link

    def transmit(self, parcel: Parcel) -> Sending:
        heard = self.neighbours(parcel.sender)
        if parcel.receiver is not None:
            heard = [link for link in heard if link.address == parcel.receiver]
            if not heard:
                self.lose(parcel, OUT_OF_RANGE if parcel.receiver in self.links else UNKNOWN_RECEIVER)
                return Sending.DROPPED
        parcel.sender.count(SENT, parcel.kind, parcel.size)
        self._in_flight += 1
        self.simulation.at(self.simulation.time + self._delay, self._arrive, (parcel, heard))
        return Sending.ACCEPTED

    def neighbours(self, sender: SimulatedLink) -> list[SimulatedLink]:
        """Who would hear it now."""
        positions(self._motion.table, self.simulation.time, self._x, self._y)
        x, y = self._motion.at(sender.node)
        near: list[int] = np.flatnonzero((self._x - x) ** 2 + (self._y - y) ** 2 <= self.radius**2).tolist()
        links = map(self._nodes.get, near)
        return [link for link in links if link is not None and link is not sender and link.up]

    def _arrive(self, sent: tuple[Parcel, list[SimulatedLink]]) -> None:
        parcel, links = sent
        self._in_flight -= 1
        heard = sum(self.hand_over(parcel, link) for link in links)
        self.note(parcel, SENT, heard)
