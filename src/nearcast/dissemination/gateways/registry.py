"""The algorithms that select gateways, by name: what plans, records and scenarios call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, NamedTuple

import msgspec

from nearcast.dissemination.gateways.cs_wca import CsWca, WcaParameters
from nearcast.dissemination.gateways.dkc_leach import DkcLeach
from nearcast.dissemination.gateways.leach import LeachParameters
from nearcast.dissemination.gateways.selection import GatewaySelection
from nearcast.dissemination.gateways.skc_leach import SkcLeach
from nearcast.errors import InvalidPlan
from nearcast.transition.specification import MechanismSpec

PROXY: Final = "gateways"
"""The proxy on the broker's host; ``NULL`` in it means that everybody is told directly."""


class Algorithm(NamedTuple):
    parameters: type[msgspec.Struct]
    """Type, default, bounds and meaning of each."""

    make: Callable[..., GatewaySelection]
    about: str


SELECTIONS: Final[Mapping[str, Algorithm]] = {
    "DKC-LEACH": Algorithm(LeachParameters, lambda given, _random: DkcLeach(given), "the k whose turn it is most"),
    "SKC-LEACH": Algorithm(LeachParameters, SkcLeach, "by lot, everybody in turn, k on average"),
    "CS-WCA": Algorithm(WcaParameters, lambda given, _random: CsWca(given), "one in each cluster, k at most"),
}


def parameters_of(spec: MechanismSpec) -> msgspec.Struct:
    """The parameters that a specification stands for."""
    algorithm = _algorithm(spec)
    try:
        return msgspec.convert(dict(spec.parameters), algorithm.parameters)
    except msgspec.ValidationError as error:
        has = ", ".join(algorithm.parameters.__struct_fields__)
        raise InvalidPlan(f"gateway selection {spec.name}: {error}; its parameters are {has}") from None


def selections(random: Random) -> Callable[[MechanismSpec], GatewaySelection]:
    """Makes the algorithm that a specification names; all of them draw from one stream, which outlives them."""
    return lambda spec: _algorithm(spec).make(parameters_of(spec), random)


def _algorithm(spec: MechanismSpec) -> Algorithm:
    try:
        return SELECTIONS[spec.name]
    except KeyError:
        raise InvalidPlan(
            f"there is no gateway selection {spec.name!r}; there are {', '.join(SELECTIONS)}, and null for none"
        ) from None
