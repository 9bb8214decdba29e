"""Who gets an event: one matcher for everybody, the halves of filter schemes for those who speak them, groups that share.

What only a topic decides is remembered: such a *route* holds until somebody subscribes or unsubscribes.  Subscriptions whose
answer may change without that (a content filter, a frame that begins or ends) keep their topics off the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Final, Protocol

from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.sessions.shared_subscriptions import SharedGroup
from nearcast.matching import Matcher
from nearcast.matching.events import EventBatch
from nearcast.matching.matches import Matches
from nearcast.model.acceptance import accepted
from nearcast.model.delivery import Delivery, within_reach
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import HIGHEST_QOS, Subscription
from nearcast.model.time import Instant
from nearcast.model.topic import TopicTrie, topic_matches
from nearcast.runtime.durations import FAST, Durations, DurationStatistics

MOST_ROUTES: Final = 100_000
"""Beyond that, all are forgotten: whoever publishes on ever new topics gains nothing by them."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """One copy for one session."""

    session: Session
    held: tuple[Held, ...]
    """The subscriptions that asked for it; none if the client accepts what is addressed to it."""

    qos: int
    identifiers: tuple[int, ...]
    near: bool
    retain_as_published: bool
    picky: bool
    """One of its subscriptions does not want what the client published itself."""

    @classmethod
    def of(cls, session: Session, held: Iterable[Held]) -> Target:
        subscriptions = tuple(held)
        return cls(
            session,
            subscriptions,
            max((each.qos for each in subscriptions), default=HIGHEST_QOS),
            tuple(number for each in subscriptions for number in each.identifiers),
            not subscriptions or any(each.near for each in subscriptions),
            any(each.retain_as_published for each in subscriptions),
            any(each.no_local for each in subscriptions),
        )

    @property
    def shared(self) -> Held | None:
        """The shared subscription by which it was chosen from a group."""
        return self.held[0] if self.held and self.held[0].group is not None else None

    def without_own(self) -> Target | None:
        """For the publisher itself."""
        others = [each for each in self.held if not each.no_local]
        return Target.of(self.session, others) if others else None


@dataclass(frozen=True, slots=True)
class Route:
    targets: Sequence[Target]
    groups: Sequence[SharedGroup] = ()
    plain: bool = False
    """All of them want the message as it is."""

    def judged(self) -> Route:
        """The same, and whether it is plain."""
        special = self.groups or any(each.near or each.identifiers or each.picky for each in self.targets)
        return Route(self.targets, self.groups, not special)

    def chosen(self, publisher: Session | None) -> list[Target]:
        """Who gets a copy: the publisher only if it wants its own, of each group the one whose turn it is."""
        targets = list(self.targets)
        if publisher is not None:
            for place, target in enumerate(targets):
                if target.picky and target.session is publisher:
                    own = target.without_own()
                    targets[place : place + 1] = [] if own is None else [own]
                    break
        for group in self.groups:
            chosen = group.choose()
            if chosen is not None:
                targets.append(Target.of(chosen[0], [chosen[1]]))
        return targets


class Schemes(Protocol):
    """What a router needs of the filter schemes: receivers by interest."""

    def receivers(self, event: Event, channel: str | None) -> list[str]: ...
    def subscribe(self, client: str, subscription: Subscription) -> None: ...
    def unsubscribe(self, client: str, subscription_id: str) -> None: ...
    def exact_position(self, client: str) -> Point | None: ...


class Observers(Protocol):
    """Who is told of clients instead of events (``observation``)."""

    def subscribe(self, session: Session, held: Held) -> None: ...
    def unsubscribe(self, session: Session, held: Held) -> None: ...


class Contexts(Protocol):
    """What a router needs to know of those clients whose areas are in the hands of filter schemes."""

    @property
    def accepting(self) -> set[str]:
        """Who takes what is addressed to it without a subscription."""

    def addressed(self, client: str, event: Event, *, located: bool) -> bool:
        """Whether one of its contexts is meant; not ``located``: whether it may be, wherever the client is."""


@dataclass(frozen=True, slots=True)
class RouterStatistics:
    routes: int
    hits: int
    matched: int
    """Events that the matcher was asked for."""

    match_time: DurationStatistics


def _nothing() -> None: ...


@dataclass(slots=True, eq=False)
class Router:
    sessions: dict[str, Session]
    contexts: Contexts
    now: Callable[[], Instant]
    matcher: Matcher = field(default_factory=Matcher)
    schemes: Schemes | None = None
    observers: Observers | None = None
    _groups: dict[str, SharedGroup] = field(default_factory=dict)
    _routes: dict[str, Route] = field(default_factory=dict)
    _changing: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    """Topic filters of subscriptions whose answer changes by itself, and who holds them."""

    _changing_topics: TopicTrie = field(default_factory=TopicTrie)

    _by_schemes: dict[str, set[str]] = field(default_factory=dict)
    _beside: Matcher = field(default_factory=Matcher)
    """What else clients want whose areas are in the hands of schemes: to be asked without regard to where they are."""

    _single: dict[str, Target] = field(default_factory=dict)
    """Of clients that hold one subscription only: nearly all."""

    single_of: list[Target | None] = field(default_factory=list)
    """The same by the matcher's numbers."""

    settle: Callable[[], None] = _nothing
    """Called before anything changes: what was published before is for those who wanted it then."""

    watch: Callable[[Session], None] | None = None
    """Told of every session whose subscriptions have changed."""

    match_time: Durations = field(default_factory=lambda: Durations(FAST))
    """Of one event each."""

    _hits: int = 0
    _matched: int = 0

    def statistics(self) -> RouterStatistics:
        return RouterStatistics(len(self._routes), self._hits, self._matched, self.match_time.statistics())

    # Subscriptions

    def subscribe(self, session: Session, held: Held) -> None:
        """Add it, in place of the client's subscription of the same id."""
        self.settle()
        old = session.held.get(held.subscription.id)
        if old is not None:
            self.unsubscribe(session, old)
        session.held[held.subscription.id] = held
        session.held_size += held.size
        if held.observation is not None:
            if self.observers is not None:
                self.observers.subscribe(session, held)
            return
        if held.group is not None:
            self._share(session, held)
        elif self.schemes is not None and session.speaks_schemes and _is_relative(held.subscription):
            self._begin_schemes(session)
            self._by_schemes[session.client].add(held.subscription.id)
            self.schemes.subscribe(session.client, held.subscription)
        else:
            self.matcher.subscribe(session.client, held.subscription)
            if session.client in self._by_schemes and not _is_relative(held.subscription):
                self._beside.subscribe(session.client, held.subscription)
        if _changes_by_itself(held.subscription, self.now()):
            self._changing.setdefault(held.subscription.topic, set()).add((session.client, held.subscription.id))
            self._changing_topics.add(held.subscription.topic, 0)
        self._changed(session)

    def unsubscribe(self, session: Session, held: Held) -> None:
        """End it; what is not there may be ended, too."""
        self.settle()
        name = held.subscription.id
        gone = session.held.pop(name, None)
        if gone is None:
            return
        session.held_size -= gone.size
        if held.observation is not None:
            if self.observers is not None:
                self.observers.unsubscribe(session, held)
            return
        if held.group is not None:
            key = _share_key(held)
            if self._groups[key].leave(session.client):
                del self._groups[key]
                self.matcher.remove_client(key)
        elif name in self._by_schemes.get(session.client, ()):
            self._by_schemes[session.client].discard(name)
            if not self._by_schemes[session.client]:
                del self._by_schemes[session.client]
                if session.client in self._beside:
                    self._beside.remove_client(session.client)
            assert self.schemes is not None
            self.schemes.unsubscribe(session.client, name)
        else:
            self.matcher.unsubscribe(session.client, name)
            if session.client in self._by_schemes and not _is_relative(held.subscription):
                self._beside.unsubscribe(session.client, name)
        holders = self._changing.get(held.subscription.topic)
        if holders is not None:
            holders.discard((session.client, name))
            if not holders:
                del self._changing[held.subscription.topic]
                self._changing_topics.remove(held.subscription.topic, 0)
        self._changed(session)

    def forget(self, session: Session) -> None:
        """The session is gone, with all that it held."""
        for held in list(session.held.values()):
            self.unsubscribe(session, held)
        if session.client in self.matcher:
            self.matcher.remove_client(session.client)

    def _begin_schemes(self, session: Session) -> None:
        """The client is about to have an area in the hands of schemes."""
        if session.client in self._by_schemes:
            return
        self._by_schemes[session.client] = set()
        for held in session.held.values():
            if held.group is None and held.observation is None and not _is_relative(held.subscription):
                self._beside.subscribe(session.client, held.subscription)

    def _share(self, session: Session, held: Held) -> None:
        key = _share_key(held)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = SharedGroup(key)
            self.matcher.subscribe(key, held.subscription)
        group.join(session, held)

    def _changed(self, session: Session) -> None:
        self._routes.clear()
        own = [each for each in session.held.values() if each.group is None and each.observation is None]
        single = Target.of(session, own) if len(own) == 1 else None
        if single is not None:
            self._single[session.client] = single
        else:
            self._single.pop(session.client, None)
        number = self.matcher.number(session.client)
        if number is not None:
            if number >= len(self.single_of):
                self.single_of.extend([None] * (number + 1 - len(self.single_of)))
            self.single_of[number] = single
        if self.watch is not None:
            self.watch(session)

    def instead_of(self, target: Target) -> Target | None:
        """Whose turn it is if the member that was to get a message has left its group meanwhile."""
        return None if target.shared is None else self.member(target.shared)

    def member(self, held: Held) -> Target | None:
        """Whose turn it is in the group of a shared subscription."""
        group = self._groups.get(_share_key(held))
        chosen = None if group is None else group.choose()
        return None if chosen is None else Target.of(chosen[0], [chosen[1]])

    def shared_by(self, session: Session, topic: str, identifiers: tuple[int, ...]) -> Held | None:
        """The shared subscription by which the session was given a message before a restart; none if it may have been another."""
        asking = [
            each
            for each in session.held.values()
            if each.identifiers == identifiers and topic_matches(each.subscription.topic, topic)
        ]
        return asking[0] if asking and all(each.group is not None for each in asking) else None

    # Events

    def route(self, topic: str) -> Route:
        """Who gets a message that has nothing but a topic."""
        route = self._routes.get(topic)
        if route is not None:
            self._hits += 1
            return route
        route = self.targets(Event("-", topic, self.now())).judged()
        if not self._changing_topics.match(topic):
            if len(self._routes) >= MOST_ROUTES:
                self._routes.clear()
            self._routes[topic] = route
        return route

    def targets(self, event: Event, channel: str | None = None) -> Route:
        """Who gets the event: each client once, and each group."""
        self._matched += 1
        begun = perf_counter()
        receivers = self.matcher.match(event)
        self.match_time.add(perf_counter() - begun)
        # Whoever accepts what is addressed to it may get it without that subscription.
        if not self._by_schemes and event.to is None:
            single = self._single
            try:
                return Route([single[client] for client in receivers])
            except KeyError:
                pass  # somebody holds several
        return self.route_of(event, receivers.deliveries(), channel)

    @property
    def by_itself(self) -> bool:
        """Whether the matcher alone decides, and no filter scheme."""
        return not self._by_schemes

    def together(self, events: EventBatch | Sequence[Event]) -> Matches:
        """What the matcher says to events that are all published now, while it is alone to decide."""
        begun = perf_counter()
        matches = self.matcher.match_batch(events)
        count = len(matches)
        self.match_time.add((perf_counter() - begun) / max(count, 1), count)
        self._matched += len(matches)
        return matches

    def route_of(self, event: Event, deliveries: Iterable[Delivery], channel: str | None = None) -> Route:
        """Who gets the event, of which the matcher says this."""
        found: dict[str, dict[str, None]] = {}
        for delivery in deliveries:
            found[delivery.client] = dict.fromkeys(sorted(delivery.subscriptions))
        self._add_by_schemes(event, channel, found)
        self._add_unlocated(event, found)
        targets, groups = [], []
        for client, names in found.items():
            session = self.sessions.get(client)
            if session is not None:
                if names or session.may_receive(event.topic):
                    targets.append(Target.of(session, [session.held[name] for name in names]))
            elif client in self._groups:
                groups.append(self._groups[client])
        return Route(targets, groups)

    def _add_by_schemes(self, event: Event, channel: str | None, found: dict[str, dict[str, None]]) -> None:
        if self.schemes is None or not self._by_schemes:
            return
        for client in self.schemes.receivers(event, channel):
            session = self.sessions.get(client)
            if session is None or not self._relevant(client, event):
                continue
            names = [
                name
                for name in sorted(self._by_schemes.get(client, ()))
                if accepted(session.held[name].subscription, event, client)
            ]
            if names:
                found.setdefault(client, {}).update(dict.fromkeys(names))

    def _add_unlocated(self, event: Event, found: dict[str, dict[str, None]]) -> None:
        """Those of whom schemes know only cells, and whom the sender may mean: the matcher knows no better where they are."""
        if not self._by_schemes or (event.reach is None and event.to is None):
            return
        for delivery in self._beside.match(event.for_everybody()).deliveries():
            client = delivery.client
            if not self.is_located(client) and self._relevant(client, event):
                found.setdefault(client, {}).update(dict.fromkeys(sorted(delivery.subscriptions)))
        if event.to is not None:
            for client in sorted(self._by_schemes.keys() & self.contexts.accepting):
                if client not in found and not self.is_located(client) and self._relevant(client, event):
                    found[client] = {}

    def is_located(self, client: str) -> bool:
        """Whether it is known here exactly where the client is, or that this is not known at all; if not, the client looks again."""
        if self.schemes is None or client not in self._by_schemes:
            return True
        return self.schemes.exact_position(client) is not None

    def _relevant(self, client: str, event: Event) -> bool:
        """The sender's side, as far as it is known here; the receiver looks again where it is."""
        position = None if self.schemes is None else self.schemes.exact_position(client)
        if position is not None and not within_reach(event.reach, position):
            return False
        return event.to is None or self.contexts.addressed(client, event, located=position is not None)


def _is_relative(subscription: Subscription) -> bool:
    return subscription.area is not None and subscription.area.is_relative


def _changes_by_itself(subscription: Subscription, now: Instant) -> bool:
    frame = subscription.frame
    return subscription.where is not None or frame.until is not None or (frame.since is not None and frame.since > now)


def _share_key(held: Held) -> str:
    # No client id holds a NUL.  Members that want other things of the same topics are not of one group.
    wanted = held.subscription
    return f"\0{held.group}\0{wanted.topic}\0{held.name}\0{wanted.where}\0{wanted.area}"
