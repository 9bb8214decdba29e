"""Packets on their way (THYME 5.8.1): to whom next, and what if the link says that it was in vain.

A message goes to the cell in reach that is nearest to its goal.  In the paper that is one of the eight around, which are in reach from wherever in
the own cell; here also one farther away, if somebody in it is heard steadily.  Each such step gets nearer to the goal, so nothing that is
known of walks round voids changes: those go along the eight.

What the paper leaves open, and we decide: of the members of the next cell, one after the other gets the messages, so that the load is spread; if
a link says that one did not get it, another one does, then another cell; a host that moves is heard of by its beacons too, so that
answers reach it, but nobody sends through it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from nearcast.crowdstore.geographic.grid import Cell, CellGrid, rank
from nearcast.crowdstore.geographic.messages import Packet, Target
from nearcast.crowdstore.geographic.neighbourhood import Neighbourhood
from nearcast.crowdstore.geographic.planar import step
from nearcast.crowdstore.geographic.tally import RouterTally
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

RETRIABLE: Final = 64
"""Packets sent last, which can be sent another way."""


class Terminus(Protocol):
    """Where packets end."""

    def to_me(self, packet: Packet, target: Target) -> None:
        """It is for this host alone."""

    def to_cell(self, packet: Packet, targets: list[Target]) -> None:
        """It is for all members of this host's cell: here is the nearest to each of these."""

    def give_up(self, packet: Packet, targets: tuple[Target, ...]) -> None:
        """It goes no further."""


class Transit:
    """``send`` gives a packet to the link."""

    def __init__(
        self, address: Address, grid: CellGrid, neighbourhood: Neighbourhood, tally: RouterTally, terminus: Terminus,
        send: Callable[[Address, Packet], None],
    ) -> None:  # fmt: skip
        self._address: Final = address
        self._grid: Final = grid
        self._neighbourhood: Final = neighbourhood
        self._tally: Final = tally
        self._terminus: Final = terminus
        self._send: Final = send
        self._sent: Final[dict[int, tuple[Packet, Packet]]] = {}
        """What went out, by identity, and what it was made of."""

    def stop(self) -> None:
        self._sent.clear()

    def go(self, packet: Packet) -> None:
        """One step for each target of a packet that is here."""
        here: list[Target] = []
        onwards: dict[Address, list[Target]] = {}
        chosen: dict[Cell, Address] = {}
        for target in packet.targets:
            if target.node == self._address:
                self._terminus.to_me(packet, target)
                continue
            hop = self._hop(packet, target, chosen)
            if hop is None:
                here.append(target)
            else:
                onwards.setdefault(hop[0], []).append(hop[1])
        for address, targets in onwards.items():
            self._pass_on(packet, address, tuple(targets))
        self._terminus.to_cell(packet, [target for target in here if target.node is None])
        self._terminus.give_up(packet, tuple(target for target in here if target.node is not None))

    def _hop(self, packet: Packet, target: Target, chosen: dict[Cell, Address]) -> tuple[Address, Target] | None:
        """To whom, and with what; none: it ends here."""
        here, around = self._neighbourhood.here, self._neighbourhood.around
        place, goal = here.place, self._grid.cell(target.cell)
        if place is None or (not here.member and packet.source != self._address):
            return None
        usable = {cell: found for cell in self._neighbourhood.cells if (found := around.usable(cell))}
        names: list[Address] = []
        if here.member:
            walk = None if target.walk is None else (self._grid.cell(target.walk[0]), self._grid.cell(target.walk[1]))
            last = self._grid.cell(packet.last)
            following = step(self._grid, place, goal, usable, walk, last if last != place else None)
            cell, walk = following.cell, following.walk
            if cell is not None and walk is None:
                if self._neighbourhood.skip and cell != goal:
                    cell, names = self._skipped(cell, goal)
            else:
                far = self._farther(place, goal, place if walk is None else walk[0])
                cell, walk = (far, None) if far is not None else (cell, walk)
            begins = packet.source == self._address and last == place and target.node not in around.heard
            if cell is None and begins and not usable and goal != place:
                # Nobody is in the cells around: whoever is heard farther away may know the way, also if it is farther from the goal.
                # If this cell is the nearest after all, it comes back.
                heard = [each for each in around.by_cell if each != place and around.usable(each)]
                cell = min(heard, key=lambda each: rank(each, goal), default=None)
        else:
            if own := around.usable(place):
                usable[place] = own
            cell, walk = min(usable, key=lambda each: rank(each, goal), default=None), None
        if cell is None:
            known = None if target.node is None else around.heard.get(target.node)
            return None if target.node is None or known is None or known.suspect else (target.node, target)
        names = names or usable.get(cell) or around.usable(cell)
        if target.node in names and cell == goal:
            chosen.setdefault(cell, target.node)
        address = chosen.setdefault(cell, names[packet.number % len(names)])
        numbers = None if walk is None else (self._grid.number(walk[0]), self._grid.number(walk[1]))
        return address, Target(target.cell, target.node, numbers)

    def _skipped(self, cell: Cell, goal: Cell) -> tuple[Cell, list[Address]]:
        """A farther one that is nearer to the goal, with those in it to whom the link is good; or the cell itself, with none."""
        around, best = self._neighbourhood.around, rank(cell, goal)
        names: list[Address] = []
        for far in around.by_cell:
            if (found := rank(far, goal)) < best and (steady := around.steady(far)):
                cell, best, names = far, found, steady
        return cell, names

    def _farther(self, place: Cell, goal: Cell, began: Cell) -> Cell | None:
        """Before a message goes round a void: a cell beyond it that happens to be in reach, and is nearer than where the walk began."""
        bound = min(rank(place, goal), rank(began, goal))
        around = self._neighbourhood.around
        nearer = [
            cell
            for cell in around.by_cell
            if rank(cell, goal) < bound and cell not in self._neighbourhood.cells and around.usable(cell)
        ]
        return min(nearer, key=lambda cell: rank(cell, goal), default=None)

    def _pass_on(self, packet: Packet, to: Address, targets: tuple[Target, ...]) -> None:
        place = self._neighbourhood.here.place
        if packet.hops == 0 or place is None:
            self._terminus.give_up(packet, targets)
            return
        out = msgspec.structs.replace(packet, hops=packet.hops - 1, last=self._grid.number(place), targets=targets)
        self._sent[id(out)] = out, msgspec.structs.replace(packet, targets=_as_they_came(packet, targets))
        if len(self._sent) > RETRIABLE:
            del self._sent[next(iter(self._sent))]
        if packet.source == self._address:
            self._tally.sent += 1
        else:
            self._tally.forwarded += 1
            self._tally.forwarded_bytes += len(packet.payload)
        self._send(to, out)

    def in_vain(self, to: Address, message: Message) -> None:
        """It did not arrive there: another member, another cell, or nobody (the feedback of GPSR, 2.3)."""
        self._neighbourhood.around.suspect(to)
        _, packet = self._sent.pop(id(message), (None, None))
        if packet is None:
            return
        if packet.hops <= 1:
            self._terminus.give_up(packet, packet.targets)
            return
        self._tally.retried += 1
        self.go(msgspec.structs.replace(packet, hops=packet.hops - 1))


def _as_they_came(packet: Packet, targets: tuple[Target, ...]) -> tuple[Target, ...]:
    """The targets of those that go out, as they came in."""
    going = {(target.cell, target.node) for target in targets}
    return tuple(target for target in packet.targets if (target.cell, target.node) in going)
