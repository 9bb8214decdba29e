"""Mechanisms that spread events, by name: those of the house, and those that other packages bring.

A package brings one by an entry point of the group ``nearcast.spreading``: its name is the mechanism's, and it leads to a class of
parameters (``spreading.Manner``).  All hosts that are to take part need the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nearcast.dissemination.adhoc.broadcast import Broadcast
from nearcast.dissemination.adhoc.flooding import Flooding
from nearcast.dissemination.adhoc.gossip import Gossip
from nearcast.dissemination.adhoc.hypergossip import HyperGossip
from nearcast.dissemination.adhoc.plan_b import PlanB
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.dissemination.adhoc.unicast import Unicast
from nearcast.errors import InvalidPlan
from nearcast.transition.registry import Entry, Registry
from nearcast.transition.specification import MechanismSpec

_OURS: Final[dict[str, Entry[Manner]]] = {
    "GOSSIP": Entry(Gossip),
    "FLOODING": Entry(Flooding),
    "HYPERG": Entry(HyperGossip),
    "PLAN-B": Entry(PlanB),
    "BROADCAST": Entry(Broadcast),
    "UNICAST": Entry(Unicast),
}

MECHANISMS: Final = Registry("ad hoc mechanism", "nearcast.spreading", Manner, _OURS, InvalidPlan)
manner_of: Final = MECHANISMS.parameters_of


def spreading(air: Air) -> Callable[[MechanismSpec], Spreading]:
    return lambda spec: manner_of(spec).mechanism(air)
