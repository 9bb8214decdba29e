"""A router's part in messages that speak of other times than now.

Beside its ``Router``, and after the ``ContextNode`` of its access network, if it has one: then it keeps the archive of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from nearcast.errors import InvalidEvent, InvalidInput
from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.temporal import message_class
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.access import Relay
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.knowledge import Surroundings
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.overlay.routing.wire import Routed, event_in, routed
from nearcast.overlay.temporal.archive import Archive, ArchiveStatistics
from nearcast.overlay.temporal.areas import Areas, somewhere
from nearcast.overlay.temporal.attribute_index import AttributeIndex
from nearcast.overlay.temporal.checking import check
from nearcast.overlay.temporal.confirming import Confirming
from nearcast.overlay.temporal.lookup import Around, Lookup, LookupStatistics
from nearcast.overlay.temporal.messages import (
    BETWEEN_ROUTERS,
    PORT,
    TO_DEVICE,
    Answer,
    Carried,
    Confirmed,
    Deposit,
    IndexAnswer,
    Indexed,
    IndexQuestion,
    Question,
    Receipt,
    Resolution,
    Span,
    Vid,
)
from nearcast.overlay.temporal.settings import DAY, TemporalSettings
from nearcast.overlay.temporal.xcast import Xcast
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Endpoint
from nearcast.runtime.recent import Recent

Serve = Callable[[Address, Address, bytes], None]
"""``serve(node, device, body)``: something that a device said, by way of that node."""


@dataclass(frozen=True, slots=True)
class TemporalStatistics:
    archive: ArchiveStatistics
    lookup: LookupStatistics
    resolutions: int
    """Sent to neighbours."""

    indexed: int
    """Pieces that are kept here for the index."""

    lost: int
    """Spans whose trusted node could not be reached."""

    resent: int
    """Messages that were not confirmed in time."""

    malformed: int


class TemporalRouter(Component):
    """``area``: of the access network, if there is one."""

    def __init__(self, settings: TemporalSettings | None = None, area: Area | None = None) -> None:
        self.settings: Final = settings or TemporalSettings()
        self.archive: Final = Archive()
        self.areas: Final = Areas(area)
        self.later: Callable[[Event], None] | None = None
        """Takes messages for which asking the archives is not enough."""

        self.deposit: Callable[[Deposit], None] | None = None
        """Of the mailbox that is here."""

        self.index: AttributeIndex | None = None
        self._services: Final[dict[str, Serve]] = {}
        self._tree: TreeView = NoTree()
        self._seen: Final = Recent()
        self._malformed = 0
        self._node: ContextNode | None = None
        self._host: Host
        self._endpoint: Endpoint
        self.confirming: Confirming
        self.lookup: Lookup
        self.xcast: Xcast

    def start(self, host: Host) -> None:
        self._host = host
        kinds = (*BETWEEN_ROUTERS, *self.areas.knowledge.kinds)
        self._endpoint = host.link(self.settings.interface).open(PORT, self._receive, *kinds)
        self.confirming = Confirming(host, self.settings, self._endpoint.send)
        self.xcast = Xcast(host.name, self.tell, host.timers)
        around = Around(
            me=host.name,
            timers=host.timers,
            tell=self.tell,
            new=lambda name: self._seen.add(name, host.now()),
            search=self._search,
            resolve=self.resolve,
        )
        self.lookup = Lookup(around, self.areas, self.settings.margin)
        router = host.component(Router)
        router.follow(self)
        router.at_another_time = self.publish
        self._beside_node(host)
        host.timers.every(min(DAY, self.settings.horizon / 10), self._forget)
        if self.settings.indexed:
            self.index = AttributeIndex(
                host.name,
                host.now(),
                self.settings,
                host.timers,
                self.tell,
                self.resolve,
                self.archive.pieces,
            )
        self.areas.start(
            Surroundings(me=host.name, now=host.now, timers=host.timers, random=host.random("areas"), send=self._send)
        )

    def _beside_node(self, host: Host) -> None:
        self._node = next((each for each in host.components if isinstance(each, ContextNode)), None)
        if self._node is not None:
            self._node.recorders.append(self.record)
            self._node.relay = self._carry

    def statistics(self) -> TemporalStatistics:
        return TemporalStatistics(
            archive=self.archive.statistics(),
            lookup=replace(self.lookup.statistics),
            resolutions=self.xcast.sent,
            indexed=0 if self.index is None else len(self.index),
            lost=self.xcast.lost,
            resent=self.confirming.resent,
            malformed=self._malformed,
        )

    # The archive

    def record(self, vid: Vid, at: Instant, context: Context | None) -> None:
        if context is not None:
            self.areas.registered(context)
        changed = self.archive.record(vid, at, context)
        if self.index is not None:
            self.index.changed(changed)

    def _search(self, message: Routed) -> list[Span]:
        return self.archive.spans(event_in(message))

    def _forget(self) -> None:
        before = self._host.now() - round(self.settings.horizon * MICROSECONDS)
        self.archive.forget(before)
        if self.index is not None:
            self.index.forget(before)

    # Messages

    def publish(self, event: Event) -> None:
        """To whoever was there, or will be."""
        if event.when is None:
            raise InvalidEvent(f"event {event.id!r} speaks of no other time than now; its router knows whom it is for")
        if message_class(event.when, event.published) == "historical":
            self.look_up(routed(event, self._host.name))
        elif self.later is not None:
            self.later(event)
        else:
            raise InvalidEvent(f"event {event.id!r} speaks of the future, for which nothing is kept here")

    def look_up(self, message: Routed) -> None:
        """Ask the archives, or the index if that tells without a place, and have those told who were there."""
        keys = None if self.index is None or somewhere(message) else self.index.keys_for(event_in(message))
        if self.index is not None and keys is not None:
            self.index.ask(message, keys, self.settings.patience)
        else:
            self.lookup.ask(message, self.settings.depth, self.settings.patience)

    def resolve(self, message: Routed, spans: Iterable[Span], whole: bool) -> None:
        """Send spans to the trusted nodes of their identities."""
        self.xcast.send(message, spans, whole=whole)

    def tell(self, to: Address, message: Confirmed, failed: Callable[[], None] | None = None) -> None:
        """Until it is confirmed; ``failed`` is called if it never is."""
        if to == self._host.name:
            refused = isinstance(message, Deposit) and self.deposit is None
            done = failed if refused and failed is not None else lambda: self._take(to, message)
            self._host.timers.after(0, done)
        else:
            self.confirming.tell(to, message, failed)

    def _send(self, to: Address, message: Message) -> None:
        self._endpoint.send(to, message)

    # What devices and those whom they trust say to each other

    def serve(self, service: str, serve: Serve) -> None:
        self._services[service] = serve

    def say(self, node: Address, device: Address, body: bytes) -> None:
        """To a device that is at that node."""
        self._post(node, Carried(TO_DEVICE, device, body))

    def _carry(self, device: Address, message: Relay) -> None:
        self._post(message.to, Carried(message.service, device, message.body))

    def _post(self, to: Address, message: Carried) -> None:
        if to == self._host.name:
            self._host.timers.after(0, lambda: self._carried(to, message))
        else:
            self._endpoint.send(to, message)

    def _carried(self, sender: Address, message: Carried) -> None:
        if message.service == TO_DEVICE:
            if self._node is not None:
                self._node.tell(message.device, sender, message.body)
        elif message.service in self._services:
            self._services[message.service](sender, message.device, message.body)

    # What comes in

    def _receive(self, sender: Address, message: Any) -> None:
        try:
            if isinstance(message, Confirmed):
                check(message)  # before it is confirmed: what cannot be read was not said
                if isinstance(message, Deposit) and self.deposit is None:
                    return  # so that whoever sent it keeps it
                if self.confirming.take(sender, message):
                    self._take(sender, message)
            else:
                self._take(sender, message)
        except InvalidInput:
            self._malformed += 1

    def _take(self, sender: Address, message: Message) -> None:
        match message:
            case Question():
                self.lookup.hear(sender, message)
            case Answer():
                self.lookup.answered(message)
            case Resolution():
                self.xcast.hear(sender, message)
            case Receipt():
                self.confirming.confirmed(message)
            case Indexed() | IndexQuestion() | IndexAnswer():
                self._take_index(sender, message)
            case Carried():
                self._carried(sender, message)
            case Deposit():
                if self.deposit is not None:
                    self.deposit(message)
            case _:
                self.areas.hear(sender, message)

    def _take_index(self, sender: Address, message: Indexed | IndexQuestion | IndexAnswer) -> None:
        if self.index is None:
            return
        match message:
            case Indexed():
                self.index.hear(sender, message)
            case IndexQuestion():
                self.index.answer(sender, message)
            case IndexAnswer():
                self.index.answered(sender, message)

    # The tree (``routing.tree`` `Follower`)

    def tree_changed(self, tree: TreeView) -> None:
        self._tree = self.xcast.tree = tree
        self.areas.tree_changed(tree)
        if self.index is not None:
            self.index.tree_changed(tree)

    def joined(self, neighbour: Address) -> None:
        self.areas.joined(neighbour)

    def left(self, neighbour: Address) -> None:
        self.areas.left(neighbour)

    def news(self, neighbour: Address) -> bytes:
        return self.areas.news(neighbour)

    def heard(self, neighbour: Address, news: bytes) -> None:
        self.areas.heard(neighbour, news)
