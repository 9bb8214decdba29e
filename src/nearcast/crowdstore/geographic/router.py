"""Messages from cell to cell (THYME 5.8): the router of one host, where packets begin and end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.interface import Destination, Passenger, Router
from nearcast.crowdstore.geographic.messages import PORT, Beacon, Packet, Refused, Target, Told
from nearcast.crowdstore.geographic.neighbourhood import Neighbourhood
from nearcast.crowdstore.geographic.presence import Presence, hear_together
from nearcast.crowdstore.geographic.tally import RouterStatistics, RouterTally
from nearcast.crowdstore.geographic.transit import Transit
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Codec, Message, encoded
from nearcast.runtime.ports import Address, Endpoint, Sending
from nearcast.runtime.recent import Recent

HOPS: Final = 255
"""A walk round a labyrinth of 98 cells takes fewer; one byte on the wire."""

AWAITED: Final = 1_024
"""Messages to nodes, the newest, that can still be said to be undeliverable: their payloads stay here, so that refusals are small."""

_refused: Final = Codec(Refused)

HEADER: Final = 80
"""Bytes of a packet around its targets and its payload, at most, with a source that is named by address and port."""

NAMED: Final = 18
"""Bytes of a target besides its node's name, at most."""


class CellRouter(Router):
    """Speaks through one local link of a host."""

    def __init__(
        self,
        host: Host,
        interface: str,
        grid: CellGrid,
        passenger: Passenger,
        presence: Presence = Presence(),  # noqa: B008 - frozen
        *,
        hops: int = HOPS,
    ) -> None:
        self.grid = grid
        self.tally: Final = RouterTally()
        self._host: Final = host
        self._link: Final = host.link(interface)
        self.address = self._link.address
        self._passenger: Final = passenger
        self._hops: Final = hops
        self._neighbourhood: Final = Neighbourhood(host, self.address, grid, passenger, presence, self._say)
        self._transit: Final = Transit(self.address, grid, self._neighbourhood, self.tally, self, self._send)
        self.hear: Final = self._neighbourhood.hear
        self._seen: Final = Recent()
        self._awaited: Final[dict[int, bytes]] = {}
        # So that those of an earlier life are not taken for these.
        self._number = host.random("cell router numbers").getrandbits(32)
        self._endpoint: Endpoint | None = None

    # Life

    def start(self) -> None:
        self._endpoint = self._link.open(PORT, self._receive, Beacon, Packet, Told)
        self._endpoint.together(Beacon, self, hear_together)
        self._endpoint.unacknowledged(self._transit.in_vain)
        self._neighbourhood.start()

    def stop(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        self._neighbourhood.stop()
        self._transit.stop()
        self._awaited.clear()

    def statistics(self) -> RouterStatistics:
        return RouterStatistics(self.cell, len(self._neighbourhood.around.heard), self.tally)

    # Where everybody is

    @property
    def cell(self) -> Cell | None:
        return self._neighbourhood.cell

    @property
    def place(self) -> Cell | None:
        return self._neighbourhood.here.place

    def members(self) -> tuple[Address, ...]:
        return self._neighbourhood.members()

    def leader(self) -> Address | None:
        return self._neighbourhood.leader()

    def heard(self) -> tuple[Cell, ...]:
        return self._neighbourhood.heard()

    def inhabitants(self, cell: Cell) -> tuple[Address, ...]:
        return tuple(self._neighbourhood.around.by_cell.get(cell, ()))

    def nearest(self, cell: Cell) -> bool:
        return self._neighbourhood.nearest(cell)

    # Sending

    def route(self, destinations: Iterable[Destination], payload: bytes) -> None:
        wanted = dict.fromkeys(destinations)
        targets = tuple(Target(self.grid.number(cell), node) for cell, node in wanted)
        for some in self._portions(targets, len(payload)):
            self._begin(some, payload)

    def _portions(self, targets: tuple[Target, ...], payload: int) -> Iterator[tuple[Target, ...]]:
        """As many as fit into one message of the link, however long it is."""
        room = sys.maxsize if self._link.largest is None else self._link.largest - HEADER - payload
        start = size = 0
        for at, target in enumerate(targets):
            length = NAMED + len(target.node or "")
            if at > start and size + length > room:
                yield targets[start:at]
                start, size = at, 0
            size += length
        if targets:
            yield targets[start:]

    def _begin(self, targets: tuple[Target, ...], payload: bytes) -> None:
        number = self._next_number()
        if any(target.node is not None for target in targets):
            self._awaited[number] = payload
            if len(self._awaited) > AWAITED:
                del self._awaited[next(iter(self._awaited))]
        origin = 0 if self.place is None else self.grid.number(self.place)
        packet = Packet(self.address, number, origin, self._hops, origin, targets, payload)
        self._host.timers.after(0, partial(self._go, packet))

    def tell_cell(self, payload: bytes) -> None:
        cell = self.cell
        if cell is not None:
            number = self.grid.number(cell)
            self._tell(Told(self.address, self._next_number(), number, number, (number,), payload))

    def _next_number(self) -> int:
        self._number = (self._number + 1) % (1 << 32)
        return self._number

    def _go(self, packet: Packet) -> None:
        if self._endpoint is not None:
            self._transit.go(packet)

    def _say(self, beacon: Beacon) -> None:
        if self._endpoint is not None:
            self.tally.beacons += 1
            self._endpoint.broadcast(beacon)

    def _tell(self, told: Told) -> None:
        if self._endpoint is not None:
            self.tally.told += 1
            if self._endpoint.broadcast(told) is not Sending.DROPPED:
                self._neighbourhood.spoken()

    def _send(self, to: Address, packet: Packet) -> None:
        if self._endpoint is not None and self._endpoint.send(to, packet) is Sending.DROPPED:
            self._host.timers.after(0, partial(self._transit.in_vain, to, packet))

    # Receiving

    def _receive(self, sender: Address, message: Message) -> None:
        if isinstance(message, Beacon):
            self.hear(sender, message.place)
        elif isinstance(message, Told):
            self.hear(sender, 2 * message.cell)
            self._be_told(message)
        elif isinstance(message, Packet):
            self._take(message)

    def _be_told(self, told: Told) -> None:
        cell = self.cell
        if cell is None or told.cell != self.grid.number(cell) or not self._plausible(told.origin, *told.targets):
            return
        for target in dict.fromkeys(told.targets):
            if self._first(told.source, told.number, target, None):
                self._arrive(told.source, told.origin, Target(target), told.payload)

    def _take(self, packet: Packet) -> None:
        numbers = [number for target in packet.targets for number in (target.cell, *(target.walk or ()))]
        if not self._plausible(packet.origin, packet.last, *numbers):
            return
        # Each walk goes along each edge once, in either direction: what comes the same way again is a copy, or lost in a circle.
        fresh = tuple(
            target
            for target in packet.targets
            if self._new(f"{packet.source} {packet.number} {target.cell} {target.node} {target.walk} {packet.last}")
        )
        if fresh:
            self._go(packet if len(fresh) == len(packet.targets) else msgspec.structs.replace(packet, targets=fresh))

    def _plausible(self, *cells: int) -> bool:
        return max(cells) < len(self.grid)

    def _new(self, key: str) -> bool:
        if self._seen.add(key, self._host.now()):
            return True
        self.tally.duplicates += 1
        return False

    def _first(self, source: Address, number: int, cell: int, node: Address | None) -> bool:
        return self._new(f"{source} {number} {cell} {node}")

    def _arrive(self, source: Address, origin: int, target: Target, payload: bytes) -> None:
        self.tally.arrived += 1
        destination = Destination(self.grid.cell(target.cell), target.node)
        self._passenger.arrived(source, self.grid.cell(origin), destination, payload)

    # Where packets end (``transit.Terminus``)

    def to_me(self, packet: Packet, target: Target) -> None:
        if not self._first(packet.source, packet.number, target.cell, target.node):
            return
        if packet.refusal:
            self._be_refused(packet.payload)
        else:
            self._arrive(packet.source, packet.origin, target, packet.payload)

    def to_cell(self, packet: Packet, targets: list[Target]) -> None:
        """To all members of this cell, once."""
        cell = self.cell
        if not targets or cell is None:
            self.tally.lost += len(targets)
            return
        # The only members of a cell nearby may have been in vain: but nobody stands in for a cell that is not empty.
        by_cell = self._neighbourhood.around.by_cell
        blocked = [t for t in targets if self.grid.cell(t.cell) != cell and self.grid.cell(t.cell) in by_cell]
        self.tally.lost += len(blocked)
        fresh = [
            target
            for target in targets
            if target not in blocked and self._first(packet.source, packet.number, target.cell, None)
        ]
        if not fresh:
            return
        if by_cell.get(cell):
            numbers = tuple(target.cell for target in fresh)
            own = self.grid.number(cell)
            self._tell(Told(packet.source, packet.number, packet.origin, own, numbers, packet.payload))
        for target in fresh:
            self._arrive(packet.source, packet.origin, target, packet.payload)

    def give_up(self, packet: Packet, targets: tuple[Target, ...]) -> None:
        """Tell the source that nodes are not here; of a refusal that gets lost nobody hears."""
        for target in targets:
            if target.node is None or packet.refusal:
                self.tally.lost += 1
            elif packet.source == self.address:
                self._be_refused(encoded(Refused(packet.number, target.cell, target.node)))
            else:
                self._refuse(packet, Refused(packet.number, target.cell, target.node))

    def _refuse(self, packet: Packet, refused: Refused) -> None:
        if self.place is None:
            self.tally.lost += 1
            return
        self.tally.refused += 1
        own = self.grid.number(self.place)
        back = (Target(packet.origin, packet.source),)
        payload = encoded(refused)
        self._go(Packet(self.address, self._next_number(), own, self._hops, own, back, payload, refusal=True))

    def _be_refused(self, data: bytes) -> None:
        try:
            refused = _refused.decoded(data)
        except msgspec.DecodeError:
            return
        payload = self._awaited.get(refused.number)
        if payload is None or not self._plausible(refused.cell):
            return
        if self._first(f"refused {self.address}", refused.number, refused.cell, refused.node):
            self.tally.undeliverable += 1
            self._passenger.undeliverable(Destination(self.grid.cell(refused.cell), refused.node), payload)
