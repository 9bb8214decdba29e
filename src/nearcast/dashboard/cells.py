"""What the active filter schemes cut the ground into: cells and channels, with how many clients belong to each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from nearcast.broker.core import Broker
from nearcast.dashboard.contract import Cells, GeoJson
from nearcast.dashboard.shapes import circle_shape
from nearcast.filtering.parameters import Attract, Grid, Multi
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Territory
from nearcast.model.geometry import Point
from nearcast.transition.specification import MechanismSpec

MOST_EMPTY: Final = 400
"""Cells of a grid up to which those are drawn, too, that nobody is in."""

MOST: Final = 5_000
"""Cells that are drawn of one scheme; those with the most clients."""

EVERY: Final = 2
"""Ticks between two looks."""


class CellWatch:
    """Tells of cells when they have changed."""

    def __init__(self, broker: Broker) -> None:
        self._broker: Final = broker
        self._told: dict[str, Cells] = {}
        self._untold: dict[str, Cells] = {}
        """What has changed since everybody was told last."""

        self._ticks = 0
        self._looked = -1

    def standing(self) -> Sequence[msgspec.Struct]:
        """All that there are, for whoever knows none."""
        self._look()
        return list(self._told.values())

    def changed(self) -> Sequence[msgspec.Struct]:
        """Those that differ from what everybody was told; of a scheme that nobody is in any more, none."""
        self._ticks += 1
        if self._ticks % EVERY:
            return []
        self._look()
        untold, self._untold = self._untold, {}
        return list(untold.values())

    def _look(self) -> None:
        """Once between two ticks, however many begin to look."""
        if self._looked == self._ticks:
            return
        self._looked = self._ticks
        live = self._broker.scheming.live
        found = {
            str(spec): Cells(str(spec), collection(features(spec, live.territory, counts)))
            for spec, counts in live.channels().items()
            if has_cells(spec)
        }
        self._untold |= {scheme: Cells(scheme, collection(())) for scheme in self._told.keys() - found.keys()}
        self._untold |= {scheme: cells for scheme, cells in found.items() if self._told.get(scheme) != cells}
        self._told = found


def has_cells(spec: MechanismSpec) -> bool:
    return isinstance(scheme_of(spec), (Grid, Attract, Multi))


def collection(features: Iterable[GeoJson]) -> GeoJson:
    return {"type": "FeatureCollection", "features": list(features)}


def features(
    spec: MechanismSpec, territory: Territory, counts: Counter[str], *, empty: bool = True
) -> Iterator[GeoJson]:
    """The cells or channels of a scheme as GeoJSON; not ``empty``: only those that are counted."""
    scheme = scheme_of(spec)
    if isinstance(scheme, Grid):
        cells = scheme.tessellation(territory)
        names = [name for name, _ in counts.most_common(MOST)]
        if empty and scheme.cells == "square" and cells.cells <= MOST_EMPTY:
            box = territory.box
            middle, radius = box.center, 21_000_000.0
            names = [*dict.fromkeys([*names, *cells.around(middle, radius, "box")])]
        for name in names:
            if name in cells:
                yield feature(name, counts[name], cell_shape(scheme, cells.bounds(name), name))
    elif isinstance(scheme, (Attract, Multi)):
        for zone in territory.zones:
            if empty or counts[zone.name]:
                yield feature(zone.name, counts[zone.name], circle_shape(zone.center, zone.radius))


def cell_shape(scheme: Grid, bounds: tuple[float, float, float, float], name: str) -> GeoJson:
    if scheme.cells == "hexagon":
        import h3

        corners = [[lon, lat] for lat, lon in h3.cell_to_boundary(name)]
    else:
        south, west, north, east = bounds
        corners = [[west, south], [east, south], [east, north], [west, north]]
    return {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}


def feature(label: str, count: int, geometry: GeoJson) -> GeoJson:
    return {"type": "Feature", "properties": {"label": label, "count": count}, "geometry": geometry}


def cell_at(spec: MechanismSpec, territory: Territory, position: Point | None) -> str | None:
    """The cell that a place is in, where the scheme has cells."""
    scheme = scheme_of(spec)
    return (
        scheme.tessellation(territory).cell_of(position) if isinstance(scheme, Grid) and position is not None else None
    )
