"""Messages for whoever will be there (Alg. 6.7, 6.8).

A message waits at the node of its sender, and goes on only to neighbours behind which somebody has a context that it may be for, when there is
one or as soon as there is; there it waits again.  At the node where such a context is registered it is seen when that begins to
hold and when it ends, and trusted nodes are told, as they are of the past: they know whom that concerns, and whether its time has come.

What we mend in the document:

- A context that comes is compared with the message before that is sent on (Alg. 6.8 leaves it out).
- Where some predicate can only be decided at an instant at which nothing happens, the trusted node has a timer.
- Hops are confirmed.  With another tree, everybody who has a message looks again behind whom it may be needed; a neighbour that joins is thought not
  to have it, and takes no harm if it has.  So in any tree that a router with the message is part of, it finds its way.
- With composites a message waits only where one covers what it asks for; where none does, it goes on at once, and counts as in vain if it was.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from nearcast.errors import InvalidInput, InvalidSettings, QuotaExceeded
from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.overlay.routing.context_node import ContextNode
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.overlay.routing.wire import Routed, event_in, one_hop_further, routed
from nearcast.overlay.temporal.confirming import Confirming
from nearcast.overlay.temporal.expiry import Lifetimes
from nearcast.overlay.temporal.held import Held, HeldMessages
from nearcast.overlay.temporal.hybrid import parts
from nearcast.overlay.temporal.messages import KEEP_PORT, WAITING, Bring, Keep, Receipt, Span, Vid
from nearcast.overlay.temporal.overflow import give_away, takers
from nearcast.overlay.temporal.temporal_router import TemporalRouter
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address, Cancellable, Endpoint

_ON_ITS_WAY: Final = 60 * MICROSECONDS
"""No message takes longer."""

_MOST_GONE: Final = 10_000
"""Contexts of which that is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureSettings:
    most: int = 1_000_000
    """Messages with their payload: 100 GB, if they are as large as in the document (6.4.2)."""

    settle: float = 5.0
    """Seconds after which a new tree is known well enough to see who is behind whom."""

    lifetimes: Lifetimes = field(default_factory=Lifetimes)

    def __post_init__(self) -> None:
        if self.most < 1 or not self.settle >= 0:
            raise InvalidSettings(
                "there is room for one message at least, and a tree does not settle before it is there"
            )


@dataclass(frozen=True, slots=True)
class FutureStatistics:
    held: int
    lean: int
    """Of these without their payload, which others have."""

    crowded: int
    """Beyond the room that there is: nobody else could take them."""

    sent: int
    """Copies to neighbours."""

    pushed: int
    """Of these for lack of room."""

    brought: int
    """Payloads that were wanted again."""

    told: int
    """Spans, to trusted nodes."""

    late: int
    """Messages that came when their time was over."""

    malformed: int


