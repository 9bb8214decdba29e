"""What hosts say to each other on a local link.

All mechanisms of a proxy use one port and one form, so that an event can be read whatever its sender runs; the mark says what that
is (BYPASS.KOM 4.3.3: the flag and the Lamport clock of self-healing).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final

import msgspec

from nearcast.dissemination.wire import EventMessage
from nearcast.model.geometry import Point
from nearcast.runtime.messages import Message
from nearcast.transition.plan import LATEST, Initiator
from nearcast.transition.specification import MechanismSpec

MOST_HOPS: Final = 65_535
"""What says that it has come farther is no event: a number that cannot be counted on would end whoever sends it on."""


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Which mechanism the sender runs, and the plan that said so."""

    mechanism: MechanismSpec
    clock: Annotated[int, msgspec.Meta(ge=0, le=LATEST)] = 0
    initiator: Initiator = ""


def mark_of(mechanism: MechanismSpec, clock: int, initiator: str) -> Mark:
    """One object for all hosts of a process that run the same: they are compared with every message."""
    # Also by its bytes: p=1 and p=1.0 are equal, but not as long, and a run must not depend on those before it.
    return _mark(msgspec.msgpack.encode(mechanism), mechanism, clock, initiator)


@lru_cache(maxsize=4096)
def _mark(_written: bytes, mechanism: MechanismSpec, clock: int, initiator: str) -> Mark:
    return Mark(mechanism, clock, initiator)


class Carried(msgspec.Struct, frozen=True, array_like=True):
    """An event on its way from host to host."""

    event: EventMessage
    hops: Annotated[int, msgspec.Meta(ge=1, le=MOST_HOPS)]
    """How many transmissions it took, this one included."""

    def further(self) -> Carried:
        """As it is sent on."""
        return Carried(self.event, self.hops + 1)


class AdHocEvents(Message, frozen=True, tag="ad hoc event", dict=True):
    """One event, or several that were waiting together (PLAN-B); ``dict`` leaves room for its ``repetition``."""

    mark: Mark
    carried: tuple[Carried, ...]
    lat: float | None = None
    lon: float | None = None

    @property
    def place(self) -> Point | None:
        """Where the sender is, if it says so."""
        return None if self.lat is None or self.lon is None else Point(self.lat, self.lon)


class Hello(Message, frozen=True, tag="hello"):
    """The sender is near (HYPERG)."""

    mark: Mark
    heard: tuple[str, ...] | None = None
    """The newest events that it has, told when somebody new is near; none: nobody is."""
