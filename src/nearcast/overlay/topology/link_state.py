"""What each router says of its links, and what one router knows of all of them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.ports import Address

LatLon = tuple[float, float]

LARGEST_NUMBER: Final = 2**62
"""Numbers are instants, or little more; one that leaves no room above it would silence its router for ever."""

_encode: Final = msgspec.msgpack.Encoder().encode


class LinkState(msgspec.Struct, frozen=True, array_like=True):
    """What a router says of its links: the one with the largest number counts."""

    router: Address
    life: int
    """When it started: a router that returns is a new one."""

    number: int
    place: LatLon
    links: tuple[tuple[Address, int], ...]
    """Neighbour and weight, by neighbour.  Weights are whole numbers: the last digit of a distance is not the same on all
    machines, and all must make the same tree."""


def digest_of(state: LinkState) -> int:
    return int.from_bytes(hashlib.blake2b(_encode(state), digest_size=16).digest(), "little")


def flaw_in(state: LinkState, latest: Instant = LARGEST_NUMBER - 1) -> str | None:
    """Why a link state cannot be true; ``latest``: what a clock somewhere could show now."""
    latitude, longitude = state.place
    names = [neighbour for neighbour, _ in state.links]
    if not state.router:
        return "it has no router"
    if not 0 <= state.number < LARGEST_NUMBER or not 0 <= state.life < LARGEST_NUMBER:
        return "its number is out of bounds"
    if state.number > latest:
        return "its number is of the future"
    if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):  # not: `not a number` is no place, either
        return "it is nowhere on the earth"
    if state.router in names or any(one >= other for one, other in itertools.pairwise(names)):
        return "its links are out of order, doubled, or lead to itself"
    if any(weight < 0 for _, weight in state.links):
        return "a link weighs less than nothing"
    return None


def place_of(state: LinkState) -> Point:
    return Point(*state.place)


@dataclass(frozen=True, slots=True)
class KnownStates:
    """Link states that several routers share: a topology that is given."""

    states: Mapping[Address, LinkState] = field(default_factory=dict)
    digest: int = 0
    """All of theirs, each exclusive-or the next."""


class LinkStates:
    """The newest link state of every router that was heard of."""

    # Ten thousand routers that know ten thousand each do not fit into memory; what all of them were given, they share.
    def __init__(self, given: KnownStates | None = None) -> None:
        given = given or KnownStates()
        self._given: Final = given.states
        self._changed: Final[dict[Address, LinkState | None]] = {}
        self.digest = given.digest
        """Of all of them: equal for whoever knows the same."""

    def get(self, router: Address) -> LinkState | None:
        return self._changed[router] if router in self._changed else self._given.get(router)

    def take(self, state: LinkState) -> bool:
        """Keep it if it is newer than what is known."""
        known = self.get(state.router)
        if known is not None:
            if state.number <= known.number:
                return False
            self.digest ^= digest_of(known)
        self._changed[state.router] = state
        self.digest ^= digest_of(state)
        return True

    def forget(self, router: Address) -> None:
        known = self.get(router)
        if known is None:
            return
        self.digest ^= digest_of(known)
        if router in self._given:
            self._changed[router] = None
        else:
            del self._changed[router]

    def __iter__(self) -> Iterator[LinkState]:
        changed = self._changed
        yield from (state for state in self._given.values() if state.router not in changed)
        yield from (state for state in changed.values() if state is not None)
