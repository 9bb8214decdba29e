"""What hosts say to each other: floods, words between neighbours, and packets for one host."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from nearcast.crowdstore.objects import CrowdSubscription, Metadata, ObjectKey, SubscriptionKey
from nearcast.crowdstore.unicast.messages import Packet
from nearcast.model.time import LARGEST, Instant
from nearcast.runtime.messages import Message

WINDOW: Final = 8
"""Chunks that are asked for at a time."""

KNOWN: Final = 128
"""Subscriptions of which a host that joins says that it knows them."""

DIGEST: Final = 8
"""Bytes by which it names each of them."""

Time = Annotated[int, msgspec.Meta(gt=-LARGEST, lt=LARGEST)]


class Interest(msgspec.Struct, frozen=True, array_like=True):
    """A subscription on its way; whoever gets it reads the formula, and may find that it is none."""

    key: SubscriptionKey
    formula: Annotated[str, msgspec.Meta(max_length=1_024)]
    since: Time | None
    until: Time | None
    made: Time
    """When its owner told of it: it is told anew when that host returns, or takes this mechanism up."""


def interest_of(subscription: CrowdSubscription, made: Instant) -> Interest:
    frame = subscription.frame
    return Interest(subscription.key, subscription.formula.text, frame.since, frame.until, made)


class Subscribe(Message, frozen=True, tag="crowd-subscribe"):
    """Flooded."""

    interest: Interest


class Unsubscribe(Message, frozen=True, tag="crowd-unsubscribe"):
    """Flooded."""

    key: SubscriptionKey
    made: Time


class Join(Message, frozen=True, tag="crowd-join"):
    """To all neighbours: what subscriptions are there?"""

    known: Annotated[bytes, msgspec.Meta(max_length=KNOWN * DIGEST)] = b""
    """Digests of those that need not be told."""


class JoinAnswer(Message, frozen=True, tag="crowd-join-answer"):
    """To the neighbour that asked, in parts."""

    part: Annotated[int, msgspec.Meta(ge=0)]
    parts: Annotated[int, msgspec.Meta(ge=1, le=65_535)]
    interests: tuple[Interest, ...]


class Notify(Packet, frozen=True, tag="crowd-notify"):
    """These match the subscription."""

    subscription: SubscriptionKey
    objects: tuple[Metadata, ...]
    left: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many more of the past there are, of which was not told; none: it is not of the past."""


class Unwanted(Packet, frozen=True, tag="crowd-unwanted"):
    """There is no such subscription: whoever told of a match has not heard that it was ended."""

    subscription: SubscriptionKey


class More(Packet, frozen=True, tag="crowd-more"):
    """A further batch of the past, please: what comes after that publication."""

    subscription: SubscriptionKey
    published: Time
    name: str


class Get(Packet, frozen=True, tag="crowd-get"):
    """These chunks of an object, please."""

    key: ObjectKey
    chunks: Annotated[tuple[Annotated[int, msgspec.Meta(ge=0)], ...], msgspec.Meta(max_length=WINDOW)]


class Chunk(Packet, frozen=True, tag="crowd-chunk"):
    key: ObjectKey
    number: int
    data: bytes


class Absent(Packet, frozen=True, tag="crowd-absent"):
    """It is not here (any more)."""

    key: ObjectKey


class Search(Message, frozen=True, tag="crowd-search"):
    """Flooded, but not beyond those who can help: its owner does not answer, who else has a copy?"""

    asker: str
    key: ObjectKey
    digest: bytes
    made: Time


class Have(Packet, frozen=True, tag="crowd-have"):
    """There is a copy here."""

    key: ObjectKey