class Future(Component):
    """Beside the ``TemporalRouter`` of its host, and after it."""

    def __init__(self, settings: FutureSettings | None = None) -> None:
        self.settings: Final = settings or FutureSettings()
        self._held: Final = HeldMessages()
        self._looking: Cancellable | None = None
        self._tree: TreeView = NoTree()
        self._gone: Final[deque[tuple[Instant, Address, Context, frozenset[str]]]] = deque(maxlen=_MOST_GONE)
        """What lay behind neighbours lately."""

        self._sent = self._pushed = self._brought = self._told = self._late = self._malformed = 0
        self._host: Host
        self._router: Router
        self._temporal: TemporalRouter
        self._node: ContextNode | None = None
        self._endpoint: Endpoint
        self._confirming: Confirming

    def start(self, host: Host) -> None:
        self._host, self._router = host, host.component(Router)
        self._temporal = temporal = host.component(TemporalRouter)
        self._endpoint = host.link(temporal.settings.interface).open(KEEP_PORT, self._receive, *WAITING)
        self._confirming = Confirming(host, temporal.settings, self._endpoint.send)
        self._router.follow(self)
        self._router.learnt, self._router.lost = self.learnt, self.lost
        temporal.later = self.publish
        temporal.lookup.keeper = self
        self._node = next((each for each in host.components if isinstance(each, ContextNode)), None)
        if self._node is not None:
            self._node.recorders.append(self.recorded)

    def statistics(self) -> FutureStatistics:
        held = self._held
        return FutureStatistics(
            held=len(held),
            lean=len(held) - held.full,
            crowded=max(0, held.full - self.settings.most),
            sent=self._sent,
            pushed=self._pushed,
            brought=self._brought,
            told=self._told,
            late=self._late,
            malformed=self._malformed,
        )

    def __contains__(self, message: object) -> bool:
        """Whether the message of that id waits here."""
        return message in self._held

    # What is published

    def publish(self, event: Event) -> None:
        """For whoever will be there; and, as far as that matters, for whoever was."""
        assert event.when is not None
        self.settings.lifetimes.check(event)
        message = routed(event, self._host.name)
        if self._held.full >= self.settings.most and not takers(message, self._temporal.areas):
            self._make_room(1)
            if self._held.full >= self.settings.most:
                raise QuotaExceeded(
                    f"{self.settings.most} messages wait here already, and nobody else can take one; publish it later"
                )
        if parts(event.when, self._host.now()).past:
            self._temporal.look_up(message)
        self._take(message, None)

    # What comes in

    def _receive(self, sender: Address, message: Any) -> None:
        try:
            match message:
                case Receipt():
                    self._confirming.confirmed(message)
                case Keep():
                    event_in(message.message)  # before it is confirmed: what cannot be read was not said
                    if self._confirming.take(sender, message):
                        self._take(message.message, sender)
                case Bring():
                    if self._confirming.take(sender, message):
                        self._bring(sender, message.message)
        except InvalidInput:
            self._malformed += 1

    def _take(self, message: Routed, came_from: Address | None, *, answered: bool = False) -> None:
        """``answered``: trusted nodes get to know who is here by another way."""
        event = event_in(message)
        if event.when is None:
            raise InvalidInput(f"message {message.id!r} speaks of no other time than now, and waits for nobody")
        held = self._held.get(message.id)
        if held is not None:
            if came_from is not None:
                held.at.add(came_from)
            self._restore(held, message)
            return
        now, lifetimes = self._host.now(), self.settings.lifetimes
        ends, forgotten = lifetimes.ends(event), lifetimes.forgotten(event)
        if forgotten <= now:
            self._late += 1
            return
        held = Held(message)
        if came_from is not None:
            held.at.add(came_from)
        self._held.add(held)
        self._host.timers.after(max(ends + 1 - now, 0) / MICROSECONDS, lambda: self._last_look(held))
        self._host.timers.after((forgotten - now) / MICROSECONDS, lambda: self._forget(held))
        here = self._here(held)
        self._held.began(held, here)
        if not answered:
            self._tell(held, here)
        neighbours = self._router.knowledge.towards(message, came_from)
        neighbours += [each for each in self._just_gone(held) if each not in (came_from, *neighbours)]
        for neighbour in neighbours:
            self._send(held, neighbour)
        if came_from is not None:
            self._router.knowledge.judged(message, came_from, useful=bool(neighbours or here))
        self._make_room()

    def _forget(self, held: Held) -> None:
        if self._held.get(held.id) is held:
            self._held.remove(held)

    def _last_look(self, held: Held) -> None:
        """Everything once more: a trusted node may have been out of reach when it was told, and who is still there is so for good."""
        self._tell(held, self._here(held))

    # Neighbours

    def learnt(self, neighbour: Address, context: Context | None, optional: frozenset[str]) -> None:
        """This lies behind that neighbour now; none: nobody knows what does."""
        if context is None:
            for held in self._held.all():
                self._look(held, neighbour)
            return
        judge = self._router.knowledge.judge
        for held in list(self._held.concerning(context)):
            if neighbour not in held.at and held.meets(context, optional, judge):
                self._send(held, neighbour)

    def lost(self, neighbour: Address, context: Context | None, optional: frozenset[str]) -> None:
        """This lay behind that neighbour, and does not any more."""
        if context is not None:
            now = self._host.now()
            self._gone.append((now, neighbour, context, optional))
            while self._gone[0][0] < now - _ON_ITS_WAY:
                self._gone.popleft()

    def _just_gone(self, held: Held) -> list[Address]:
        """Neighbours behind which somebody was when the message was sent, who has gone while it was on its way: it is for him as well."""
        judge, published = self._router.knowledge.judge, event_in(held.message).published
        found = {
            neighbour: None
            for at, neighbour, context, optional in self._gone
            if at > published and held.meets(context, optional, judge)
        }
        return [neighbour for neighbour in found if neighbour in self._tree.neighbours]

    def _look(self, held: Held, only: Address | None = None) -> None:
        """Send it to neighbours behind which there is somebody, or may be for all that is known."""
        for neighbour in self._router.knowledge.towards(held.message, None):
            if neighbour not in held.at and only in (None, neighbour):
                self._send(held, neighbour)

    def _send(self, held: Held, neighbour: Address) -> None:
        if held.lean:
            self._want(held, neighbour)
            return
        held.at.add(neighbour)
        self._sent += 1
        message = held.message
        self._confirming.tell(
            neighbour, Keep(message=one_hop_further(message)), lambda: self._failed(held, neighbour, message)
        )

    def _failed(self, held: Held, neighbour: Address, message: Routed) -> None:
        """Nobody there has confirmed it."""
        held.at.discard(neighbour)
        if held.id in self._held:
            self._restore(held, message)
            self._look_soon()

    # Room

    def _make_room(self, more: int = 0) -> None:
        excess = self._held.full + more - self.settings.most
        if excess > 0:
            for held in give_away(reversed(self._held.all()), excess, self._temporal.areas, self._push):
                self._held.slim(held)

    def _push(self, held: Held, neighbour: Address) -> None:
        self._pushed += 1
        self._send(held, neighbour)

    def _want(self, held: Held, whom: Address | None) -> None:
        """Have the payload brought back: for a neighbour, or to be told here."""
        if whom is not None:
            held.wanted[whom] = None
        # Those who have it are on the way to nodes in whose area it may meet somebody: there it does not lead back.
        holders = self._temporal.areas.towards(held.message, whom)
        for holder in sorted(holders, key=lambda neighbour: (neighbour not in held.at, neighbour))[:1]:
            self._brought += 1
            self._confirming.tell(holder, Bring(message=held.id), self._look_soon)

    def _bring(self, sender: Address, message: str) -> None:
        held = self._held.get(message)
        if held is not None:
            self._send(held, sender)

    def _restore(self, held: Held, message: Routed) -> None:
        if not held.lean:
            return
        self._held.restore(held, message)
        wanted, untold = list(held.wanted), list(held.untold)
        held.wanted.clear()
        held.untold.clear()
        for neighbour in wanted:
            self._send(held, neighbour)
        self._tell(held, untold)
        self._make_room()

    # Who is here

    def recorded(self, vid: Vid, at: Instant, context: Context | None) -> None:
        """Since then this is the context of that identity, which is registered here; none: it has none any more."""
        for held, spans in self._held.recorded(vid, at, context):
            self._tell(held, spans)

    def _here(self, held: Held) -> list[Span]:
        """What has held here since the message was published; of what was before, archives are asked where that matters."""
        if self._node is None or held.lean:
            return []
        event = event_in(held.message)
        spans = self._temporal.archive.spans(event)
        return [held.known(span) for span in spans if span.end is None or span.end > event.published]

    def _tell(self, held: Held, spans: list[Span]) -> None:
        if not spans:
            return
        if held.lean:
            held.untold.extend(spans)
            self._want(held, None)
            return
        self._told += len(spans)
        self._temporal.resolve(held.message, spans, False)

    # Questions on their way to archives (6.3.4): who passes one on keeps what it asks for, and need not be sent it again

    def asked(self, message: Routed, came_from: Address | None) -> None:
        event = event_in(message)
        if event.when is not None and self.settings.lifetimes.ends(event) > event.published:
            self._take(message, came_from, answered=True)

    def asking(self, message: Routed, neighbour: Address) -> None:
        held = self._held.get(message.id)
        if held is not None:
            held.at.add(neighbour)

    def asked_in_vain(self, message: Routed, neighbour: Address) -> None:
        held = self._held.get(message.id)
        if held is not None:
            held.at.discard(neighbour)
            self._look_soon()

    # The tree (``routing.tree`` `Follower`)

    def tree_changed(self, tree: TreeView) -> None:
        self._tree = tree
        self._look_soon()

    def joined(self, neighbour: Address) -> None:
        self.left(neighbour)
        self._look_soon()

    def left(self, neighbour: Address) -> None:
        for held in self._held.all():
            held.at.discard(neighbour)

    def news(self, neighbour: Address) -> bytes:  # noqa: ARG002 - there is nothing to compare
        return b""

    def heard(self, neighbour: Address, news: bytes) -> None:
        """Nothing is said this way."""

    def _look_soon(self) -> None:
        """Not at once: who is behind a new neighbour has to be heard first."""
        if self._looking is None and len(self._held):
            self._looking = self._host.timers.after(self.settings.settle, self._look_again)

    def _look_again(self) -> None:
        self._looking = None
        for held in self._held.all():
            self._look(held)
            for neighbour in list(held.wanted):
                self._want(held, neighbour)
            if held.untold and not held.wanted:
                self._want(held, None)
