"""Messages from cell to cell (THYME 5.8): the router of one host.

What the paper leaves open, and we decide: of the members of the next cell, one after the other gets the messages, so that the load is spread; if
a link says that one did not get it, another one does, then another cell; a host that moves is heard of by its beacons too, so that
answers reach it, but nobody sends through it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from nearcast.crowdstore.geographic.grid import Cell, CellGrid, rank
from nearcast.crowdstore.geographic.interface import Destination, Passenger, Router
from nearcast.crowdstore.geographic.messages import PORT, Beacon, Packet, Refused, Target, Told
from nearcast.crowdstore.geographic.planar import step
from nearcast.crowdstore.geographic.presence import Presence, Surroundings, Whereabouts, hear_together
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Codec, Message, encoded
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Fix, Sending
from nearcast.runtime.recent import Recent

HOPS: Final = 255
"""A walk round a labyrinth of 98 cells takes fewer; one byte on the wire."""

AWAITED: Final = 1_024
"""Messages to nodes, the newest, that can still be said to be undeliverable: their payloads stay here, so that refusals are small."""

RETRIABLE: Final = 64
"""Packets sent last, which can be sent another way."""

_refused: Final = Codec(Refused)


@dataclass(slots=True)
class RouterTally:
    """What a router did."""

    beacons: int = 0
    sent: int = 0
    """Packets of this host, one for each first hop."""

    forwarded: int = 0
    """Packets of others, one for each copy."""

    forwarded_bytes: int = 0
    """Of their payloads."""

    told: int = 0
    """Broadcasts in the own cell."""

    arrived: int = 0
    duplicates: int = 0
    refused: int = 0
    """Said to sources that a node is not here."""

    undeliverable: int = 0
    retried: int = 0
    """Sent another way, because the link said that the first was in vain."""

    lost: int = 0
    """Given up: nobody to send it to, or too many hops."""


@dataclass(frozen=True, slots=True)
class RouterStatistics:
    cell: Cell | None
    heard: int
    """Hosts that were heard lately."""

    tally: RouterTally


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
        self._presence: Final = presence
        self._hops: Final = hops
        self._around: Final = Surroundings(grid, host.now)
        self._here = Whereabouts(grid, presence.settle)
        self._neighbours: tuple[Cell, ...] = ()
        """Around the cell that this host is in, populated or not."""

        self._seen: Final = Recent()
        self._awaited: Final[dict[int, bytes]] = {}
        self._sent: Final[dict[int, tuple[Packet, Packet]]] = {}
        """What went out, by identity, and what it was made of."""

        self._random: Final = host.random("cell router")
        # So that those of an earlier life are not taken for these.
        self._number = self._random.getrandbits(32)
        self._timers: list[Cancellable] = []
        self._beacon_timer: Cancellable | None = None
        self._endpoint: Endpoint | None = None

    # Life

    def start(self) -> None:
        self._endpoint = self._link.open(PORT, self._receive, Beacon, Packet, Told)
        self._endpoint.together(Beacon, self, hear_together)
        self._endpoint.unacknowledged(self._in_vain)
        if self._host.sensor is not None:
            self._timers.append(self._host.sensor.request(self._presence.look, self._look))
        self._arm()

    def stop(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self._beacon_timer is not None:
            self._beacon_timer.cancel()
        self._around.clear()
        self._here = Whereabouts(self.grid, self._presence.settle)
        self._neighbours = ()
        self._awaited.clear()
        self._sent.clear()

    def statistics(self) -> RouterStatistics:
        return RouterStatistics(self.cell, len(self._around.heard), self.tally)

    # Where everybody is

    @property
    def cell(self) -> Cell | None:
        return self._here.place if self._here.member else None

    @property
    def place(self) -> Cell | None:
        return self._here.place

    def members(self) -> tuple[Address, ...]:
        cell = self.cell
        return () if cell is None else tuple(sorted(self._around.by_cell.get(cell, ())))

    def leader(self) -> Address | None:
        cell = self.cell
        return None if cell is None else min((self.address, *self._around.by_cell.get(cell, ())))

    def neighbours(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self._neighbours if cell in self._around.by_cell)

    def nearest(self, cell: Cell) -> bool:
        own = self.cell
        return own is not None and all(
            rank(own, cell) < rank(each, cell) for each in self._around.by_cell if each != own
        )

    def _look(self, fix: Fix) -> None:
        before = self.cell
        if not self._here.look(fix):
            return
        place = self._here.place
        self._neighbours = () if place is None else self.grid.neighbours(place)
        after = self.cell
        if before is not None and after is None:
            self._passenger.unsettled(before)
        elif after is not None:
            self._passenger.settled(after)
        if before != after:
            self._say_beacon()  # at once: others stop, or begin, to send through it

    def _arm(self) -> None:
        pause = self._presence.beacon * (0.75 + 0.5 * self._random.random())
        self._beacon_timer = self._host.timers.after(pause, self._say_beacon)

    def _say_beacon(self) -> None:
        if self._beacon_timer is not None:
            self._beacon_timer.cancel()
        self._arm()
        silence = self._presence.missed * self._presence.beacon
        for name, cell in self._around.expire(self._host.now() - round(silence * MICROSECONDS)):
            self._left(name, cell)
        place = self._here.place
        if place is not None and self._endpoint is not None:
            self.tally.beacons += 1
            self._endpoint.broadcast(Beacon(2 * self.grid.number(place) + (not self._here.member)))

    def hear(self, sender: Address, place: int) -> None:
        """A beacon."""
        changed = self._around.beacon(sender, place)
        if changed is None:
            return
        left, joined = changed
        self._left(sender, left)
        if joined is None or self.cell is None:
            return
        if joined == self.cell:
            self._passenger.member_joined(sender)
        elif joined in self._neighbours and len(self._around.by_cell[joined]) == 1:
            self._passenger.populated(joined)

    def _left(self, name: Address, cell: Cell | None) -> None:
        if cell is None or self.cell is None:
            return
        if cell == self.cell:
            self._passenger.member_left(name)
        elif cell in self._neighbours and cell not in self._around.by_cell:
            self._passenger.emptied(cell)

    # Sending

    def route(self, destinations: Iterable[Destination], payload: bytes) -> None:
        wanted = dict.fromkeys(destinations)
        targets = tuple(Target(self.grid.number(cell), node) for cell, node in wanted)
        if not targets:
            return
        self._number = (self._number + 1) % (1 << 32)
        if any(target.node is not None for target in targets):
            self._awaited[self._number] = payload
            if len(self._awaited) > AWAITED:
                del self._awaited[next(iter(self._awaited))]
        place = self._here.place
        origin = 0 if place is None else self.grid.number(place)
        packet = Packet(self.address, self._number, origin, self._hops, origin, targets, payload)
        self._host.timers.after(0, partial(self._go, packet))

    def tell_cell(self, payload: bytes) -> None:
        cell = self.cell
        if cell is not None:
            self._number = (self._number + 1) % (1 << 32)
            number = self.grid.number(cell)
            self._tell(Told(self.address, self._number, number, number, (number,), payload))

    def _tell(self, told: Told) -> None:
        if self._endpoint is not None:
            self.tally.told += 1
            self._endpoint.broadcast(told)

    # Receiving

    def _receive(self, sender: Address, message: Message) -> None:
        if isinstance(message, Beacon):
            self.hear(sender, message.place)
        elif isinstance(message, Told):
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

    # On its way

    def _go(self, packet: Packet) -> None:
        """One step for each target of a packet that is here."""
        if self._endpoint is None:
            return
        here: list[Target] = []
        onwards: dict[Address, list[Target]] = {}
        chosen: dict[Cell, Address] = {}
        for target in packet.targets:
            if target.node == self.address:
                self._to_me(packet, target)
                continue
            hop = self._hop(packet, target, chosen)
            if hop is None:
                here.append(target)
            else:
                onwards.setdefault(hop[0], []).append(hop[1])
        for address, targets in onwards.items():
            self._send(packet, address, tuple(targets))
        self._deliver(packet, [target for target in here if target.node is None])
        for target in here:
            if target.node is not None:
                self._refuse(packet, target)

    def _hop(self, packet: Packet, target: Target, chosen: dict[Cell, Address]) -> tuple[Address, Target] | None:
        """To whom, and with what; none: it ends here."""
        place, goal = self._here.place, self.grid.cell(target.cell)
        if place is None or (not self._here.member and packet.source != self.address):
            return None
        usable = {cell: names for cell in self._neighbours if (names := self._around.usable(cell))}
        if self._here.member:
            walk = None if target.walk is None else (self.grid.cell(target.walk[0]), self.grid.cell(target.walk[1]))
            last = self.grid.cell(packet.last)
            following = step(self.grid, place, goal, usable, walk, last if last != place else None)
            cell, walk = following.cell, following.walk
            if cell is None or walk is not None:
                far = self._farther(place, goal, place if walk is None else walk[0])
                cell, walk = (far, None) if far is not None else (cell, walk)
        else:
            if names := self._around.usable(place):
                usable[place] = names
            cell, walk = min(usable, key=lambda each: rank(each, goal), default=None), None
        if cell is None:
            known = None if target.node is None else self._around.heard.get(target.node)
            return None if target.node is None or known is None or known.suspect else (target.node, target)
        names = usable.get(cell) or self._around.usable(cell)
        if target.node in names and cell == goal:
            chosen.setdefault(cell, target.node)
        address = chosen.setdefault(cell, names[packet.number % len(names)])
        numbers = None if walk is None else (self.grid.number(walk[0]), self.grid.number(walk[1]))
        return address, Target(target.cell, target.node, numbers)

    def _farther(self, place: Cell, goal: Cell, began: Cell) -> Cell | None:
        """Before a message goes round a void: a cell beyond it that happens to be in reach, and is nearer than where the walk began."""
        bound = min(rank(place, goal), rank(began, goal))
        nearer = [
            cell
            for cell in self._around.by_cell
            if rank(cell, goal) < bound and cell not in self._neighbours and self._around.usable(cell)
        ]
        return min(nearer, key=lambda cell: rank(cell, goal), default=None)

    def _send(self, packet: Packet, to: Address, targets: tuple[Target, ...]) -> None:
        assert self._endpoint is not None  # `_go` has looked
        place = self._here.place
        if packet.hops == 0 or place is None:
            self._give_up(packet, targets)
            return
        out = msgspec.structs.replace(packet, hops=packet.hops - 1, last=self.grid.number(place), targets=targets)
        origin = msgspec.structs.replace(packet, targets=self._origins(packet, targets))
        self._sent[id(out)] = out, origin
        if len(self._sent) > RETRIABLE:
            del self._sent[next(iter(self._sent))]
        if packet.source == self.address:
            self.tally.sent += 1
        else:
            self.tally.forwarded += 1
            self.tally.forwarded_bytes += len(packet.payload)
        if self._endpoint.send(to, out) is Sending.DROPPED:
            self._host.timers.after(0, partial(self._in_vain, to, out))

    def _origins(self, packet: Packet, targets: tuple[Target, ...]) -> tuple[Target, ...]:
        """The targets as they came in, of those that go out."""
        going = {(target.cell, target.node) for target in targets}
        return tuple(target for target in packet.targets if (target.cell, target.node) in going)

    def _in_vain(self, to: Address, message: Message) -> None:
        """It did not arrive there: another member, another cell, or nobody (the feedback of GPSR, 2.3)."""
        self._around.suspect(to)
        _, packet = self._sent.pop(id(message), (None, None))
        if packet is None:
            return
        if packet.hops <= 1:
            self._give_up(packet, packet.targets)
            return
        self.tally.retried += 1
        self._go(msgspec.structs.replace(packet, hops=packet.hops - 1))

    # At its end

    def _to_me(self, packet: Packet, target: Target) -> None:
        if not self._first(packet.source, packet.number, target.cell, target.node):
            return
        if packet.refusal:
            self._be_refused(packet)
        else:
            self._arrive(packet.source, packet.origin, target, packet.payload)

    def _deliver(self, packet: Packet, targets: list[Target]) -> None:
        """To all members of this cell, once."""
        cell = self.cell
        if not targets or cell is None:
            self.tally.lost += len(targets)
            return
        # The only members of a cell nearby may have been in vain: but nobody stands in for a cell that is not empty.
        blocked = [
            t for t in targets if self.grid.cell(t.cell) != cell and self.grid.cell(t.cell) in self._around.by_cell
        ]
        self.tally.lost += len(blocked)
        fresh = [
            target
            for target in targets
            if target not in blocked and self._first(packet.source, packet.number, target.cell, None)
        ]
        if not fresh:
            return
        if self._around.by_cell.get(cell):
            numbers = tuple(target.cell for target in fresh)
            own = self.grid.number(cell)
            self._tell(Told(packet.source, packet.number, packet.origin, own, numbers, packet.payload))
        for target in fresh:
            self._arrive(packet.source, packet.origin, target, packet.payload)

    def _give_up(self, packet: Packet, targets: tuple[Target, ...]) -> None:
        for target in targets:
            if target.node is None:
                self.tally.lost += 1
            else:
                self._refuse(packet, target)

    def _refuse(self, packet: Packet, target: Target) -> None:
        """Tell the source that the node is not here; of a refusal that gets lost nobody hears."""
        if packet.refusal or target.node is None:
            self.tally.lost += 1
            return
        refused = Refused(packet.number, target.cell, target.node)
        if packet.source == self.address:
            self._be_refused(msgspec.structs.replace(packet, payload=encoded(refused)))
            return
        place = self._here.place
        if place is None:
            self.tally.lost += 1
            return
        self.tally.refused += 1
        self._number = (self._number + 1) % (1 << 32)
        own = self.grid.number(place)
        back = (Target(packet.origin, packet.source),)
        self._go(Packet(self.address, self._number, own, self._hops, own, back, encoded(refused), refusal=True))

    def _be_refused(self, packet: Packet) -> None:
        try:
            refused = _refused.decoded(packet.payload)
        except msgspec.DecodeError:
            return
        payload = self._awaited.get(refused.number)
        if payload is None or not self._plausible(refused.cell):
            return
        if self._first(f"refused {self.address}", refused.number, refused.cell, refused.node):
            self.tally.undeliverable += 1
            self._passenger.undeliverable(Destination(self.grid.cell(refused.cell), refused.node), payload)
