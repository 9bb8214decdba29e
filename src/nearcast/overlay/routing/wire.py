"""Events on their way through the overlay, with whom they are for."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nearcast.errors import InvalidEvent, InvalidInput
from nearcast.matching.entries import Questions, questions
from nearcast.model.area import Box
from nearcast.model.area_text import area_of_tree, area_tree
from nearcast.model.cql2 import parse, parse_addressing
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import POSITION, Context
from nearcast.model.normal_form import Conjunct, disjunctive_normal_form
from nearcast.model.predicate import And, Comparison, Literal, Predicate, Property, Spatial, literal_parts
from nearcast.model.predicate_text import to_text
from nearcast.overlay.routing.messages import attributes_tree, context_of
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

_SMALLEST: Final = 1e-4
_LARGEST: Final = 1e15


class Routed(Message, frozen=True, tag="contextcast", dict=True):
    """An event; ``dict`` leaves room for what is found out about it once."""

    id: str
    topic: str
    published: int
    publisher: str | None
    place: tuple[float, float] | None
    payload: bytes
    attributes: dict[str, Any]
    tags: tuple[str, ...]
    reach: Any
    to: str
    when: str | None
    lifetime: int | None
    origin: Address
    hops: int


def routed(event: Event, origin: Address) -> Routed:
    """The event at the beginning of its way."""
    if event.to is None:
        raise InvalidEvent(f"event {event.id!r} does not say whom it is for; give it `to`")
    message = Routed(
        event.id,
        event.topic,
        event.published,
        event.publisher,
        None if event.place is None else (event.place.lat, event.place.lon),
        event.payload,
        attributes_tree(event.attributes),
        tuple(sorted(event.tags)),
        None if event.reach is None else area_tree(event.reach),
        _written(event),
        None if event.when is None else str(event.when),
        event.lifetime,
        origin,
        0,
    )
    message.__dict__["event"] = event
    return message


def event_in(message: Routed) -> Event:
    event: Event | None = message.__dict__.get("event")
    if event is None:
        event = message.__dict__["event"] = Event(
            message.id,
            message.topic,
            message.published,
            context_of(message.attributes),
            message.tags,
            message.payload,
            message.publisher,
            None if message.place is None else Point(*message.place),
            None if message.reach is None else area_of_tree(message.reach),
            parse(message.to),
            None if message.when is None else parse_addressing(message.when, now=message.published)[1],
            message.lifetime,
        )
    return event


def addressing(event: Event) -> tuple[Conjunct, ...]:
    """Whom it is for: its conjuncts, each with its reach, in which who is to get it stands."""
    if event.reach is None:
        return event.conjuncts
    reach = Spatial("s_within", POSITION, event.reach)
    return tuple((*conjunct, reach) for conjunct in event.conjuncts)


def meets(event: Event, context: Context) -> bool:
    """Whether it is for whoever is in that context."""
    return any(evaluate(And(conjunct), context) is True for conjunct in addressing(event))


def asked(message: Routed) -> Questions:
    """The addressing, as tables want it."""
    found: Questions | None = message.__dict__.get("asked")
    if found is None:
        found = message.__dict__["asked"] = questions(addressing(event_in(message)))
    return found


def one_hop_further(message: Routed) -> Routed:
    further = msgspec.structs.replace(message, hops=message.hops + 1)
    further.__dict__.update(message.__dict__)
    return further


def _written(event: Event) -> str:
    assert event.to is not None
    text = to_text(event.to)
    if all(_plain(literal) for conjunct in event.conjuncts for literal in conjunct):
        return text
    try:
        same = disjunctive_normal_form(parse(text)) == event.conjuncts
    except InvalidInput:
        same = False
    if not same:
        raise InvalidEvent(
            f"the addressing of event {event.id!r} cannot be written as CQL2; use boxes, polygons and S_DWITHIN: {text:.80}"
        )
    return text


def _plain(literal: Predicate) -> bool:
    """Whether it is surely read as it is written: numbers and rectangles, as most messages have them."""
    match literal_parts(literal)[0]:
        case Comparison(_, Property(), Literal(value)) if isinstance(value, (int, float)):
            return _short(value)
        case Spatial(_, _, Box(west, south, east, north)):
            return all(map(_short, (west, south, east, north)))
    return False


def _short(number: float) -> bool:
    """Written without an exponent."""
    return not isinstance(number, bool) and (number == 0 or _SMALLEST <= abs(number) < _LARGEST)
