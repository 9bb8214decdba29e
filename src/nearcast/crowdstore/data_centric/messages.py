"""What hosts say to each other about what cells keep.  The router says who it is from and for."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from nearcast.crowdstore.data_centric.entries import Coordinate, Entry, Item, Part
from nearcast.crowdstore.objects import Metadata, ObjectKey, SubscriptionKey, Withdrawal
from nearcast.model.time import Instant
from nearcast.runtime.messages import Message

Number = Annotated[int, Meta(ge=0, le=2**31)]
Word = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
MOST: Final = 4_096

FRAME: Final = 1_300
"""Bytes of a message that still fits, with the router's header, into a datagram of 1,500 bytes; longer ones go in pieces."""

PIECES: Final = 64
"""Of one message at most."""

Name = Annotated[str, Meta(max_length=255)]
Words = Annotated[tuple[Word, ...], Meta(max_length=MOST)]


class Operation(Message, frozen=True, tag="crowd-operation"):
    """Base of what is answered: the sender repeats it to cells that have not answered (5.6)."""

    operation: Number


class Publish(Operation, frozen=True, tag="crowd-publish"):
    item: Item


class Unpublish(Operation, frozen=True, tag="crowd-unpublish"):
    withdrawal: Withdrawal
    at: Instant


class Subscribe(Operation, frozen=True, tag="crowd-subscribe"):
    part: Part


class More(Operation, frozen=True, tag="crowd-more"):
    """Further ones of the past, after those that were told (5.4.3)."""

    part: Part
    after: tuple[Instant, ObjectKey]


class Unsubscribe(Operation, frozen=True, tag="crowd-unsubscribe"):
    key: SubscriptionKey
    at: Instant


class Relocated(Operation, frozen=True, tag="crowd-relocated"):
    """The sender has settled in another cell: for all its subscriptions and copies (5.2.3, 5.4.4)."""

    node: Name
    column: Coordinate
    row: Coordinate
    at: Instant


class Replicated(Message, frozen=True, tag="crowd-replicated"):
    """The sender has copies; nobody answers."""

    keys: Annotated[tuple[ObjectKey, ...], Meta(max_length=MOST)]
    node: Name
    column: Coordinate
    row: Coordinate
    at: Instant


class Entrusted(Operation, frozen=True, tag="crowd-entrusted"):
    """Entries for the cell it is sent to: theirs, or those of an empty one that is nearest to it (5.8.2)."""

    entries: Annotated[tuple[Entry, ...], Meta(max_length=MOST)]


class Arrived(Operation, frozen=True, tag="crowd-arrived"):
    """The members of the sender's cell are new there, and do not know what every cell has to know."""


class Locate(Operation, frozen=True, tag="crowd-locate"):
    """Where is it?"""

    key: ObjectKey


class Answered(Message, frozen=True, tag="crowd-answered"):
    """One cell has done it."""

    operation: Number
    column: Coordinate
    row: Coordinate


class Found(Message, frozen=True, tag="crowd-found"):
    """The answer to ``Subscribe`` and ``More``: some of what matches in the past, and how many there are."""

    operation: Number
    column: Coordinate
    row: Coordinate
    subscription: SubscriptionKey
    number: Number
    total: Number
    items: Annotated[tuple[Item, ...], Meta(max_length=MOST)]


class Located(Message, frozen=True, tag="crowd-located"):
    """The answer to ``Locate``; none: nobody here knows."""

    operation: Number
    item: Item | None


class Handed(Message, frozen=True, tag="crowd-handed"):
    """To the members of the sender's cell: these entries, by their hashes, which belong to that one, are there now."""

    column: Coordinate
    row: Coordinate
    stamps: Words


class Notify(Message, frozen=True, tag="crowd-notify"):
    """An object matches these subscriptions; one message for all of their owners (5.8.5)."""

    item: Item
    subscriptions: Annotated[tuple[SubscriptionKey, ...], Meta(max_length=MOST)]


class Fetch(Message, frozen=True, tag="crowd-fetch"):
    """Send these chunks."""

    operation: Number
    key: ObjectKey
    chunks: Annotated[tuple[Number, ...], Meta(max_length=64)]
    node: Name
    column: Coordinate
    row: Coordinate
    """Who wants them, and where it is."""

    passed_on: bool = False
    """By a member that does not have it, to another one."""


class Fetched(Message, frozen=True, tag="crowd-fetched"):
    operation: Number
    chunk: Number
    data: bytes


class Lacking(Message, frozen=True, tag="crowd-lacking"):
    """The sender does not have that object (any more)."""

    operation: Number


class Copy(Message, frozen=True, tag="crowd-copy"):
    """A chunk of an object for all members of the sender's cell (5.2.1)."""

    metadata: Metadata
    chunk: Number
    data: bytes


class Join(Message, frozen=True, tag="crowd-join"):
    """Send me the state of our cell (5.7)."""


class State(Message, frozen=True, tag="crowd-state"):
    """A piece of it, and how many there are."""

    entries: Annotated[tuple[Entry, ...], Meta(max_length=MOST)]
    number: Number
    count: Number
    informed: bool = False
    """Whether the sender knows what every cell has to know."""


class Digest(Message, frozen=True, tag="crowd-digest"):
    """What the sender has, in one number."""

    root: Word


class Sums(Message, frozen=True, tag="crowd-sums"):
    """The sender has something else: here in more detail."""

    sums: Words


class Listing(Message, frozen=True, tag="crowd-listing"):
    """All names and hashes that the sender has in some buckets."""

    buckets: Annotated[tuple[Number, ...], Meta(max_length=64)]
    names: Words
    stamps: Words


class Lack(Message, frozen=True, tag="crowd-lack"):
    """Send me these entries."""

    names: Words


class Entries(Message, frozen=True, tag="crowd-entries"):
    entries: Annotated[tuple[Entry, ...], Meta(max_length=MOST)]


class Piece(Message, frozen=True, tag="crowd-piece"):
    """Of an encoded message that is too long for one frame."""

    whole: Word
    """Its hash."""

    number: Number
    count: Annotated[int, Meta(ge=2, le=PIECES)]
    data: Annotated[bytes, Meta(max_length=FRAME)]


KINDS: Final = (
    Publish, Unpublish, Subscribe, More, Unsubscribe, Relocated, Replicated, Entrusted, Arrived, Handed, Locate, Located, Answered, Found, Notify, Fetch,
    Fetched, Lacking, Copy, Join, State, Digest, Sums, Listing, Lack, Entries, Piece,
)  # fmt: skip
