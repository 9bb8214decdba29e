"""Mechanisms that keep a crowd's things, by name: those of the house, and those that other packages bring.

A package brings one by an entry point of the group ``nearcast.crowdstore``: its name is the mechanism's, and it leads to a class of
parameters (``storage.Manner``).
"""

from __future__ import annotations

from typing import Final

from nearcast.crowdstore.data_centric.manner import DataCentric
from nearcast.crowdstore.publish_local.mechanism import PublishLocal
from nearcast.crowdstore.storage import Manner
from nearcast.errors import InvalidPlan
from nearcast.model.geometry import Point
from nearcast.transition.registry import Entry, Registry
from nearcast.transition.specification import MechanismSpec, Scalar

_OURS: Final[dict[str, Entry[Manner]]] = {"PL/SG": Entry(PublishLocal), "DCS": Entry(DataCentric)}

MECHANISMS: Final = Registry("crowd store", "nearcast.crowdstore", Manner, _OURS, InvalidPlan)
manner_of: Final = MECHANISMS.parameters_of


def in_cells(south_west: Point, north_east: Point, **parameters: Scalar) -> MechanismSpec:
    """DCS over the area between these corners; all hosts of a crowd must be told the same."""
    spec = MechanismSpec.of(
        "DCS", south=south_west.lat, west=south_west.lon, north=north_east.lat, east=north_east.lon, **parameters
    )
    manner_of(spec)
    return spec
