"""Values by place, in square cells of a local plane (BYPASS.KOM 6.1.4: 20 m for visits, 10 m for transitions)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.metrics.columns import Floats, Wholes, column, instants, numbers, ratio, reals, sums, wholes
from nearcast.metrics.pairs import Pairs
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Plane

VISIT_CELL: Final = 20.0
"""Metres: the side of a cell in maps of visits."""

TRANSITION_CELL: Final = 10.0
"""Metres: the side of a cell in maps of transition places."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of ``size`` metres; cell (0, 0) has its south-western corner in the origin.  Cells are half-open."""

    origin: Point
    size: float

    def __post_init__(self) -> None:
        if not 0.0 < self.size < np.inf:
            raise InvalidInput(f"a cell cannot be {self.size} m wide; give a positive size in metres")

    def cells(self, lat: Floats, lon: Floats) -> tuple[Wholes, Wholes]:
        """Column (to the east) and row (to the north) of places; all of them must be places."""
        x, y = Plane(self.origin).metres(lat, lon)
        return np.floor(x / self.size).astype(np.int64), np.floor(y / self.size).astype(np.int64)

    def middles(self, columns: Wholes, rows: Wholes) -> tuple[Floats, Floats]:
        """Latitudes and longitudes of the middles of cells."""
        half = np.float64(0.5)
        return Plane(self.origin).degrees((columns + half) * self.size, (rows + half) * self.size)


def cell_sums(grid: Grid, lat: Floats, lon: Floats, **values: Wholes | Floats) -> Any:
    """A row for each cell in which something is: ``column, row, lat, lon`` (its middle), ``count``, and the sum of each value.

    In the order of rows and columns.  What has no place (NaN) is left out; no value may be NaN.
    """
    import pyarrow as pa

    placed = np.flatnonzero(~np.isnan(lat) & ~np.isnan(lon))
    columns, rows = grid.cells(lat[placed], lon[placed])
    west, south = columns.min(initial=0), rows.min(initial=0)
    width = columns.max(initial=0) - west + 1
    cells, cell = np.unique((rows - south) * width + (columns - west), return_inverse=True)
    totals = {name: sums(cell, each[placed], len(cells)).astype(each.dtype) for name, each in values.items()}
    columns, rows = cells % width + west, cells // width + south
    middle_lat, middle_lon = grid.middles(columns, rows)
    places = {"column": columns, "row": rows, "lat": middle_lat, "lon": middle_lon}
    return pa.table({**places, "count": np.bincount(cell, minlength=len(cells)), **totals})


def visits(positions: Any, grid: Grid) -> Any:
    """How many samples of the table ``positions`` lie in each cell; as they are taken at equal intervals, the time spent there."""
    return cell_sums(grid, reals(positions, "lat"), reals(positions, "lon"))


def recall_by_place_of_event(per_event: Any, grid: Grid) -> Any:
    """Recall and precision of the events in each cell, as ratios of sums; from ``delivery.per_event``.

    Columns of ``cell_sums`` with ``due, notified, correct``, then ``recall`` and ``precision``.
    """
    lat, lon = reals(per_event, "lat"), reals(per_event, "lon")
    counts = {name: wholes(per_event, name) for name in ("due", "notified", "correct")}
    return _with_ratios(cell_sums(grid, lat, lon, **counts))


def recall_by_place_of_client(pairs: Pairs, positions: Any, grid: Grid) -> Any:
    """Recall and precision by where the client was when the event was published (``positions``, interpolated)."""
    counted = np.flatnonzero(pairs.counted)
    tracks = Tracks.of(positions, pairs.clients)
    lat, lon = tracks.at(pairs.client[counted], pairs.times[pairs.event[counted]])
    flags = {"due": pairs.due, "notified": pairs.notified, "correct": pairs.correct}
    return _with_ratios(
        cell_sums(grid, lat, lon, **{name: flag[counted].astype(np.int64) for name, flag in flags.items()})
    )


def _with_ratios(cells: Any) -> Any:
    import pyarrow as pa

    for name, base in (("recall", "due"), ("precision", "notified")):
        values = ratio(wholes(cells, "correct"), wholes(cells, base))
        cells = cells.append_column(name, pa.array(values, pa.float64(), from_pandas=True))
    return cells


@dataclass(frozen=True, eq=False)
class Tracks:
    """Sampled positions of clients, in the order of clients and of time."""

    key: Wholes
    """``client * span + time - start``: grows from sample to sample."""

    start: int
    span: int
    client: Wholes
    lat: Floats
    lon: Floats

    @classmethod
    def of(cls, positions: Any, clients: tuple[str, ...]) -> Tracks:
        import pyarrow as pa

        number = numbers(column(positions, "client"), pa.array(clients, pa.string()))
        times = instants(positions, "time")
        kept = np.flatnonzero(number >= 0)
        start, end = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        span = end - start + 1
        key = number[kept] * span + (times[kept] - start)
        order = kept[np.argsort(key, kind="stable")]
        lat, lon = reals(positions, "lat")[order], reals(positions, "lon")[order]
        return cls(np.sort(key), start, span, number[order], lat, lon)

    def at(self, client: Wholes, times: Wholes) -> tuple[Floats, Floats]:
        """Where clients were: straight between two samples, at the nearest before the first and after the last.

        NaN for who was never seen.  The tracks must not cross the antimeridian.
        """
        if not len(self.key):
            return np.full(len(client), np.nan), np.full(len(client), np.nan)
        key = client * self.span + np.clip(times - self.start, 0, self.span - 1)
        after = np.searchsorted(self.key, key, side="right")
        last = len(self.key) - 1
        before, after = np.clip(after - 1, 0, last), np.clip(after, 0, last)
        known_before, known_after = self.client[before] == client, self.client[after] == client
        before, after = np.where(known_before, before, after), np.where(known_after, after, before)
        gap = self.key[after] - self.key[before]
        share = ratio(key - self.key[before], gap)
        share[gap <= 0] = 0.0
        seen = known_before | known_after
        lat = self.lat[before] + (self.lat[after] - self.lat[before]) * share
        lon = self.lon[before] + (self.lon[after] - self.lon[before]) * share
        return np.where(seen, lat, np.nan), np.where(seen, lon, np.nan)
