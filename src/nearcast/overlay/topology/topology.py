"""The component that keeps a router's links, and the tree that all routers agree on.

Whoever routes listens: to the tree when it changes, to neighbours in it that come and go, and to a piece of news that heartbeats carry
between them.  To a neighbour that comes, everything has to be told anew, also if it was there a moment ago.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.topology.flooding import Flooding
from nearcast.overlay.topology.link_state import KnownStates, LinkState, LinkStates
from nearcast.overlay.topology.mesh import Mesh
from nearcast.overlay.topology.messages import (
    KINDS,
    Agree,
    Asked,
    Heartbeat,
    Offer,
    Part,
    Propose,
    Refuse,
    Search,
    States,
    Summary,
    Wanted,
)  # fmt: skip
from nearcast.overlay.topology.seeking import Seeking
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.overlay.topology.spanning_tree import Tree, tree_at
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Endpoint


class TreeListener(Protocol):
    """Whoever routes along the tree."""

    def tree_changed(self, tree: Tree) -> None:
        """There is a new tree; neighbours that left and joined come right after."""

    def joined(self, neighbour: Address) -> None:
        """It knows nothing of what was said before."""

    def left(self, neighbour: Address) -> None: ...

    def news(self, neighbour: Address) -> bytes:
        """What the next heartbeat is to carry; empty: nothing."""

    def heard(self, neighbour: Address, news: bytes) -> None: ...


class TreeFollower(Protocol):
    """Whoever else wants to know of the tree, and is told after the one who routes."""

    def tree_changed(self, tree: Tree) -> None: ...
    def joined(self, neighbour: Address) -> None: ...
    def left(self, neighbour: Address) -> None: ...


@dataclass(frozen=True, slots=True)
class TopologyStatistics:
    links: int
    routers: int
    """That can be reached, this one included."""

    epoch: int
    """How many trees there were."""

    searches: int
    lost_neighbours: int
    """That fell silent."""

    stale: int
    """Link states that came too late."""

    compared: int
    """How often neighbours had to compare what they know."""

    malformed: int


class Topology(Component):
    """One for each router; the same place in the world for its whole life."""

    def __init__(self, settings: TopologySettings, place: Point, given: KnownStates | None = None) -> None:
        self.settings: Final = settings
        self.place: Final = place
        self.epoch = 0
        self._given: Final = given
        self._listener: TreeListener | None = None
        self._followers: Final[list[TreeFollower]] = []
        self._tree_links: dict[Address, int] = {}
        """Neighbours in the tree, and the links to them."""

        self._settling: Cancellable | None = None
        self._unreachable: frozenset[Address] = frozenset()
        """At the last sweep."""

        self._malformed = 0
        self._host: Host
        self._endpoint: Endpoint
        self._tree: Tree
        self._mesh: Mesh
        self._flooding: Flooding
        self._seeking: Seeking

    def listen(self, listener: TreeListener) -> None:
        """To be told from the first tree on, it must listen before the instant is over at which the host starts."""
        if self._listener is not None:
            raise InvalidInput("somebody listens already; one component routes, and tells the others")
        self._listener = listener

    def follow(self, follower: TreeFollower) -> None:
        """To be told of trees and neighbours, and nothing else; as early as ``listen``."""
        self._followers.append(follower)

    def meet(self, router: Address) -> None:
        """Somebody was heard of in another way: one more contact, from now on."""
        self._seeking.contacts.add(router)
        self._seeking.look(again=False)

    @property
    def tree(self) -> Tree:
        return self._tree

    @property
    def links(self) -> tuple[Address, ...]:
        """Of the mesh."""
        return tuple(self._mesh.linked)

    def start(self, host: Host) -> None:
        settings, states = self.settings, LinkStates(self._given)
        self._host = host
        self._endpoint = host.link(settings.interface).open(settings.port, self._receive, *KINDS)
        send = self._endpoint.send
        self._mesh = Mesh(
            host, settings, self.place, send, spare=self._spare, made=self._link_made, changed=self._settle_soon
        )
        apart = round(settings.clocks_apart * MICROSECONDS)
        self._flooding = Flooding(
            host.name,
            states,
            send,
            latest=lambda: host.now() + apart,
            neighbours=lambda: self._mesh.linked,
            changed=self._settle_soon,
        )
        self._seeking = Seeking(
            host, settings, self._mesh, states, send, tree=lambda: self._tree, spare=self._spare
        )  # fmt: skip
        self._first_links(states)
        self._tree = tree_at(host.name, states)
        random = host.random("topology")
        if settings.heartbeat is not None:
            host.timers.every(settings.heartbeat, self._beat, first=random.uniform(0, settings.heartbeat))
            host.timers.every(
                settings.retry_every,
                lambda: self._seeking.look(again=True),
                first=random.uniform(0, settings.retry_every),
            )
            host.timers.every(settings.forgotten_after, self._sweep)
        host.timers.after(0, self._begin)

    def stop(self) -> None:
        """Leave in good order: everybody is told at once, and nobody has to wait for heartbeats that do not come."""
        self._flooding.say(self._host.now(), self._own(links=False))
        for neighbour in self._mesh.linked:
            self._endpoint.send(neighbour, Part())

    def statistics(self) -> TopologyStatistics:
        flooding = self._flooding
        return TopologyStatistics(
            links=len(self._mesh.linked),
            routers=len(self._tree.routers),
            epoch=self.epoch,
            searches=self._seeking.searches,
            lost_neighbours=self._mesh.lost,
            stale=flooding.stale,
            compared=flooding.compared,
            malformed=flooding.malformed + self._malformed,
        )

    def _first_links(self, states: LinkStates) -> None:
        name, now = self._host.name, self._host.now()
        given = states.get(name)
        if given is None or given.life != now:
            # A router that failed and returns knows what it was given, but nobody is linked with it any more.
            self._flooding.say(now, self._own())
        elif given.place != (self.place.lat, self.place.lon):
            raise InvalidInput(f"router {name!r} is not where the given topology has it")
        else:
            self._flooding.resume(given.number)
            # A given topology stays as it is, until somebody fails.
            self._seeking.wanted = min(self.settings.wanted_links, len(given.links))
            for neighbour, weight in given.links:
                self._mesh.give(neighbour, weight)

    def _begin(self) -> None:
        self._tell(self._tree, {})
        self._seeking.look(again=False)

    def _receive(self, sender: Address, message: Any) -> None:
        try:
            self._handle(sender, message)
        except InvalidInput:  # a place that is nowhere: what it was about is not worth more than a line in the books
            self._malformed += 1

    def _handle(self, sender: Address, message: Message) -> None:
        match message:
            case Heartbeat():
                self._hear_beat(sender, message)
            case States():
                self._flooding.hear(sender, message.states)
            case Summary():
                self._flooding.answer(sender, message, self._tree)
            case Wanted():
                self._flooding.give(sender, message)
            case Propose() | Agree() | Refuse() | Part():
                self._mesh.hear(sender, message)
            case Search() | Asked() | Offer():
                self._seeking.hear(sender, message)

    def _beat(self) -> None:
        self._mesh.drop_silent()
        digest = self._tree.spanning.digest.to_bytes(16, "little")
        plain = Heartbeat(self._mesh.life, digest, b"")
        for neighbour in self._mesh.linked:
            news = self._news(neighbour)
            self._endpoint.send(neighbour, Heartbeat(self._mesh.life, digest, news) if news else plain)

    def _news(self, neighbour: Address) -> bytes:
        if self._listener is None or neighbour not in self._tree_links:
            return b""
        return self._listener.news(neighbour)

    def _hear_beat(self, sender: Address, heartbeat: Heartbeat) -> None:
        if not self._mesh.alive(sender, heartbeat):
            return
        self._flooding.compare(sender, int.from_bytes(heartbeat.digest, "little"), self._tree)
        if heartbeat.news and self._listener is not None and sender in self._tree_links:
            self._listener.heard(sender, heartbeat.news)

    def _link_made(self, neighbour: Address) -> None:
        self._flooding.forget_neighbour(neighbour)
        self._flooding.summarise(neighbour, self._tree)

    def _settle_soon(self) -> None:
        if self._settling is None:
            self._settling = self._host.timers.after(self.settings.settle, self._settle)

    def _settle(self) -> None:
        """Say what is new of the own links, and make a tree of what is new altogether."""
        self._settling = None
        states, own = self._flooding.states, self._own()
        known = states.get(own.router)
        if known is None or known.links != own.links:
            self._flooding.say(self._host.now(), own)
        before, links = self._tree, self._tree_links
        self._tree = tree_at(own.router, states)
        if self._tree.identity != before.identity or links != self._current_links():
            self._tell(self._tree, links)
        self._seeking.look(again=False)

    def _tell(self, tree: Tree, before: dict[Address, int]) -> None:
        self.epoch += 1
        self._tree_links = after = self._current_links()
        told: list[TreeFollower] = [*([] if self._listener is None else [self._listener]), *self._followers]
        for each in told:
            each.tree_changed(tree)
            for neighbour, link in before.items():
                if after.get(neighbour) != link:
                    each.left(neighbour)
            for neighbour, link in after.items():
                if before.get(neighbour) != link:
                    each.joined(neighbour)

    def _current_links(self) -> dict[Address, int]:
        linked = self._mesh.linked
        return {
            neighbour: linked[neighbour].number for neighbour in sorted(self._tree.neighbours) if neighbour in linked
        }

    def _spare(self) -> list[Address]:
        """Neighbours without whom the tree remains as it is: those in it that are reached another way."""
        tree = self._tree
        return sorted(other for other in self._mesh.linked if other in tree and other not in tree.neighbours)

    def _own(self, *, links: bool = True) -> LinkState:
        linked = self._mesh.linked if links else {}
        weights = tuple(sorted((neighbour, link.weight) for neighbour, link in linked.items()))
        return LinkState(self._host.name, self._mesh.life, 0, self._mesh.place, weights)

    def _sweep(self) -> None:
        """Forget whoever was out of reach at the last sweep and still is."""
        states = self._flooding.states
        unreachable = frozenset(state.router for state in states if state.router not in self._tree)
        for router in sorted(unreachable & self._unreachable):
            states.forget(router)
        self._unreachable = unreachable
