"""SKC-LEACH: LEACH with its random rotation, k clients on average (BYPASS.KOM 4.3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from nearcast.dissemination.gateways.leach import LeachParameters, LeachSelection


class SkcParameters(LeachParameters, frozen=True, kw_only=True):
    """By lot, everybody in turn, k on average."""

    def selection(self, random: Random) -> SkcLeach:
        return SkcLeach(self, random)


class SkcLeach(LeachSelection):
    """Every client draws, with LEACH's threshold.

    Where all of them fail, LEACH has no head in that round; here the one whose turn it is most stands in.  That counts as its turn, so
    that there are still k on average: who has had its turn already will miss the next.
    """

    def __init__(self, parameters: LeachParameters, random: Random) -> None:
        super().__init__(parameters)
        self._random: Final = random

    def _preferred(self, ranked: list[int], thresholds: Sequence[float], _k: int) -> tuple[list[int], int]:
        # All of them draw, whatever came of the others: what one knows of the ledger does not change the luck of the next.
        drawn = {index for index, limit in enumerate(thresholds) if self._random.random() < limit}
        return sorted(ranked, key=lambda index: index not in drawn), max(1, len(drawn))

    def _turns(self, k: int, gateways: int) -> float:
        return gateways if self._parameters.cover else k
