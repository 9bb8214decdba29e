"""How many hosts a crowd has, and how many of them come and go, without a list of them.

Each host draws numbers from an exponential distribution, the same for its whole life; the crowd finds the smallest of each by telling
neighbours what is known (extrema propagation: Baquero, Almeida, Menezes, 2009).  The smallest of *n* such numbers is *n* times smaller on
average, so the sum of *k* of them tells *n*, with a relative error of 1/sqrt(k-2).  The count is taken anew in every round, and
the holder of a smallest number is any host with the same probability: so the share of numbers that have changed since the round before
is the share of hosts that left, plus the share of those that came.  Mobility within a crowd that is connected changes nothing.
"""

from __future__ import annotations

import math
import struct
from hashlib import blake2b
from typing import Final, NamedTuple

NUMBERS: Final = 64
"""So that a size is off by 13 % on average."""

BYTES: Final = 2 * NUMBERS
_FORM: Final = struct.Struct(f">{NUMBERS}H")
_DRAWN: Final = struct.Struct(f">{NUMBERS}Q")
_STEPS: Final = 1_024
"""A number is told by its logarithm, in steps of 0.07 %; the greater, the smaller it is."""

_OFFSET: Final = 6.0


LARGEST: Final = 2**17
"""Hosts: no stadium holds more.  Numbers that only a larger crowd would come to are nobody's; single ones prove nothing, because they vary."""


class Count(NamedTuple):
    size: float
    turnover: float | None
    """The share of hosts that left or came since the round before; none: there was none."""


def numbers_of(life: str) -> tuple[int, ...]:
    """Of one host in one life."""
    drawn = b"".join(blake2b(f"{part} {life}".encode()).digest() for part in range(NUMBERS // 8))
    return tuple(map(_told, _DRAWN.unpack(drawn)))


def _told(drawn: int) -> int:
    value = -math.log((drawn + 0.5) / 2.0**64)
    return min(65_535, max(0, round((_OFFSET - math.log2(value)) * _STEPS)))


def estimate(numbers: tuple[int, ...]) -> float:
    """The size of a crowd by its smallest numbers."""
    return (NUMBERS - 1) / math.fsum(2.0 ** (_OFFSET - number / _STEPS) for number in numbers)


class Census:
    """What one host knows of the count of this round."""

    def __init__(self, life: str) -> None:
        self._own: Final = numbers_of(life)
        self._smallest = self._own
        self._before: tuple[int, ...] | None = None
        self.round: int | None = None
        self.changed = False
        """Whether there is something that was not told yet."""

    def begin(self, number: int) -> Count | None:
        """The round of that number begins; what the one before it came to, unless this host was not there."""
        if self.round is not None and number <= self.round:
            return None
        followed = self.round == number - 1
        count = None
        if followed:
            before = self._before
            turnover = None
            if before is not None:
                turnover = sum(a != b for a, b in zip(before, self._smallest, strict=True)) / NUMBERS
            count = Count(estimate(self._smallest), turnover)
        self._before = self._smallest if followed else None
        self._smallest, self.round, self.changed = self._own, number, True
        return count

    def tell(self) -> bytes:
        self.changed = False
        return _FORM.pack(*self._smallest)

    def hear(self, number: int, told: bytes) -> None:
        """What a neighbour knows of that round."""
        if number != self.round or len(told) != BYTES:
            return
        smallest = tuple(map(max, self._smallest, _FORM.unpack(told)))
        if smallest != self._smallest and estimate(smallest) <= LARGEST:
            self._smallest = smallest
            self.changed = True
