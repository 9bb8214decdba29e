"""DKC-LEACH: the k clients whose turn it is most, exactly k (BYPASS.KOM 4.3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from nearcast.dissemination.gateways.leach import LeachParameters, LeachSelection


class DkcParameters(LeachParameters, frozen=True, kw_only=True):
    """The k whose turn it is most."""

    def selection(self, _random: Random) -> DkcLeach:
        return DkcLeach(self)


class DkcLeach(LeachSelection):
    """No chance: LEACH's thresholds are a ranking.  With ``cover`` k is the most, and fewer will do where people stand close."""

    def _preferred(self, ranked: list[int], _thresholds: Sequence[float], k: int) -> tuple[list[int], int]:
        return ranked, k
