"""The router: contexts that are registered here, messages that come by, and what it knows of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nearcast.errors import InvalidEvent, InvalidInput, InvalidSettings, UnknownName
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.time import Instant
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.knowledge import Knowledge, KnowledgeStatistics, Learnt, Surroundings
from nearcast.overlay.routing.local import LocalContexts
from nearcast.overlay.routing.messages import PORT, ContextEntry, attributes_tree
from nearcast.overlay.routing.reporting import Exact, Reporting
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.routing.tree import Follower, NoTree, TreeView, packed, unpacked
from nearcast.overlay.routing.wire import Routed, asked, event_in, one_hop_further, routed
from nearcast.overlay.topology.topology import Topology
from nearcast.records.overlay import DELIVERED, FORWARDED, IN_VAIN, PRUNED, UPDATE
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message, kind_of
from nearcast.runtime.ports import Address, Endpoint
from nearcast.runtime.recent import Recent

Deliver = Callable[[Event, frozenset[Handle]], None]
"""``deliver(event, handles)``: to the contexts registered here that it is for."""


@dataclass(frozen=True, slots=True)
class RouterStatistics:
    local: int
    """Contexts that are registered here."""

    published: int
    received: int
    forwarded: int
    """Copies that were sent to neighbours, those of own messages included."""

    delivered: int
    """Messages that were for somebody here."""

    false_positives: int
    """Messages that came for nothing: neither passed on nor delivered (Def. 3.10)."""

    repeated: int
    """Messages that had come before, as happens when the tree changes."""

    malformed: int
    """What nobody could have said; it changed nothing."""

    knowledge: KnowledgeStatistics


class Router(Component):
    """Beside a ``Topology`` on its host, to which it listens; without one, whoever keeps the tree tells it.

    ``shared``: contexts that are registered at all routers of this process.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        reporting: Reporting | None = None,
        settings: RoutingSettings | None = None,
        deliver: Deliver | None = None,
        shared: SharedContexts | None = None,
    ) -> None:
        reporting = reporting or Exact()
        if reporting.coarse and not knowledge.coarse:
            raise InvalidSettings(
                f"{type(reporting).__name__} makes contexts coarse, and {type(knowledge).__name__} asks for what is surely so: "
                "somebody would be missed; give it judge=possibly"
            )
        self.knowledge: Final = knowledge
        self.deliver: Deliver | None = deliver
        self.at_another_time: Callable[[Event], None] | None = None
        """Takes messages that speak of other times than now (``overlay.temporal``)."""

        self.local: Final = LocalContexts(reporting, shared)
        self._settings: Final = settings or RoutingSettings()
        self._tree: TreeView = NoTree()
        self._followers: Final[list[Follower]] = []
        self._seen: Final = Recent()
        self._number: Instant = 0
        self._published = self._received = self._forwarded = self._delivered = self._in_vain = self._repeated = 0
        self._malformed = 0
        self.learnt: Learnt | None = None
        """Is told of contexts behind neighbours: for messages that wait for somebody to come (``overlay.temporal``)."""

        self._recorded = False
        self._hop: Callable[..., None]
        self._host: Host
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host = host
        self._endpoint = host.link(self._settings.interface).open(PORT, self._receive, Routed, *self.knowledge.kinds)
        self._number = host.now()
        self._recorded, self._hop = host.observers.watched("hops"), host.observers.emitter("hops")
        for component in host.components:
            if isinstance(component, Topology):
                component.listen(self)
        self.knowledge.start(
            Surroundings(
                me=host.name,
                now=host.now,
                timers=host.timers,
                random=host.random("routing"),
                send=self._send,
                learnt=self._learnt,
            )
        )

    def follow(self, follower: Follower) -> None:
        """Whoever else routes along the tree is told of it by the router, which alone listens to the topology."""
        self._followers.append(follower)

    def statistics(self) -> RouterStatistics:
        return RouterStatistics(
            local=len(self.local),
            published=self._published,
            received=self._received,
            forwarded=self._forwarded,
            delivered=self._delivered,
            false_positives=self._in_vain,
            repeated=self._repeated,
            malformed=self._malformed,
            knowledge=self.knowledge.statistics(),
        )

    # Contexts that are registered here

    def new_handle(self) -> Handle:
        """One that was never used, in an earlier life of this router either: numbers start with the clock."""
        self._number += 1
        return f"{self._host.name}/{self._number}"

    def register(self, context: Context) -> Handle:
        handle = self.new_handle()
        self._put(handle, context)
        return handle

    def update(self, handle: Handle, context: Context) -> None:
        self._must_know(handle)
        self._put(handle, context)

    def remove(self, handle: Handle) -> None:
        self._must_know(handle)
        self.local.remove(handle)
        self.knowledge.local(handle, None)

    def _put(self, handle: Handle, context: Context) -> None:
        attributes_tree(context)  # what cannot be said to others is refused before it counts here
        report = self.local.put(handle, context)
        if report is not None:
            self.knowledge.local(handle, report)

    def _must_know(self, handle: Handle) -> None:
        if handle not in self.local:
            raise UnknownName(f"no context {handle!r} is registered here")

    # Messages

    def publish(self, event: Event) -> None:
        """Send a message to whoever has a context that it is for."""
        if event.when is not None:
            if self.at_another_time is None:
                raise InvalidEvent(
                    f"event {event.id!r} is for another time than now, of which this router knows nothing; it has no archive"
                )
            self.at_another_time(event)
            return
        message = routed(event, self._host.name)
        self._published += 1
        self._seen.add(message.id, self._host.now())
        self._pass_on(message, None)

    def _receive(self, sender: Address, message: Any) -> None:
        try:
            if not isinstance(message, Routed):
                self.knowledge.heard(sender, message)
                return
            asked(message)
        except InvalidInput:
            self._malformed += 1
            return
        self._received += 1
        if self._seen.add(message.id, self._host.now()):
            self._pass_on(message, sender)
        else:
            self._repeated += 1

    def _pass_on(self, message: Routed, came_from: Address | None) -> None:
        neighbours = self.knowledge.towards(message, came_from)
        if neighbours:
            self._forwarded += len(neighbours)
            self._endpoint.send_all(neighbours, one_hop_further(message))
        handles = self.local.addressed(asked(message))
        if self._recorded:
            self._record(message, came_from, neighbours, handles)
        if came_from is not None:
            self._in_vain += not neighbours and not handles
            self.knowledge.judged(message, came_from, useful=bool(neighbours or handles))
        if handles:
            self._delivered += 1
            if self.deliver is not None:
                self.deliver(event_in(message), handles)

    def _learnt(self, neighbour: Address, context: Context | None, optional: frozenset[str]) -> None:
        if self.learnt is not None:
            self.learnt(neighbour, context, optional)

    def _record(
        self, message: Routed, came_from: Address | None, neighbours: list[Address], handles: frozenset[Handle]
    ) -> None:
        """What became of a message here, as rows of ``hops``."""
        now, me = self._host.now(), self._host.name
        for neighbour in sorted(self._tree.neighbours):
            if neighbour != came_from:
                self._hop(now, me, FORWARDED if neighbour in neighbours else PRUNED, message.id, neighbour)
        if handles:
            self._hop(now, me, DELIVERED, message.id, None)
        elif not neighbours and came_from is not None:
            self._hop(now, me, IN_VAIN, message.id, came_from)

    def _send(self, neighbour: Address, message: Message) -> None:
        if self._recorded:
            subject = message.handle if isinstance(message, ContextEntry) else kind_of(message)
            self._hop(self._host.now(), self._host.name, UPDATE, subject, neighbour)
        self._endpoint.send(neighbour, message)

    # The tree (``overlay.topology``: a TreeListener)

    def tree_changed(self, tree: TreeView) -> None:
        self._tree = tree
        self.knowledge.tree_changed(tree)
        for follower in self._followers:
            follower.tree_changed(tree)

    def joined(self, neighbour: Address) -> None:
        self.knowledge.joined(neighbour)
        for follower in self._followers:
            follower.joined(neighbour)

    def left(self, neighbour: Address) -> None:
        self.knowledge.left(neighbour)
        for follower in self._followers:
            follower.left(neighbour)

    def news(self, neighbour: Address) -> bytes:
        return packed([self.knowledge.news(neighbour), *(each.news(neighbour) for each in self._followers)])

    def heard(self, neighbour: Address, news: bytes) -> None:
        first, *others = unpacked(news)
        self.knowledge.heard_news(neighbour, first)
        for follower, said in zip(self._followers, others, strict=False):
            follower.heard(neighbour, said)
