"""The links of one router: made by proposal and agreement, kept alive by heartbeats, never more than k.

A slot is reserved for every proposal until it is answered; so whatever arrives in whatever order, there are never too many links.
Whichever end believes in a link that the other does not know is told so by its first heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.topology.link_state import LatLon
from nearcast.overlay.topology.messages import Agree, Heartbeat, Part, Propose, Refuse
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable

Handshake = Propose | Agree | Refuse | Part


@dataclass(slots=True)
class Neighbour:
    """The other end of a link."""

    life: int
    """Of its router, when the link was made."""

    weight: int
    heard: Instant
    """When it last was."""

    number: int
    """Of the link, on this side: one that was made anew is another one."""


class Mesh:
    def __init__(
        self,
        host: Host,
        settings: TopologySettings,
        place: Point,
        send: Callable[[Address, Message], object],
        *,
        spare: Callable[[], list[Address]],
        made: Callable[[Address], None],
        changed: Callable[[], None],
    ) -> None:
        """``spare`` names neighbours without whom the tree remains as it is; ``made`` and ``changed`` are told of links."""
        self.linked: Final[dict[Address, Neighbour]] = {}
        self.life: Final = host.now()
        self.lost = 0
        """Neighbours that fell silent."""

        self._host: Final = host
        self._settings: Final = settings
        self._place: Final = place
        self._send: Final = send
        self._spare: Final = spare
        self._made: Final = made
        self._changed: Final = changed
        self._random: Final = host.random("mesh")
        self._proposed: Final[dict[Address, Cancellable]] = {}
        self._links = 0

    @property
    def free(self) -> int:
        """Slots that nobody has, and nobody was promised."""
        return self._settings.most_links - len(self.linked) - len(self._proposed)

    @property
    def taken(self) -> int:
        return len(self.linked) + len(self._proposed)

    @property
    def place(self) -> LatLon:
        return self._place.lat, self._place.lon

    def knows(self, router: Address) -> bool:
        """Whether it is a neighbour, or may soon be one."""
        return router in self.linked or router in self._proposed

    def give(self, neighbour: Address, weight: int) -> None:
        """A link that both ends were given."""
        self._link(neighbour, self.life, weight)

    def propose(self, to: Address, *, insist: bool) -> None:
        if self.knows(to) or not (self.free > 0 or (insist and self._make_room())):
            return
        self._proposed[to] = self._host.timers.after(self._settings.answer_within, lambda: self._give_up(to))
        self._send(to, Propose(self.life, self.place, insist))

    def hear(self, sender: Address, message: Handshake) -> None:
        match message:
            case Propose():
                self._consider(sender, message)
            case Agree():
                if sender in self._proposed:
                    self._release(sender)
                    self._accept(sender, message.life, message.place)
                elif sender not in self.linked:
                    self._send(sender, Part())  # too late: the slot may have gone to somebody else
            case Refuse():
                if self._release(sender):
                    self._changed()
            case Part():
                self.drop(sender, tell=False)

    def alive(self, sender: Address, heartbeat: Heartbeat) -> bool:
        """Whether it came from a neighbour that is the one it was."""
        neighbour = self.linked.get(sender)
        if neighbour is None:
            if sender not in self._proposed:  # its agreement may be on its way
                self._send(sender, Part())
            return False
        if heartbeat.life != neighbour.life:
            if heartbeat.life > neighbour.life:
                self.drop(sender, tell=True)
            return False
        neighbour.heard = self._host.now()
        return True

    def drop_silent(self) -> None:
        """Give up whoever has not been heard for too long."""
        limit = self._host.now() - round(self._settings.patience * MICROSECONDS)
        for address in [address for address, neighbour in self.linked.items() if neighbour.heard < limit]:
            self.lost += 1
            self.drop(address, tell=True)

    def drop(self, neighbour: Address, *, tell: bool) -> None:
        if self.linked.pop(neighbour, None) is None:
            return
        if tell:
            self._send(neighbour, Part())
        self._changed()

    def _consider(self, sender: Address, proposal: Propose) -> None:
        known = self.linked.get(sender)
        if known is not None:
            if proposal.life < known.life:
                return  # of a life that is over
            if proposal.life == known.life:
                self._send(sender, Agree(self.life, self.place))  # the answer may have been lost
                return
            self.drop(sender, tell=False)
        if self._release(sender) or self.free > 0 or (proposal.insist and self._make_room()):
            self._accept(sender, proposal.life, proposal.place)
            self._send(sender, Agree(self.life, self.place))
        else:
            self._send(sender, Refuse())

    def _accept(self, sender: Address, life: int, place: LatLon) -> None:
        self._link(sender, life, round(distance(self._place, Point(*place))))
        self._made(sender)
        self._changed()

    def _link(self, neighbour: Address, life: int, weight: int) -> None:
        self._links += 1
        self.linked[neighbour] = Neighbour(life, weight, self._host.now(), self._links)

    def _make_room(self) -> bool:
        """Give up a link that the tree does not need."""
        spare = self._spare()
        if not spare:
            return False
        self.drop(self._random.choice(spare), tell=True)
        return True

    def _release(self, router: Address) -> bool:
        """Free the slot that was reserved for it; false: there was none."""
        timer = self._proposed.pop(router, None)
        if timer is not None:
            timer.cancel()
        return timer is not None

    def _give_up(self, router: Address) -> None:
        if self._release(router):
            self._changed()
