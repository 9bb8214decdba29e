"""Filter schemes by name: those of the house, and those that other packages bring.

A package brings a scheme by an entry point of the group ``nearcast.filter_schemes``: its name is the scheme's, and it leads to a class
of parameters (``filtering.scheme.Scheme``).  Whoever runs the scheme - broker, clients, simulator - needs the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nearcast.errors import InvalidScheme
from nearcast.filtering.broker_half import BrokerHalf, Cloud
from nearcast.filtering.client_half import ClientHalf, Surroundings
from nearcast.filtering.parameters import Attract, Egrid, Grid, Multi, Radial, Ste
from nearcast.filtering.scheme import Scheme, Territory
from nearcast.transition.registry import Entry, Registry
from nearcast.transition.specification import MechanismSpec

__all__ = ["SCHEMES", "Entry", "broker_halves", "client_halves", "look_again", "scheme_of"]

_OURS: Final[dict[str, Entry[Scheme]]] = {
    "RADIAL": Entry(Radial),
    "LPS": Entry(Radial, {}, "RADIAL, under the name of LCN 2016"),
    "STE": Entry(Ste),
    "GRID": Entry(Grid),
    "EGRID": Entry(Egrid),
    "RGRID": Entry(
        Egrid,
        {"cover": "circle", "remember_location": False},
        "EGRID as LCN 2016 has it: circles, and a broker that forgets positions",
    ),
    "ATTRACT": Entry(Attract),
    "MULTI": Entry(Multi),
}

SCHEMES: Final = Registry("filter scheme", "nearcast.filter_schemes", Scheme, _OURS, InvalidScheme)

look_again: Final = SCHEMES.look_again
scheme_of: Final = SCHEMES.parameters_of


def broker_halves(territory: Territory, cloud: Cloud) -> Callable[[MechanismSpec], BrokerHalf]:
    return lambda spec: scheme_of(spec).broker_half(territory, cloud)


def client_halves(territory: Territory, surroundings: Surroundings) -> Callable[[MechanismSpec], ClientHalf]:
    return lambda spec: scheme_of(spec).client_half(territory, surroundings)
