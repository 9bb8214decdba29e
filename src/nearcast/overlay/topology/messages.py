"""What routers say to each other about their links."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from nearcast.overlay.topology.link_state import LatLon, LinkState
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

Digest = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


class Propose(Message, frozen=True, tag="propose link"):
    """Let us be neighbours."""

    life: int
    place: LatLon
    insist: bool
    """Also if a link has to be given up for it."""


class Agree(Message, frozen=True, tag="agree to link"):
    life: int
    place: LatLon


class Refuse(Message, frozen=True, tag="refuse link"):
    """No slot is free."""


class Part(Message, frozen=True, tag="part"):
    """You are no neighbour of mine, or not any more."""


class Heartbeat(Message, frozen=True, tag="heartbeat"):
    life: int
    digest: Digest
    """Of the link states that count: neighbours with the same one have the same tree."""

    news: bytes
    """Whatever the routing wants its neighbour to know."""


class Search(Message, frozen=True, tag="search"):
    """To a contact: who around that place has a free slot?  From there to everybody in that area (``relayed``)."""

    seeker: Address
    number: int
    place: LatLon
    radius: float
    relayed: bool


class Asked(Message, frozen=True, tag="asked"):
    """The contact has passed the question on."""

    number: int
    everyone: bool
    """The area held all routers there are: a larger one is of no use."""


class Offer(Message, frozen=True, tag="offer"):
    """Of a router in that area."""

    number: int
    free: bool
    """There is a slot; otherwise a link could be given up on which no tree depends."""


class States(Message, frozen=True, tag="link states"):
    states: tuple[LinkState, ...]


class Summary(Message, frozen=True, tag="summary"):
    """Which link states somebody has."""

    numbers: dict[Address, int]


class Wanted(Message, frozen=True, tag="wanted"):
    """Link states that a summary named, and that are to be sent."""

    routers: tuple[Address, ...]


KINDS: Final = (Heartbeat, States, Propose, Agree, Refuse, Part, Search, Asked, Offer, Summary, Wanted)
