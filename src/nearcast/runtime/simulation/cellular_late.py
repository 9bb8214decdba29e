"""The clients of a cellular network that are told later of what they got, and the books in the order in which things happen."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, Final

from nearcast.model.time import Instant
from nearcast.runtime.links import RECEIVED, Door
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import ReceiveAll
from nearcast.runtime.simulation.cellular_foresight import Arrivals
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.network import SimulatedLink

COLUMNS: Final = 9
"""Of ``messages``."""


class LateClients:
    """Tells clients of what has arrived, and keeps the rows of all messages in order."""

    def __init__(self, simulation: Simulation, interface: str) -> None:
        self.links: Final[list[SimulatedLink]] = []
        """Of the clients, by the number of their downlink."""

        self.behind: Callable[[], bool] = _never
        """Whether something has arrived that was not told yet."""

        self._simulation: Final = simulation
        self._interface: Final = interface
        self._emit: Final = simulation.observers.emitter("messages")
        self._emit_rows: Final = simulation.observers.rows_emitter("messages", COLUMNS)
        self._waiting: Final[list[tuple[tuple[Instant, Instant, int], tuple[Any, ...]]]] = []
        """Rows of what happened meanwhile, and when."""

        self._door: Door | None = None
        self._receive_all: ReceiveAll[Any] | None = None

    def door_of(self, link: SimulatedLink) -> Door | None:
        """Where messages may be told later to this client; all clients have the same one, or none."""
        for port, endpoint in link.open_ports.items():
            for kind, (_, receive_all) in endpoint.late.items():
                if self._door is None:
                    self._door, self._receive_all = (port, kind), receive_all
                if self._door == (port, kind) and self._receive_all is receive_all:
                    return self._door
        return None

    def note(self, *row: Any) -> None:
        """The row of a message whose fate is known now."""
        if self.behind():
            self._waiting.append((self._simulation.present, row))
        else:
            self._emit(*row)

    def tell(self, arrivals: Arrivals) -> None:
        """Clients have got all these messages."""
        door, links, interface = self._door, self.links, self._interface
        assert door is not None
        assert self._receive_all is not None
        values: list[Any] = []
        told: list[tuple[Instant, Any, Message]] = []
        for time, downlink, parcel in zip(arrivals.times, arrivals.downlinks, arrivals.parcels, strict=True):
            link, kind, size = links[downlink], parcel.kind, parcel.size
            listener = link.listeners.get(door) or link.listener(door, kind)
            assert listener is not None
            _, entry, late, _ = listener
            assert late is not None
            entry[0] += 1
            entry[1] += size
            told.append((time, late[0], parcel.message))
            values += (parcel.sent, time, interface, kind, parcel.sender.address, link.address, size, RECEIVED, 1)
        self._emit_rows(self._in_order(values, arrivals) if self._waiting else values)
        now = self._simulation.time
        try:
            self._receive_all(self._one_by_one(told))
        finally:
            self._simulation.jump(now)

    def _one_by_one(self, told: list[tuple[Instant, Any, Message]]) -> Iterator[tuple[Any, Message]]:
        simulation = self._simulation
        for simulation.time, receiver, message in told:
            yield receiver, message

    def _in_order(self, values: list[Any], arrivals: Arrivals) -> list[Any]:
        """With the rows of what happened in between."""
        happened = list(zip(arrivals.times, arrivals.entries, arrivals.numbers, strict=True))
        ordered, done = list[Any](), 0
        for present, row in self._waiting:
            place = bisect_left(happened, present, done)
            ordered += values[COLUMNS * done : COLUMNS * place]
            ordered += row
            done = place
        ordered += values[COLUMNS * done :]
        self._waiting.clear()
        return ordered


def _never() -> bool:
    return False
