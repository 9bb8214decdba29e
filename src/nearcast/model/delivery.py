"""The definition of delivery: interest meets relevance.

This module is written to be read.  Everything that is faster is tested against it.

*Interest*: some subscription's topic, predicate and time frame accept the event, and so does its area.
*Relevance*: the event's reach contains the client's position, and one of its contexts meets the addressing, at the
time of which the temporal predicate speaks (without one: at publication).

Both are brought together at a **moment**:

- at publication, if the subscription was held then;
- at the time of subscribing, for a subscription that reaches into the past (its area lies around the position of
  that time, relevance is still that of the publication);
- for an event with a temporal predicate, at the time at which the predicate becomes true of one maximal interval
  during which one conjunct of the addressing and the reach held.  The subscription must be held at that time.

An event exists from its publication until its lifetime ends or it is unpublished; no moment lies outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nearcast.model.area import Area
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.history import ClientHistory, Held, History
from nearcast.model.normal_form import Conjunct
from nearcast.model.predicate import And
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant
from nearcast.model.topic import topic_matches
from nearcast.model.values import Value


@dataclass(frozen=True, slots=True)
class Delivery:
    """One copy for one client: which of its subscriptions asked for it, and with which quality of service."""

    client: str
    subscriptions: frozenset[str]
    """Empty for a client that accepts addressed events without a subscription."""
    qos: int


@dataclass(frozen=True, slots=True)
class Validity:
    """A maximal interval ``[start, end)`` during which something held; ``end`` is ``None`` while it still does."""

    start: Instant
    end: Instant | None


def delivered(history: History, event: Event, client: str, as_of: Instant) -> bool:
    """Whether ``event`` has been delivered to ``client`` by the time ``as_of``."""
    return delivery(history, event, client, as_of) is not None


def receivers(history: History, event: Event, as_of: Instant) -> frozenset[str]:
    """All clients to which ``event`` has been delivered by the time ``as_of``."""
    return frozenset(client for client in history.clients() if delivered(history, event, client, as_of))


def delivery(history: History, event: Event, client: str, as_of: Instant) -> Delivery | None:
    """The copy that ``client`` has got by ``as_of``, with all the subscriptions that asked for it."""
    known = history.client(client)
    asked: dict[str, Subscription] = {}
    accepted = False
    for moment in relevant_moments(history, event, known, as_of):
        accepted = accepted or accepts_without_subscription(event, known, moment)
        for held in known.held:
            at = moment_of(held, event, moment)
            if at is None or at > as_of or not exists(history, event, at):
                continue
            if interested(history, held, event, client, known, at):
                asked[held.subscription.id] = held.subscription
    if not asked and not accepted:
        return None
    return Delivery(client, frozenset(asked), max((s.qos for s in asked.values()), default=0))


def exists(history: History, event: Event, at: Instant) -> bool:
    if at < event.published or (event.lifetime is not None and at >= event.published + event.lifetime):
        return False
    unpublished = history.unpublished_at(event.id)
    return unpublished is None or at < unpublished


# Relevance: the sender's side


def relevant_moments(history: History, event: Event, known: ClientHistory, as_of: Instant) -> Iterator[Instant]:
    """The moments, up to ``as_of``, at which the event is or becomes relevant to the client."""
    if event.when is None:
        at = event.published
        if at <= as_of and exists(history, event, at) and relevant(event, known, at):
            yield at
        return
    for validity in validities(event, known, as_of):
        decided = event.when.decided_at(validity.start, validity.end, as_of)
        if decided is not None:
            moment = max(decided, event.published)
            if moment <= as_of and exists(history, event, moment):
                yield moment


def relevant(event: Event, known: ClientHistory, at: Instant) -> bool:
    return within_reach(event.reach, known.position.at(at)) and addressed(event, known, at)


def within_reach(reach: Area | None, position: Point | None) -> bool:
    if reach is None:
        return True
    return position is not None and reach.covers(position)


def addressed(event: Event, known: ClientHistory, at: Instant) -> bool:
    return event.to is None or addressed_by(event, (context for _, context in known.contexts_at(at)))


def addressed_by(event: Event, contexts: Iterable[Mapping[str, Value]]) -> bool:
    """Whether one conjunct holds within one context."""
    if event.to is None:
        return True
    return any(evaluate(And(conjunct), context) is True for context in contexts for conjunct in event.conjuncts)


def validities(event: Event, known: ClientHistory, as_of: Instant) -> Iterator[Validity]:
    """For each context and conjunct, the maximal intervals during which it and the reach hold together."""
    instants = [at for at in known.changes() if at <= as_of]
    if event.to is None:  # the reach alone: contexts come and go without ending its interval
        yield from _maximal(
            (at, known.present.at(at) and within_reach(event.reach, known.position.at(at))) for at in instants
        )
        return
    names = {name for at in instants for name, _ in known.contexts_at(at)}
    for name in sorted(names):
        for conjunct in event.conjuncts:
            yield from _maximal((at, _holds(event, conjunct, known, name, at)) for at in instants)


def _holds(event: Event, conjunct: Conjunct, known: ClientHistory, name: str, at: Instant) -> bool:
    context = dict(known.contexts_at(at)).get(name)
    if context is None or not within_reach(event.reach, known.position.at(at)):
        return False
    return evaluate(And(conjunct), context) is True


def _maximal(steps: Iterator[tuple[Instant, bool]]) -> Iterator[Validity]:
    start: Instant | None = None
    for at, holds in steps:
        if holds and start is None:
            start = at
        elif not holds and start is not None:
            yield Validity(start, at)
            start = None
    if start is not None:
        yield Validity(start, None)


# Interest: the receiver's side


def accepts_without_subscription(event: Event, known: ClientHistory, moment: Instant) -> bool:
    """Contextcast: the sender chooses, if the client has switched that on.  A reach alone addresses nobody."""
    return event.to is not None and known.accepts_addressed.at(moment) and known.present.at(moment)


def moment_of(held: Held, event: Event, relevant_at: Instant) -> Instant | None:
    """When the subscription and the event meet; ``None`` if never."""
    if held.active(relevant_at):
        return relevant_at
    # A subscription into the past meets what was published before it; but a message to the past or the future
    # comes at its own moment, and finds the subscription or does not.
    into_the_past = event.when is None and held.subscribed > event.published
    return held.subscribed if into_the_past and held.active(held.subscribed) else None


def interested(history: History, held: Held, event: Event, client: str, known: ClientHistory, at: Instant) -> bool:
    subscription = held.subscription
    return (
        not (subscription.no_local and event.publisher == client)
        and topic_matches(subscription.topic, event.topic)
        and subscription.frame.contains(event.published)
        and in_area(subscription.area, event.place, known.position.at(at))
        and content_accepted(history, held, event, known)
    )


def in_area(area: Area | None, place: Point | None, position: Point | None) -> bool:
    """An event without a place passes every area (BYPASS.KOM 4.2.1); a client without a position has no area around it."""
    if area is None or place is None:
        return True
    if position is None:
        return not area.is_relative and area.covers(place)
    return area.covers_from(position, place)


def content_accepted(history: History, held: Held, event: Event, known: ClientHistory) -> bool:
    """Unknown is false at the top."""
    where = held.subscription.where
    if where is None:
        return True

    def distance_decreases(name: str | None) -> bool | None:
        return approaching(history, event, known, held, name)

    return evaluate(where, event.properties(), distance_decreases) is True


def approaching(
    history: History, event: Event, known: ClientHistory, held: Held, name: str | None = None
) -> bool | None:
    """STEAM's ``distance decreases``: nearer than at the previous event of the same publisher and topic.

    ``name`` is the attribute that says where (the event's place if ``None``).  Unknown without both positions, and
    without a previous event since the client subscribed: the paper leaves the first event open, and a subscriber
    knows no direction before its second one.
    """
    before = history.previous(event)
    if before is None or before.published < held.subscribed:
        return None
    now_there, then_there = _where(event, name), _where(before, name)
    now_here, then_here = known.position.at(event.published), known.position.at(before.published)
    if now_there is None or then_there is None or now_here is None or then_here is None:
        return None
    return distance(now_here, now_there) < distance(then_here, then_there)


def _where(event: Event, name: str | None) -> Point | None:
    value = event.place if name is None else event.properties().get(name)
    return value if isinstance(value, Point) else None
