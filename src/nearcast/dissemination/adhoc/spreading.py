"""How an event spreads over a local link: the interface of all mechanisms that do it, and what they act through."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

import msgspec

from nearcast.dissemination.adhoc.messages import Carried
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.ports import Address, Sending, Timers
from nearcast.transition.mechanism import Mechanism


@dataclass(slots=True)
class Tally:
    """What a host did; it outlives the mechanisms that did it."""

    frames: int = 0
    forwarded: int = 0
    cancelled: int = 0
    repeated: int = 0


class Broadcast(Protocol):
    def __call__(self, carried: tuple[Carried, ...], place: Point | None = None) -> Sending:
        """Send these to whoever is near, in one frame; ``place`` is where this host is, if others should know."""


@dataclass(frozen=True, slots=True)
class Air:
    """All that a mechanism may use."""

    now: Callable[[], Instant]
    timers: Timers
    random: Callable[[str], Random]
    """A stream of its own for each name; it goes on when mechanisms are exchanged."""

    position: Callable[[], Point | None]
    broadcast: Broadcast
    send: Callable[[Address, Carried], Sending]
    """To one host, which is near."""

    greet: Callable[[tuple[str, ...] | None], Sending]
    """Say hello to whoever is near."""

    inside: Callable[[Carried], bool]
    """Whether this host may send that on, here and now (geofencing); of what is ``heard``, that was asked already."""

    tally: Tally


class Spreading(Mechanism):
    """One way to spread events from host to host.

    It never delivers anything: the last check and the memory of what came already are the inbox's.
    """

    @abstractmethod
    def publish(self, carried: Carried, targets: Sequence[Address]) -> None:
        """Send an event from here on its way; ``targets`` are those near whom it is for, where somebody knows them."""

    def heard(self, carried: Carried, place: Point | None) -> None:
        """The first copy of an event has come, sent from that place; this host may send it on."""

    def copied(self, event: str, place: Point | None) -> None:
        """Another copy has come, or the echo of what was published here."""

    def minds(self, event: str) -> bool:  # noqa: ARG002 - most do not
        """Whether ``copied`` does anything with further copies of that event, now or later."""
        return False

    @property
    def heedless(self) -> bool:
        """Whether further copies make no difference, whatever the event."""
        return type(self).minds is Spreading.minds

    def greeted(self, neighbour: Address, heard: tuple[str, ...] | None) -> None:
        """A host that runs the same mechanism has said hello."""


class Manner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters of a mechanism: its fields (``transition.registry`` says how they are declared)."""

    @abstractmethod
    def mechanism(self, air: Air) -> Spreading: ...
