"""CS-WCA: clusters first, then one gateway in each, by the weight of WCA (BYPASS.KOM 4.3.4; Chatterjee, Das and Turgut, 2002)."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Annotated, Final

from msgspec import Meta

from nearcast.dissemination.gateways.candidate import Candidate, Distances
from nearcast.dissemination.gateways.clusters import clusters
from nearcast.dissemination.gateways.selection import BATTERY, RADIO_RANGE, RANGE, Algorithm, GatewaySelection

_WEIGHT: Final = {"ge": 0, "le": 1_000}


class WcaParameters(Algorithm, frozen=True, kw_only=True):
    """One in each cluster, k at most."""

    # Of Chatterjee et al., section 5; the thesis gives none.
    degree_weight: Annotated[float, Meta(**_WEIGHT, description="of each neighbour too many or too few")] = 0.7
    distance_weight: Annotated[
        float, Meta(**_WEIGHT, description="of the distances to all neighbours together, in radio ranges")
    ] = 0.2
    speed_weight: Annotated[float, Meta(**_WEIGHT, description="of each metre per second")] = 0.05
    service_weight: Annotated[
        float, Meta(**_WEIGHT, description="of each time that it has served beyond its share")
    ] = 0.05

    # Chosen; the paper's depends on how many its radios can serve.
    ideal_degree: Annotated[int, Meta(ge=0, description="so many neighbours are best")] = 10

    # Chosen: half the range, so that everybody in a cluster hears everybody, whoever becomes its gateway.
    cluster_radius: Annotated[
        float, Meta(gt=0, extra={"dimension": "length"}, description="how far from its middle a cluster reaches")
    ] = RADIO_RANGE / 2
    radio_range: Annotated[float, RANGE] = RADIO_RANGE
    battery: Annotated[float, BATTERY] = 0.0

    def selection(self, _random: Random) -> CsWca:
        return CsWca(self)


class CsWca(GatewaySelection):
    """k is the most: how many clusters there are depends on how close people stand."""

    def __init__(self, parameters: WcaParameters) -> None:
        super().__init__(parameters.battery)
        self._parameters: Final = parameters

    def _select(
        self, candidates: Sequence[Candidate], between: Distances, _shares: Sequence[float], k: int
    ) -> dict[int, list[int]]:
        weights = self._weights(candidates, between)

        def weight(index: int) -> tuple[float, str]:
            return weights[index], candidates[index].address

        served: dict[int, list[int]] = {}
        for cluster in clusters(between, self._parameters.cluster_radius, k, [each.address for each in candidates]):
            gateway = min(cluster, key=weight)
            served[gateway] = [index for index in cluster if index != gateway]
        return served

    def _weights(self, candidates: Sequence[Candidate], between: Distances) -> list[float]:
        """Degree difference, sum of distances, mobility and time of service: the smaller the better."""
        wanted = self._parameters
        near = between <= wanted.radio_range
        degrees = near.sum(axis=1) - 1  # nobody is its own neighbour
        # In ranges, where the paper has units of its field: else metres would outweigh everything.
        away = (between * near).sum(axis=1) / wanted.radio_range
        return [
            wanted.degree_weight * abs(degree - wanted.ideal_degree)
            + wanted.distance_weight * distance
            + wanted.speed_weight * (candidate.speed or 0.0)
            # Not all that it has ever served, as in the paper: a newcomer would have to make up for everything.
            + wanted.service_weight * self._service(candidate).ahead
            for candidate, degree, distance in zip(candidates, degrees.tolist(), away.tolist(), strict=True)
        ]
