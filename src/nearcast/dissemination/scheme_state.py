"""What a broker writes down of a client, so that it goes on with it after a restart as if nothing had happened.

Subscriptions are not part of it: whoever keeps sessions keeps these, and subscribes again.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nearcast.filtering.context import ClientContext
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.transition.specification import MechanismSpec


class KeptContext(msgspec.Struct, frozen=True, array_like=True):
    """A ``ClientContext`` without its subscriptions."""

    measured: int
    clock: int
    position: tuple[float, float] | None
    speed: float
    heading: float | None
    channels: tuple[str, ...]
    own: str | None


class OldService(msgspec.Struct, frozen=True, array_like=True):
    """A scheme that was exchanged and goes on for the client, which was not heard in the new one yet."""

    scheme: MechanismSpec
    clock: int
    """Of the plan by which the client is to leave it."""

    said_under: int
    """The clock under which the client knows it: the tag of what it is told."""

    context: KeptContext


class ClientState(msgspec.Struct, frozen=True, array_like=True):
    """One client."""

    scheme: MechanismSpec
    pinned: bool
    clock: int
    """Of the plan by which it is in that scheme, or is to come to it."""

    context: KeptContext
    old: tuple[OldService, ...] = ()
    """Oldest first."""


def as_kept(context: ClientContext) -> KeptContext:
    position = context.position
    return KeptContext(
        context.measured,
        context.clock,
        None if position is None else (position.lat, position.lon),
        context.speed,
        context.heading,
        context.channels,
        context.own,
    )


def context_in(kept: KeptContext, subscriptions: Mapping[str, Subscription]) -> ClientContext:
    return ClientContext(
        dict(subscriptions),
        kept.measured,
        kept.clock,
        None if kept.position is None else Point(*kept.position),
        kept.speed,
        kept.heading,
        kept.channels,
        kept.own,
    )
