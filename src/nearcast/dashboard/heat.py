"""How much of something there is where: clients now; recall and precision as somebody measured them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from nearcast.broker.core import Broker
from nearcast.dashboard.contract import Heat, HeatCell
from nearcast.metrics.maps import Grid, cell_sums
from nearcast.model.geometry import EARTH_RADIUS, Point
from nearcast.model.time import MICROSECONDS, Instant, to_text
from nearcast.pipeline.settings import PipelineSettings
from nearcast.runtime.simulation.plane import Plane

Floats = npt.NDArray[np.float64]
Kind = Literal["density", "recall", "precision"]
MOST_CELLS: Final = 2_000
MOST_READ: Final = 100_000
SIZES: Final = (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0, 10_000.0, 50_000.0, 200_000.0)
"""Metres: the smallest of these with which about forty cells lie side by side."""

TRIES: Final = 3
"""What is observed anew takes the place of what was observed before, and for a moment there is neither."""

OBSERVED: Final = "observed"
PLACES: Final = "places"
"""What ``nearcast pipeline observe`` writes of recall and precision: a row for each square cell in which something was published."""


def density(lat: Floats, lon: Floats, now: Instant) -> Heat:
    """In a worker thread: clients by square cells; not a number: of whom it is not known."""
    known = ~np.isnan(lat)
    lat, lon = lat[known], lon[known]
    at = to_text(now)
    if not len(lat):
        return Heat("density", SIZES[0], [], at, "no client has said where it is")
    middle = Point(float(np.median(lat)), float(np.median(lon)))
    x, y = Plane(middle).metres(lat, lon)
    # Whoever is far away from all others must not make cells of those large.
    extent = max(float(np.ptp(np.quantile(side, (0.02, 0.98)))) for side in (x, y))
    size = next((each for each in SIZES if extent / each <= 40), SIZES[-1])
    table = cell_sums(Grid(middle, size), lat, lon)
    rows = sorted(table.to_pylist(), key=lambda row: -row["count"])[:MOST_CELLS]
    cells = [_cell(row["lat"], row["lon"], size, float(row["count"]), row["count"]) for row in rows]
    return Heat("density", size, cells, at, f"{len(lat)} clients, as they are now")


def measured(broker: Broker, kind: Kind) -> Heat:
    """In a worker thread: what ``nearcast pipeline observe`` has found in the lake of this broker."""
    import pyarrow as pa

    lake = broker.settings.lake
    folder = PipelineSettings(lake=lake).warehouse_folder / OBSERVED / PLACES
    at = to_text(broker.clock.now())
    source = ""
    for _ in range(TRIES):
        files = sorted(folder.glob("*.parquet"))
        if not files:
            source = f"not measured yet: nearcast pipeline observe --lake {lake.name} does it"
            continue
        try:
            return _read(files, kind, at)
        except (OSError, pa.ArrowInvalid):
            source = "is just being measured again"
    return Heat(kind, 0.0, [], at, source)


def _read(files: Sequence[Path], kind: Kind, at: str) -> Heat:
    import pyarrow.dataset as ds

    written = to_text(int(max(file.stat().st_mtime for file in files)) * MICROSECONDS)
    rows = ds.dataset([str(file) for file in files], format="parquet").head(MOST_READ).to_pylist()
    source = f"nearcast pipeline observe, {written}"
    if not any(row["notified"] for row in rows):
        return Heat(kind, 0.0, [], at, f"not measured: {source} found no notifications to compare with")
    base = "due" if kind == "recall" else "notified"
    told = sorted((row for row in rows if row[base]), key=lambda row: -row[base])[:MOST_CELLS]
    cells = [_cell(row["lat"], row["lon"], row["cell"], row["correct"] / row[base], row[base]) for row in told]
    return Heat(kind, float(rows[0]["cell"]), cells, at, source)


def _cell(lat: float, lon: float, size: float, value: float, count: int) -> HeatCell:
    north = math.degrees(size / 2 / EARTH_RADIUS)
    east = north / max(0.01, math.cos(math.radians(lat)))
    return HeatCell(lat - north, lon - east, lat + north, lon + east, value, count)
