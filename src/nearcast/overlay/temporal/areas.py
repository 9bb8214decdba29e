"""Behind which neighbour lie nodes in whose area a message may have met somebody (6.3.2).

Each node tells all routers its service area, as a context of its own: what routers do with contexts (`routing.reference`) is all that
is needed to find the way, also over lossy wires and after the tree has changed.  Devices may hear a node outside of its area, or say
nothing of their position; then it tells that, too, so that nobody who was there is missed.
"""

from __future__ import annotations

from typing import Final

from nearcast.matching.context_columns import Questions, questions
from nearcast.matching.entries import EntryTable
from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION, Context
from nearcast.model.predicate import Spatial, properties_of
from nearcast.overlay.routing.knowledge import Surroundings
from nearcast.overlay.routing.messages import Handle, attributes_tree
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.tree import TreeView
from nearcast.overlay.routing.wire import Routed, event_in
from nearcast.overlay.values.coarse import Coarse, coarse, merged
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.possible import possibly
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

_LIMITS: Final = Limits()


def where(message: Routed) -> Questions:
    """What the message asks of places, and of nothing else; a conjunct that asks nothing of them is met everywhere."""
    found: Questions | None = message.__dict__.get("where")
    if found is None:
        found = message.__dict__["where"] = _where(event_in(message))
    return found


def _where(event: Event) -> Questions:
    reach = () if event.reach is None else (Spatial("s_within", POSITION, event.reach),)
    return questions(
        tuple(
            (*(literal for literal in conjunct if tuple(properties_of(literal)) == (POSITION,)), *reach)
            for conjunct in event.conjuncts
        )
    )


def somewhere(message: Routed) -> bool:
    """Whether each conjunct asks for a place."""
    return all(where(message))


class Areas:
    """What one router knows of the areas of all nodes; ``own``: that of its own access network, if it has one."""

    def __init__(self, own: Area | None = None) -> None:
        self.knowledge: Final = Reference(judge=possibly)
        self._own: Final = own
        self._told: Final[dict[Handle, Coarse]] = {}
        self._here: Final[EntryTable[Handle]] = EntryTable(possibly)
        self._me: Address = ""

    def start(self, surroundings: Surroundings) -> None:
        self._me = surroundings.me
        self.knowledge.start(surroundings)
        if self._own is not None:
            self._tell(Coarse({POSITION: self._own}), None)

    def registered(self, context: Context) -> None:
        """Somebody is registered here: usually in the area, of which everybody knows."""
        position = context.get(POSITION)
        if isinstance(position, Point) and self._own is not None and self._own.covers(position):
            return
        part = coarse({} if position is None else {POSITION: position})
        for handle, told in self._told.items():
            if told.attributes.keys() == part.attributes.keys():
                together = merged(told, part, _LIMITS)
                if together is not None:
                    if together != told:
                        self._tell(together, handle)
                    return
        self._tell(part, None)

    def _tell(self, said: Coarse, handle: Handle | None) -> None:
        attributes_tree(said.attributes)  # what cannot be said is refused before it counts
        handle = handle or f"{self._me}/{len(self._told) + 1}"
        self._told[handle] = said
        self._here.put(handle, 0, said.attributes)
        self.knowledge.local(handle, said.attributes)

    # Where to

    def here(self, message: Routed) -> bool:
        """Whether somebody may have been met in the own area."""
        return bool(self._here.keys(where(message)))

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        return self.knowledge.behind(where(message), came_from)

    # The tree (``routing.tree`` `Follower`)

    def tree_changed(self, tree: TreeView) -> None:
        self.knowledge.tree_changed(tree)

    def joined(self, neighbour: Address) -> None:
        self.knowledge.joined(neighbour)

    def left(self, neighbour: Address) -> None:
        self.knowledge.left(neighbour)

    def news(self, neighbour: Address) -> bytes:
        return self.knowledge.news(neighbour)

    def heard(self, neighbour: Address, news: bytes) -> None:
        self.knowledge.heard_news(neighbour, news)

    def hear(self, neighbour: Address, message: Message) -> None:
        self.knowledge.heard(neighbour, message)
