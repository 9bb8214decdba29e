"""A crowd in a grid of cells."""

from __future__ import annotations

from tests.crowdstore.crowd import HERE, Crowd

from nearcast.crowdstore.data_centric.mechanism import DataCentricStorage
from nearcast.runtime.simulation.plane import Plane
from nearcast.transition.specification import MechanismSpec, Scalar

JOINED = 25.0
"""Seconds after which everybody who stands still is a member of its cell."""


def dcs(columns: int, rows: int, **parameters: Scalar) -> MechanismSpec:
    """Cells of 40 m."""
    corner = Plane(HERE).to_point(40.0 * columns, 40.0 * rows)
    return MechanismSpec.of(
        "DCS", south=HERE.lat, west=HERE.lon, north=corner.lat, east=corner.lon, side=40.0, **parameters
    )


def storage(crowd: Crowd, host: str) -> DataCentricStorage:
    found = crowd.stores[host]._proxy.active
    assert isinstance(found, DataCentricStorage)
    return found
