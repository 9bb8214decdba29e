"""The algorithms that select gateways, by name: those of the house, and those that other packages bring.

A package brings one by an entry point of the group ``nearcast.gateway_selections``: its name is the algorithm's, and it leads to a
class of parameters (``selection.Algorithm``).  Only the broker needs the package.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from nearcast.dissemination.gateways.cs_wca import WcaParameters
from nearcast.dissemination.gateways.dkc_leach import DkcParameters
from nearcast.dissemination.gateways.selection import Algorithm, GatewaySelection
from nearcast.dissemination.gateways.skc_leach import SkcParameters
from nearcast.errors import InvalidPlan
from nearcast.transition.registry import Entry, Registry
from nearcast.transition.specification import MechanismSpec

PROXY: Final = "gateways"
"""The proxy on the broker's host; ``NULL`` in it means that everybody is told directly."""

_OURS: Final[dict[str, Entry[Algorithm]]] = {
    "DKC-LEACH": Entry(DkcParameters),
    "SKC-LEACH": Entry(SkcParameters),
    "CS-WCA": Entry(WcaParameters),
}

SELECTIONS: Final = Registry("gateway selection", "nearcast.gateway_selections", Algorithm, _OURS, InvalidPlan)
parameters_of: Final = SELECTIONS.parameters_of


def selections(random: Random) -> Callable[[MechanismSpec], GatewaySelection]:
    """Makes the algorithm that a specification names."""
    return lambda spec: parameters_of(spec).selection(random)
