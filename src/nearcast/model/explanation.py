"""Why an event is, or is not, delivered: the definition of delivery, term by term.

Every term is judged by the function of ``delivery`` that defines it, so an explanation cannot disagree with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nearcast.model import delivery
from nearcast.model.area import Area, Circle
from nearcast.model.evaluation import Approaching
from nearcast.model.event import Event
from nearcast.model.geometry import Point, distance
from nearcast.model.history import IMPLICIT_CONTEXT, ClientHistory, Held, History
from nearcast.model.predicate import And, Predicate
from nearcast.model.predicate_text import to_text as predicate_text
from nearcast.model.time import Instant, to_text
from nearcast.model.topic import topic_matches
from nearcast.model.trace import Trace, trace


@dataclass(frozen=True, slots=True)
class Explanation:
    """A term of the definition, whether it holds, and the terms of which it is made."""

    term: str
    holds: bool
    detail: str = ""
    parts: tuple[Explanation, ...] = ()

    def __bool__(self) -> bool:
        return self.holds

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "term": self.term,
            "holds": self.holds,
            "detail": self.detail,
            "parts": [part.as_dict() for part in self.parts],
        }

    def text(self, depth: int = 0) -> str:
        """For reading: one line a term, deeper terms further right."""
        line = f"{'  ' * depth}{'yes' if self.holds else 'no '} {self.term}{': ' if self.detail else ''}{self.detail}"
        return "\n".join([line, *(part.text(depth + 1) for part in self.parts)])

    def __str__(self) -> str:
        return self.text()


def explain(history: History, event: Event, client: str, as_of: Instant) -> Explanation:
    """Explain ``delivered(history, event, client, as_of)``."""
    known = history.client(client)
    relevance = _relevance(history, event, known, as_of)
    moments = list(delivery.relevant_moments(history, event, known, as_of))
    interest = _interest(history, event, client, known, moments, as_of)
    verdict = delivery.delivered(history, event, client, as_of)
    detail = f"event {event.id!r} {'is' if verdict else 'is not'} delivered to client {client!r}"
    return Explanation("delivered", verdict, detail, (relevance, interest))


def _relevance(history: History, event: Event, known: ClientHistory, as_of: Instant) -> Explanation:
    if event.when is not None:
        return _temporal(history, event, known, as_of)
    at = event.published
    parts = [_reach(event.reach, known.position.at(at))]
    if event.to is not None:
        parts.append(_addressing(event, known, at))
    return Explanation(
        "relevance", all(part.holds for part in parts), "the sender's side, at publication", tuple(parts)
    )


def _reach(reach: Area | None, position: Point | None) -> Explanation:
    holds = delivery.within_reach(reach, position)
    if reach is None:
        return Explanation("reach", holds, "unlimited")
    return Explanation("reach", holds, _where_in(reach, position, "the client"))


def _addressing(event: Event, known: ClientHistory, at: Instant) -> Explanation:
    contexts = list(known.contexts_at(at))
    parts = tuple(
        Explanation(
            "context",
            (verdict := _content_part(conjunct, dict(context))).holds,
            f"{'its position only' if name == IMPLICIT_CONTEXT else repr(name)}",
            (verdict,),
        )
        for name, context in contexts
        for conjunct in (And(terms) for terms in event.conjuncts)
    )
    detail = "one context must meet one conjunct" if contexts else "the client has no context"
    return Explanation("addressing", delivery.addressed(event, known, at), detail, parts)


def _temporal(history: History, event: Event, known: ClientHistory, as_of: Instant) -> Explanation:
    assert event.when is not None
    parts = []
    for validity in delivery.validities(event, known, as_of):
        decided = event.when.decided_at(validity.start, validity.end, as_of)
        ended = "still valid" if validity.end is None else f"valid until {to_text(validity.end)}"
        true_from = "not true so far" if decided is None else f"true from {to_text(decided)}"
        parts.append(
            Explanation("interval", decided is not None, f"from {to_text(validity.start)}, {ended}; {true_from}")
        )
    holds = any(True for _ in delivery.relevant_moments(history, event, known, as_of))
    detail = f"{event.when} of a time during which reach and addressing hold"
    return Explanation("relevance", holds, detail if parts else f"{detail}; there was none", tuple(parts))


def _interest(
    history: History, event: Event, client: str, known: ClientHistory, moments: list[Instant], as_of: Instant
) -> Explanation:
    # Without a moment of relevance the interest is shown as it was at publication.
    relevant_at = moments or [event.published]
    parts = [
        _subscription(history, event, client, known, held, moment, as_of)
        for held in known.held
        for moment in relevant_at
    ]
    if event.to is not None:
        accepts = any(delivery.accepts_without_subscription(event, known, moment) for moment in relevant_at)
        parts.append(
            Explanation(
                "addressed",
                accepts,
                f"the client {'accepts' if accepts else 'does not accept'} addressed events without a subscription",
            )
        )
    return Explanation(
        "interest",
        any(part.holds for part in parts),
        "the receiver's side" if parts else "no subscription",
        tuple(parts),
    )


def _subscription(
    history: History, event: Event, client: str, known: ClientHistory, held: Held, moment: Instant, as_of: Instant
) -> Explanation:
    subscription = held.subscription
    at = delivery.moment_of(held, event, moment)
    met = at is not None and at <= as_of
    parts = [
        Explanation("held", met, _held_text(held)),
        Explanation(
            "existing", at is None or delivery.exists(history, event, at), "not unpublished, lifetime not over"
        ),
        Explanation(
            "topic", topic_matches(subscription.topic, event.topic), f"{event.topic!r} against {subscription.topic!r}"
        ),
        Explanation("frame", subscription.frame.contains(event.published), f"published {to_text(event.published)}"),
        _area(subscription.area, event.place, known.position.at(moment if at is None else at)),
    ]
    if subscription.no_local:
        parts.append(Explanation("no-local", event.publisher != client, f"published by {event.publisher!r}"))
    if subscription.where is not None:
        parts.append(
            _content_part(
                subscription.where,
                event.properties(),
                lambda name: delivery.approaching(history, event, known, held, name),
            )
        )
    return Explanation("subscription", all(part.holds for part in parts), repr(subscription.id), tuple(parts))


def _area(area: Area | None, place: Point | None, position: Point | None) -> Explanation:
    holds = delivery.in_area(area, place, position)
    if area is None:
        return Explanation("area", holds, "everywhere")
    if place is None:
        return Explanation("area", holds, "the event has no place")
    if area.is_relative and position is None:
        return Explanation("area", holds, "the client's position is not known")
    anchored = area if position is None else area.anchored(position)
    return Explanation("area", holds, _where_in(anchored, place, "the event"))


def _where_in(area: Area, point: Point | None, whose: str) -> str:
    if point is None:
        return f"{whose}'s position is not known"
    metres = distance(area.fixed_center(), point)
    if isinstance(area, Circle):
        return f"{whose} is {metres:.1f} m from the centre, radius {area.radius:g} m"
    return f"{whose} is {metres:.1f} m from the middle of the {type(area).__name__.lower()}"


def _held_text(held: Held) -> str:
    until = "" if held.unsubscribed is None else f" until {to_text(held.unsubscribed)}"
    return f"since {to_text(held.subscribed)}{until}"


def _content_part(
    predicate: Predicate, properties: dict[str, object], approaching: Approaching | None = None
) -> Explanation:
    return _from_trace(trace(predicate, properties, approaching), predicate_text(predicate))


def _from_trace(root: Trace, text: str) -> Explanation:
    """Unknown is false at the top; inside, a term that is unknown does not hold either way."""
    detail = text if root.children else root.line()
    return Explanation("content", root.result is True, detail, tuple(_parts(root)))


def _parts(root: Trace) -> Iterator[Explanation]:
    for child in root.children:
        result = "unknown" if child.result is None else str(child.result).lower()
        yield Explanation(child.text, child.result is True, child.detail or result, tuple(_parts(child)))
