"""From the core of a cellular network down to its clients, one event after the other.

A copy of a message reaches the client's base station after a latency of its own, and queues there in the order of arrival.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import Final, Protocol

from nearcast.runtime.links import QUEUE_FULL, Door
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation.cellular_bearer import CELL_OVERLOADED, Bearer, cell_queue
from nearcast.runtime.simulation.cellular_outages import Coverage
from nearcast.runtime.simulation.cellular_profile import CellularProfile
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import Parcel


class Receiver(Protocol):
    """A client, as its downlink sees it."""

    @property
    def address(self) -> Address: ...

    def arrive(self, parcel: Parcel, /) -> None:
        """It is there."""

    def fail(self, failure: tuple[Parcel, str], /) -> None:
        """It got lost on its way down, for that reason."""


class Downlinks(ABC):
    """Those of all clients; each has a number."""

    @abstractmethod
    def add(self, receiver: Receiver, coverage: Coverage | None, random: Random) -> int:
        """One more; its number is that of those before it."""

    @abstractmethod
    def send(self, numbers: Sequence[int], parcel: Parcel) -> None:
        """A copy for each of these sets out from the core now."""

    def later(self, number: int, door: Door | None) -> None:
        """What comes in at that door of this client may be told later; none: nothing may any more."""


class SteppedDownlinks(Downlinks):
    """Whatever may go wrong: every copy is a callback at its base station, and another one where it arrives."""

    def __init__(self, simulation: Simulation, profile: CellularProfile) -> None:
        self.simulation: Final = simulation
        self.cell: Final = cell_queue(profile.downlink)
        self._profile: Final = profile
        self._downlinks: Final[list[_Downlink]] = []

    def add(self, receiver: Receiver, coverage: Coverage | None, random: Random) -> int:
        bearer = Bearer(self._profile.downlink, coverage, random, ordered=self._profile.ordered)
        self._downlinks.append(_Downlink(self, bearer, receiver))
        return len(self._downlinks) - 1

    def send(self, numbers: Sequence[int], parcel: Parcel) -> None:
        now, at = self.simulation.time, self.simulation.at
        for number in numbers:
            downlink = self._downlinks[number]
            at(downlink.bearer.arrival(now), downlink.enter, parcel, apart=True)


class _Downlink:
    __slots__ = ("_all", "_receiver", "bearer")

    def __init__(self, downlinks: SteppedDownlinks, bearer: Bearer, receiver: Receiver) -> None:
        self._all: Final = downlinks
        self._receiver: Final = receiver
        self.bearer: Final = bearer

    def enter(self, parcel: Parcel) -> None:
        """At its base station: through the shared queue, if there is one, and its own, in the order of arrival here."""
        simulation, cell, bearer = self._all.simulation, self._all.cell, self.bearer
        entry = simulation.time * 1_000
        if cell is not None:
            entry = cell.admit(entry, parcel.size)
            if entry < 0:
                self._receiver.fail((parcel, CELL_OVERLOADED))
                return
        departure = bearer.queue.admit(entry, parcel.size)
        if departure < 0:
            self._receiver.fail((parcel, QUEUE_FULL))
        elif bearer.hazardous and (reason := bearer.fate(parcel.size, departure)) is not None:
            simulation.at(-(-departure // 1_000), self._receiver.fail, (parcel, reason), apart=True)
        else:
            simulation.at(-(-departure // 1_000), self._receiver.arrive, parcel, apart=True)
