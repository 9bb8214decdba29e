"""What the halves of the schemes say to each other (BYPASS.KOM 4.2.4; the catalogue in 3.10 of the digest).

All of them say *when* the position in them was measured: messages may overtake each other, and an old one never replaces a
newer one.  Every one carries the position if the client gives it away at all, so that a broker that has moved on to another
scheme can still use what it gets.
"""

from __future__ import annotations

from typing import TypeAlias

from nearcast.runtime.messages import Message


class SchemeMessage(Message, frozen=True, kw_only=True):
    """What all of them carry: the tag (BYPASS.KOM 4.2.2), put on by the carrier when it is sent."""

    scheme: str = ""
    """Name of the scheme that its sender runs."""

    clock: int = 0
    """Lamport time of the plan by which the sender came to it; who has seen a later one is ahead."""


class ClientMessage(SchemeMessage, frozen=True, kw_only=True):
    """From a client."""

    subscriptions: int = 0
    """How many it holds; so the broker notices that it lost, or never got, one of them."""


class ContextUpdate(ClientMessage, frozen=True, tag="context"):
    """Where the client is, and how it moves (RADIAL, STE; ATTRACT with updates)."""

    measured: int
    lat: float
    lon: float
    speed: float = 0.0
    heading: float | None = None


class AssignmentRequest(ClientMessage, frozen=True, tag="assignment request"):
    """The client has left the channels that it was assigned to, or has none."""

    measured: int
    lat: float
    lon: float


class Joining(ClientMessage, frozen=True, tag="joining"):
    """The client has chosen its channels itself: all that the broker ever learns of where it is."""

    measured: int
    channels: tuple[str, ...]


class Assignment(SchemeMessage, frozen=True, tag="assignment"):
    """The broker has chosen the client's channels."""

    measured: int
    """When the position was measured on which the choice rests."""

    channel: str | None
    """Under which the client publishes what happens where it is."""

    channels: tuple[str, ...]
    answers: bool = False
    """The client has asked; else the broker has thought of it by itself, and what the client said may still be on its way."""


FromClient: TypeAlias = ContextUpdate | AssignmentRequest | Joining
"""What a client half may say."""

ToClient: TypeAlias = Assignment
"""What a broker half may say."""
