"""Why somebody got an event, or did not, as it is answered: to the command line and to the live map."""

from __future__ import annotations

import msgspec


class Place(msgspec.Struct, frozen=True):
    lat: float
    lon: float


class EventRow(msgspec.Struct, frozen=True):
    event: str
    topic: str
    at: str
    """When it was published: RFC 3339."""

    place: Place | None
    payload: str | None
    """The beginning of it, if it is a text."""


class Term(msgspec.Struct, frozen=True):
    """A term of the definition of delivery, and what it depends on."""

    ok: bool
    what: str
    text: str
    children: list[Term]


class Explained(msgspec.Struct, frozen=True):
    event: EventRow
    client: str
    delivered: bool
    """Whether the broker sent it."""

    tree: Term
    """What the definition of delivery says, with what was known at publication."""

    note: str | None
    """What is not known any more, or why the two differ."""
