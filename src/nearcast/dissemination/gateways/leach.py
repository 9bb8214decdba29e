"""LEACH as a ranking of candidates (Heinzelman et al., 2000; BYPASS.KOM 4.3.4).

A client that has not served in its epoch does so with probability ``P / (1 - P * (r mod 1/P))``; one that has, does not.  DKC-LEACH
takes the highest of these thresholds, SKC-LEACH draws against them; both then give everybody else to the nearest gateway.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from nearcast.dissemination.gateways.candidate import Candidate, Distances, nearest
from nearcast.dissemination.gateways.selection import BATTERY, RADIO_RANGE, RANGE, Algorithm, GatewaySelection, Service


class LeachParameters(Algorithm, frozen=True, kw_only=True):
    # Beyond the document, which ranks by nothing but turns (4.3.4) and leaves out who should not be needed (6.4.2).
    battery: Annotated[float, BATTERY] = 0.0
    cover: Annotated[
        bool,
        msgspec.Meta(
            description="whether candidates in range of a gateway are passed over, until nobody is out of range of all"
        ),
    ] = False
    radio_range: Annotated[float, RANGE] = RADIO_RANGE


def threshold(service: Service, share: float) -> float:
    """LEACH's, for a candidate with that share of a turn; 1 and more: it is certain to serve."""
    if service.owed < 1:
        return 0.0
    remaining = 1.0 - service.epoch
    return share / remaining if share < remaining else 1.0


class LeachSelection(GatewaySelection):
    def __init__(self, parameters: LeachParameters) -> None:
        super().__init__(parameters.battery)
        self._parameters: Final = parameters

    def _select(
        self, candidates: Sequence[Candidate], between: Distances, shares: Sequence[float], k: int
    ) -> dict[int, list[int]]:
        services = [self._service(candidate) for candidate in candidates]
        thresholds = [threshold(service, share) for service, share in zip(services, shares, strict=True)]

        def rank(index: int) -> tuple[float, int, int, str]:
            # Among equals, who has waited for longer; at the very beginning, the names decide.
            return -thresholds[index], -services[index].owed, services[index].last, candidates[index].address

        preferred, most = self._preferred(sorted(range(len(candidates)), key=rank), thresholds, k)
        gateways = self._covering(preferred, between, most) if self._parameters.cover else preferred[:most]
        return dict(zip(gateways, nearest(between, gateways), strict=True))

    @abstractmethod
    def _preferred(self, ranked: list[int], thresholds: Sequence[float], k: int) -> tuple[list[int], int]:
        """Candidates, those first that should rather be gateways; and how many of them."""

    def _covering(self, preferred: list[int], between: Distances, most: int) -> list[int]:
        in_range = between <= self._parameters.radio_range
        gateways: list[int] = []
        for index in preferred:
            if len(gateways) == most:
                break
            if not in_range[index, gateways].any():
                gateways.append(index)
        return gateways
