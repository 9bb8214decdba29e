"""How a router finds neighbours: it asks in an area around itself, and in a larger one if too few answer (Contextcast 2.4.4).

The question goes to a contact: a router that is known, or, for whoever has links already, itself.  Link states say where everybody
is, so the contact passes it on to those in the area and to nobody else.  Whoever has a free slot answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nearcast.model.geometry import Point, distance
from nearcast.overlay.topology.link_state import LinkStates, place_of
from nearcast.overlay.topology.mesh import Mesh
from nearcast.overlay.topology.messages import Asked, Offer, Search
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.overlay.topology.spanning_tree import Tree
from nearcast.runtime.host import Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address


@dataclass(slots=True)
class _Quest:
    """A search that goes on."""

    contact: Address
    goal: int
    """So many links are wanted."""

    insist: bool
    """Rather a link that somebody else gives up than none at all."""

    outside: bool
    """Only with routers that cannot be reached so far."""

    radius: float
    number: int = 0
    answered: bool = False
    everyone: bool = False
    offers: dict[Address, bool] = field(default_factory=dict)


class Seeking:
    def __init__(
        self,
        host: Host,
        settings: TopologySettings,
        mesh: Mesh,
        states: LinkStates,
        send: Callable[[Address, Message], object],
        *,
        tree: Callable[[], Tree],
        spare: Callable[[], list[Address]],
    ) -> None:
        self.searches = 0
        self.wanted = settings.wanted_links
        """How many links are looked for."""

        self.contacts: Final = set(settings.contacts)
        """Whom to ask if nobody else is known."""

        self._host: Final = host
        self._settings: Final = settings
        self._mesh: Final = mesh
        self._states: Final = states
        self._send: Final = send
        self._tree: Final = tree
        self._spare: Final = spare
        self._random: Final = host.random("seeking")
        self._quest: _Quest | None = None
        self._number = 0

    def look(self, *, again: bool) -> None:
        """Start a search if there is a reason to: no links, too few, or (only ``again``, now and then) somebody out of reach."""
        if self._quest is not None:
            return
        wanted = self.wanted - self._mesh.taken
        lost = self._lost() if again or not self._mesh.linked else []
        if not self._mesh.linked:
            if lost and wanted > 0:
                self._begin(self._random.choice(lost), wanted, insist=True, outside=True)
        elif lost and (wanted <= 0 or self._random.random() < 0.5):
            self._begin(self._random.choice(lost), 1, insist=True, outside=True)
        elif wanted > 0:
            self._begin(self._host.name, wanted, insist=False, outside=False)

    def hear(self, sender: Address, message: Search | Asked | Offer) -> None:
        quest = self._quest
        if isinstance(message, Search):
            self._asked(message)
        elif quest is None or message.number != quest.number:
            return  # of an earlier search
        elif isinstance(message, Offer):
            quest.offers[sender] = message.free
        elif sender == quest.contact:
            quest.answered, quest.everyone = True, message.everyone

    def _lost(self) -> Sequence[Address]:
        """Who is known and cannot be reached; whoever left in good order said that it has no links."""
        tree, me = self._tree(), self._host.name
        known = {state.router for state in self._states if state.links} | self.contacts
        return sorted(router for router in known if router not in tree and router != me)

    def _begin(self, contact: Address, goal: int, *, insist: bool, outside: bool) -> None:
        self._quest = _Quest(contact, goal, insist, outside, self._settings.first_radius)
        self._ask(self._quest)

    def _ask(self, quest: _Quest) -> None:
        self.searches += 1
        self._number += 1
        quest.number, quest.answered, quest.offers = self._number, False, {}
        search = Search(self._host.name, self._number, self._mesh.place, quest.radius, relayed=False)
        if quest.contact == self._host.name:
            quest.answered, quest.everyone = True, self._relay(search)
        else:
            self._send(quest.contact, search)
        self._host.timers.after(self._settings.search_time, self._choose)

    def _choose(self) -> None:
        """The time for offers is over."""
        quest = self._quest
        assert quest is not None
        tree = self._tree()
        offers = {
            router: free
            for router, free in quest.offers.items()
            if not self._mesh.knows(router) and not (quest.outside and router in tree)
        }
        able = sorted(router for router, free in offers.items() if free)
        if len(able) < quest.goal and quest.answered and not quest.everyone:
            quest.radius *= self._settings.growth
            self._ask(quest)
            return
        self._quest = None
        for router in self._random.sample(able, min(quest.goal, len(able))):
            self._mesh.propose(router, insist=quest.insist)
        if not able and quest.insist and offers:
            self._mesh.propose(self._random.choice(sorted(offers)), insist=True)

    def _asked(self, search: Search) -> None:
        if search.relayed:
            self._offer(search)
            return
        everyone = self._relay(search)
        self._send(search.seeker, Asked(search.number, everyone))

    def _relay(self, search: Search) -> bool:
        """Ask all routers in the area; whether these are all there are."""
        center, me = Point(*search.place), self._host.name
        relayed = Search(search.seeker, search.number, search.place, search.radius, relayed=True)
        everyone = True
        for router in self._tree().routers:
            state = self._states.get(router)
            if state is None or router == search.seeker:
                continue
            if distance(center, place_of(state)) > search.radius:
                everyone = False
            elif router == me:
                self._offer(relayed)
            else:
                self._send(router, relayed)
        return everyone

    def _offer(self, search: Search) -> None:
        if search.seeker == self._host.name or search.seeker in self._mesh.linked:
            return
        if self._mesh.free > 0:
            self._send(search.seeker, Offer(search.number, free=True))
        elif self._spare():
            self._send(search.seeker, Offer(search.number, free=False))
