"""What routers say to each other of contexts.

Attributes travel as the trees of ``model.value_text``.  A message keeps what was read from it (``dict``): in one process it is
the same object at every hop.
"""

from __future__ import annotations

from typing import Any, Final

from nearcast.model.history import Context
from nearcast.model.value_text import tree_of_value, value_of_tree
from nearcast.overlay.handles import Handle
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

__all__ = [
    "PORT", "STREAM", "Absence", "Again", "Attributes", "ContextEntry", "Entries", "Everything", "Handle", "Needless", "Nobody",
    "OriginDigests", "Partials", "Retired", "Somebody", "Stream", "Unwanted", "attributes_tree", "context_in", "context_of", "entry_of",
]  # fmt: skip

PORT: Final = 21

Attributes = tuple[str, ...]
"""Names in their order: the set A_p of a composite."""


class ContextEntry(Message, frozen=True, tag="context", dict=True):
    """A context as a router tells it: the newest version counts, and one without attributes is a removal."""

    handle: Handle
    version: int
    origin: Address
    attributes: dict[str, Any] | None


class Entries(Message, frozen=True, tag="contexts"):
    """Several: to a neighbour that is new, or that knows something else."""

    entries: tuple[ContextEntry, ...]


class OriginDigests(Message, frozen=True, tag="origins"):
    """What a router knows of each origin, as a number: the answer is whatever differs."""

    tree: int
    digests: dict[Address, int]


class Stream(Message, frozen=True, kw_only=True, tag="stream"):
    """What is said of one link only: numbered, so that it is understood in the order in which it was said."""

    tree: int
    number: int


class Partials(Stream, frozen=True, kw_only=True, tag="composite", dict=True):
    """A composite, or what has changed in it: number of a partial context, its attributes (none: gone), those that some lack."""

    names: Attributes
    whole: bool
    partials: tuple[tuple[int, dict[str, Any] | None, tuple[str, ...]], ...]
    hops: tuple[int, ...] = ()
    """How far away each of them is, or a part of it, from who says so; left out where nobody wants to know."""


class Everything(Stream, frozen=True, kw_only=True, tag="all composites"):
    """All composites, whatever was said before."""

    composites: tuple[Partials, ...]


class Retired(Stream, frozen=True, kw_only=True, tag="composite retired"):
    """It is not kept up to date any more."""

    names: Attributes


class Unwanted(Stream, frozen=True, kw_only=True, tag="invalidation"):
    """It is not worth its updates (Alg. 5.5)."""

    names: Attributes


class Absence(Stream, frozen=True, kw_only=True, tag="absence", dict=True):
    """Of whoever meets a conjunction of constraints (``absences``)."""

    conjunct: str


class Nobody(Absence, frozen=True, kw_only=True, tag="nobody", dict=True):
    """Behind me nobody meets that."""


class Somebody(Absence, frozen=True, kw_only=True, tag="somebody", dict=True):
    """That is not so any more, or nobody looks after it any more."""


class Needless(Absence, frozen=True, kw_only=True, tag="needless", dict=True):
    """That you said so is of no use here."""


class Again(Message, frozen=True, tag="again"):
    """Something of that link's stream is missing."""

    tree: int


STREAM: Final = (Partials, Everything, Retired, Unwanted, Nobody, Somebody, Needless)


def attributes_tree(context: Context) -> dict[str, Any]:
    return {name: tree_of_value(name, value) for name, value in context.items()}


def context_of(tree: dict[str, Any]) -> Context:
    return {name: value_of_tree(value) for name, value in tree.items()}


def entry_of(handle: Handle, version: int, origin: Address, context: Context | None) -> ContextEntry:
    entry = ContextEntry(handle, version, origin, None if context is None else attributes_tree(context))
    entry.__dict__["context"] = context
    return entry


def context_in(entry: ContextEntry) -> Context | None:
    """The context, unpacked; kept with the message, because one message reaches many."""
    if "context" not in entry.__dict__:
        entry.__dict__["context"] = None if entry.attributes is None else context_of(entry.attributes)
    context: Context | None = entry.__dict__["context"]
    return context
