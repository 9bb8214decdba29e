"""What is known of the clients and events, as it was accepted: the past on which delivery is defined.

Every report counts from the time of its acceptance until the next one (a step function).  Reports of one client are
accepted in the order of time; what is late or unordered is treated before it comes here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from nearcast.errors import InvalidContext, InvalidEvent, InvalidTime, UnknownName
from nearcast.model.event import Event, checked_attributes
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant, to_text
from nearcast.model.values import Value

T = TypeVar("T")
POSITION: Final = "position"
Context = Mapping[str, Value]
"""The typed attributes that one context of a client has at one time."""

IMPLICIT_CONTEXT: Final = ""
"""Name of the context that a client has as long as it registered none: its position and nothing else."""


class Timeline(Generic[T]):
    """A step function of time: ``initially`` before the first change."""

    def __init__(self, initially: T) -> None:
        self._initially = initially
        self._times: list[Instant] = []
        self._values: list[T] = []

    def set(self, at: Instant, value: T) -> None:
        """From ``at`` on; a later change that was foreseen is struck out."""
        keep = bisect_right(self._times, at)
        if keep and self._times[keep - 1] == at:
            keep -= 1  # two reports at one instant: the second one counts
        del self._times[keep:], self._values[keep:]
        self._times.append(at)
        self._values.append(value)

    def at(self, time: Instant) -> T:
        index = bisect_right(self._times, time)
        return self._values[index - 1] if index else self._initially

    def strike_out(self, after: Instant) -> None:
        """Forget what was foreseen for later than ``after``."""
        keep = bisect_right(self._times, after)
        del self._times[keep:], self._values[keep:]

    def changes(self) -> tuple[Instant, ...]:
        return tuple(self._times)


@dataclass(frozen=True, slots=True)
class Held:
    """A subscription and the time during which its client held it."""

    subscription: Subscription
    subscribed: Instant
    unsubscribed: Instant | None = None

    def active(self, at: Instant) -> bool:
        return self.subscribed <= at and (self.unsubscribed is None or at < self.unsubscribed)


@dataclass
class ClientHistory:
    """Everything accepted from one client."""

    present: Timeline[bool] = field(default_factory=lambda: Timeline(initially=False))
    position: Timeline[Point | None] = field(default_factory=lambda: Timeline[Point | None](None))
    accepts_addressed: Timeline[bool] = field(default_factory=lambda: Timeline(initially=False))
    contexts: dict[str, Timeline[Context | None]] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    latest: Instant | None = None
    session_ends: Instant | None = None
    """Set while the connection is lost: the instant at which everything lapses unless the client returns."""

    def contexts_at(self, at: Instant) -> Iterator[tuple[str, Context]]:
        """The contexts that constraints may be tested against, the position among their attributes.

        A context may name a position of its own, deliberately coarse; elsewhere the client's position shows.
        """
        if not self.present.at(at):
            return
        position = self.position.at(at)
        own: Context = {} if position is None else {POSITION: position}
        registered = False
        for name, timeline in self.contexts.items():
            context = timeline.at(at)
            if context is not None:
                registered = True
                yield name, {**own, **context}
        if not registered:
            yield IMPLICIT_CONTEXT, own

    def changes(self) -> list[Instant]:
        """All instants at which position or contexts changed, in order."""
        timelines: list[Timeline[Any]] = [self.present, self.position, *self.contexts.values()]
        return sorted({at for timeline in timelines for at in timeline.changes()})


class History:
    """The accepted reports of all clients, and the events."""

    def __init__(self) -> None:
        self._clients: dict[str, ClientHistory] = {}
        self._events: list[Event] = []
        self._unpublished: dict[str, Instant] = {}

    # What is asked

    def clients(self) -> tuple[str, ...]:
        """All of whom anything was ever accepted."""
        return tuple(self._clients)

    def client(self, name: str) -> ClientHistory:
        """An unknown client is one of which nothing was ever accepted."""
        return self._clients.get(name) or ClientHistory()

    def events(self) -> tuple[Event, ...]:
        """In the order in which they were published."""
        return tuple(self._events)

    def unpublished_at(self, event_id: str) -> Instant | None:
        """When its publisher took it back; none if it did not."""
        return self._unpublished.get(event_id)

    def previous(self, event: Event) -> Event | None:
        """The event that the same publisher published on the same topic before this one."""
        if event.publisher is None:
            return None
        earlier = (
            other
            for other in self._events
            if other.publisher == event.publisher and other.topic == event.topic and other.published < event.published
        )
        return max(earlier, key=lambda other: other.published, default=None)

    # What is reported

    def moved(self, client: str, at: Instant, position: Point | None) -> None:
        """A position report; ``None`` says that the position is no longer known."""
        self._report(client, at).position.set(at, position)

    def registered(self, client: str, at: Instant, context: str, attributes: Mapping[str, Value]) -> None:
        """Register a context, or replace the attributes of the one that has this name."""
        if not context:
            raise InvalidContext("a context needs a name")
        checked = checked_attributes(attributes, frozenset())
        timelines = self._report(client, at).contexts
        timelines.setdefault(context, Timeline[Context | None](None)).set(at, MappingProxyType(dict(checked)))

    def deregistered(self, client: str, at: Instant, context: str) -> None:
        """The context is valid until ``at``, that instant excluded."""
        timeline = self.client(client).contexts.get(context)
        if timeline is None or timeline.at(at) is None:
            raise UnknownName(f"client {client!r} has registered no context {context!r}")
        self._report(client, at).contexts[context].set(at, None)

    def subscribed(self, client: str, at: Instant, subscription: Subscription) -> None:
        """Held from ``at`` on; it replaces the client's subscription of the same id."""
        history = self._report(client, at)
        self._end(history, at, subscription.id)
        history.held.append(Held(subscription, at))

    def unsubscribed(self, client: str, at: Instant, subscription_id: str) -> None:
        """No longer held from ``at`` on."""
        if not any(
            held.unsubscribed is None and held.subscription.id == subscription_id for held in self.client(client).held
        ):
            raise UnknownName(f"client {client!r} holds no subscription {subscription_id!r}")
        self._end(self._report(client, at), at, subscription_id)

    def accepts_addressed(self, client: str, at: Instant, accepts: bool) -> None:
        """Whether, from ``at`` on, it takes what is addressed to its contexts without a subscription."""
        self._report(client, at).accepts_addressed.set(at, accepts)

    def disconnected(self, client: str, at: Instant, session_expiry: int = 0) -> None:
        """The connection is lost: what is known stays for ``session_expiry`` microseconds, then lapses."""
        if session_expiry < 0:
            raise InvalidTime(f"a session cannot end before its connection: {session_expiry} microseconds")
        history = self._report(client, at)
        history.session_ends = at + session_expiry
        history.present.set(history.session_ends, False)
        history.position.set(history.session_ends, None)
        history.accepts_addressed.set(history.session_ends, False)
        for timeline in history.contexts.values():
            timeline.set(history.session_ends, None)
        for held in [held for held in history.held if held.active(at)]:
            self._end(history, history.session_ends, held.subscription.id)

    def connected(self, client: str, at: Instant) -> None:
        """The client is (back) there.  Before its session ended, nothing has happened."""
        history = self._clients.setdefault(client, ClientHistory())
        self._check_order(client, history, at)
        ends = history.session_ends
        history.session_ends = None
        if ends is not None and at < ends:
            lapsing: tuple[Timeline[Any], ...] = (
                history.present,
                history.position,
                history.accepts_addressed,
                *history.contexts.values(),
            )
            for timeline in lapsing:
                timeline.strike_out(at)
            history.held = [Held(h.subscription, h.subscribed) if h.unsubscribed == ends else h for h in history.held]
        self._report(client, at)

    def published(self, event: Event) -> None:
        """An event was accepted; its id must be new."""
        if any(other.id == event.id for other in self._events):
            raise InvalidEvent(f"event {event.id!r} was published already")
        self._events.append(event)

    def unpublished(self, event_id: str, at: Instant) -> None:
        """Its publisher took it back: nothing of it is delivered from ``at`` on."""
        self._unpublished.setdefault(event_id, at)

    def _report(self, client: str, at: Instant) -> ClientHistory:
        history = self._clients.setdefault(client, ClientHistory())
        self._check_order(client, history, at)
        if history.session_ends is not None:
            raise InvalidContext(f"client {client!r} lost its connection; it must connect before it reports")
        history.latest = at
        if not history.present.at(at):
            history.present.set(at, True)
        return history

    @staticmethod
    def _check_order(client: str, history: ClientHistory, at: Instant) -> None:
        if history.latest is not None and at < history.latest:
            raise InvalidContext(
                f"a report of client {client!r} for {to_text(at)} comes after one for {to_text(history.latest)}",
            )

    @staticmethod
    def _end(history: ClientHistory, at: Instant, subscription_id: str) -> bool:
        for index, held in enumerate(history.held):
            if held.unsubscribed is None and held.subscription.id == subscription_id:
                history.held[index] = Held(held.subscription, held.subscribed, at)
                return True
        return False
