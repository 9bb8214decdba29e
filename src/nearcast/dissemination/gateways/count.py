"""How many gateways there should be for so many receivers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nearcast.dissemination.gateways.candidate import Candidate, distances
from nearcast.dissemination.gateways.selection import RADIO_RANGE
from nearcast.errors import InvalidInput

Count = Callable[[Sequence[Candidate]], int]

SINGLE_HOP: Final = 0.4
"""Share of receivers that are gateways where events go one hop from them (BYPASS.KOM 6.4.2)."""

MULTI_HOP: Final = 0.2


@dataclass(frozen=True, slots=True)
class Share:
    """``k = ceil(|U| * k')`` (BYPASS.KOM 6.4.2)."""

    share: float = SINGLE_HOP

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidInput(f"a share of receivers lies above 0 and is at most 1, not {self.share!r}")

    def __call__(self, candidates: Sequence[Candidate]) -> int:
        # Without what is lost in rounding: a fifth of 35 is 7.
        return math.ceil(len(candidates) * self.share - 1e-9)


@dataclass(frozen=True, slots=True)
class Density:
    """As few as are expected to reach a share of the receivers in one hop, by how close these stand.

    The document takes a share of the receivers, and sees events arrive up to four times where they stand close (6.4.2); it proposes to
    count in their density.  LEACH knows nothing of places, so its gateways are as good as drawn: of n candidates of whom d are in range
    of one (itself among them), k draws leave it out with probability C(n - d, k) / C(n, k).  The smallest k with which that is small
    enough on average is the answer.  Algorithms that look at places need fewer, and take ``k`` for the most.
    """

    coverage: float = 0.95
    """The share of candidates that are to be gateways, or in range of one."""

    radio_range: float = RADIO_RANGE

    def __post_init__(self) -> None:
        if not (0 < self.coverage <= 1 and 0 < self.radio_range < math.inf):
            raise InvalidInput(
                f"coverage is a share above 0, and a radio range positive, not {self.coverage!r} and {self.radio_range!r} m"
            )

    def __call__(self, candidates: Sequence[Candidate]) -> int:
        number = len(candidates)
        if number < 2:
            return number
        others = number - (distances(candidates) <= self.radio_range).sum(axis=1)
        missed = np.ones(number)
        for k in range(1, number + 1):
            missed *= np.maximum(others - (k - 1), 0) / (number - (k - 1))
            if 1.0 - missed.mean() >= self.coverage - 1e-12:
                return k
        return number
