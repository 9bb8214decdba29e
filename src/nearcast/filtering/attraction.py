"""Circular channels of attraction points, for the schemes ATTRACT and MULTI (BYPASS.KOM 4.2.4, 6.2.4).

Zones may overlap, and whoever stands in several joins all of them; they may also leave gaps, which are the scheme's to
fill.  The circle is the one of ``model.Circle``: great-circle metres, border included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from nearcast.errors import InvalidScheme, UnknownName
from nearcast.model.geometry import Point, checked_metres, circle_bounds, distance_degrees


@dataclass(frozen=True, slots=True)
class Zone:
    """The surroundings of one attraction point."""

    name: str
    center: Point
    radius: float
    bounds: tuple[float, float, float, float] = field(init=False, repr=False, compare=False)
    """Its bounding box, as ``circle_bounds`` says it."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidScheme(f"a zone needs a name, which becomes that of its channel; not {self.name!r}")
        object.__setattr__(self, "radius", checked_metres(self.radius, f"the radius of zone {self.name!r}"))
        object.__setattr__(self, "bounds", circle_bounds(self.center, self.radius))

    def covers(self, point: Point) -> bool:
        center = self.center
        return distance_degrees(center.lat, center.lon, point.lat, point.lon) <= self.radius

    def extended(self, by: float) -> Zone:
        return replace(self, radius=self.radius + checked_metres(by, "the extension of a zone")) if by else self


@dataclass(frozen=True, slots=True)
class Zones:
    """All zones, in the order of their names: the set of channels that ATTRACT assigns."""

    zones: tuple[Zone, ...]
    _by_name: dict[str, Zone] = field(init=False, repr=False, compare=False)

    def __init__(self, zones: Iterable[Zone]) -> None:
        ordered = tuple(sorted(zones, key=lambda zone: zone.name))
        by_name = {zone.name: zone for zone in ordered}
        if len(by_name) < len(ordered):
            twice = next(a.name for a, b in pairwise(ordered) if a.name == b.name)
            raise InvalidScheme(f"two zones are named {twice!r}; each is a channel and needs a name of its own")
        object.__setattr__(self, "zones", ordered)
        object.__setattr__(self, "_by_name", by_name)

    def __len__(self) -> int:
        return len(self.zones)

    def __iter__(self) -> Iterator[Zone]:
        return iter(self.zones)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Zone:
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownName(f"no zone is named {name!r}; there are {', '.join(map(repr, self._by_name))}") from None

    def at(self, point: Point) -> tuple[str, ...]:
        """The names of all zones that the place lies in, sorted; none in a gap."""
        lat, lon = point.lat, point.lon
        found = []
        for zone in self.zones:
            south, west, north, east = zone.bounds
            # The box rules out most zones for the price of a few comparisons; the circle decides.
            inside = south <= lat <= north and (west <= lon <= east if west <= east else lon >= west or lon <= east)
            if inside and zone.covers(point):
                found.append(zone.name)
        return tuple(found)

    def extended(self, by: float) -> Zones:
        """Every zone larger by as many metres, so that areas of interest that reach out of a zone are served too.

        The thesis takes the maximum of the subscription radii present (6.2.4) or their average (6.4.2); only the maximum
        keeps recall at 1 when radii differ, so hand in that.
        """
        return Zones(zone.extended(by) for zone in self.zones)
