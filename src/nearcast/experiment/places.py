"""Recall and transitions by place (BYPASS.KOM 6.1.4: cells of 20 m and of 10 m)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.experiment.measures import Cells
from nearcast.experiment.schedule import PROXY
from nearcast.metrics.columns import column, is_name, names_in, numbers, reals, wholes
from nearcast.metrics.maps import TRANSITION_CELL, VISIT_CELL, Grid, cell_sums, recall_by_place_of_client
from nearcast.metrics.pairs import Pairs
from nearcast.metrics.spread import Executions
from nearcast.metrics.traffic import BROKER
from nearcast.model.geometry import Point
from nearcast.runtime.simulation.plane import Plane


def recall_map(pairs: Pairs, positions: Any) -> Cells:
    """What was due to clients and what reached them, by where they were."""
    cells = recall_by_place_of_client(pairs, positions, Grid(_corner(positions), VISIT_CELL))
    return _cells(cells, VISIT_CELL, ("due", "correct", "notified"))


def places_of(executed: Executions, positions: Any) -> tuple[list[float], list[float]]:
    """Metres to the east and to the north of the south-western corner, as in the maps."""
    x, y = Plane(_corner(positions)).metres(executed.lat, executed.lon)
    return x.tolist(), y.tolist()


def transition_map(transitions: Any, positions: Any, proxy: str = PROXY) -> Cells:
    """Where clients exchanged their mechanism: how often, by the one that they changed to."""
    # Without a source, a client only started.
    exchanged = column(transitions, "source").is_valid().to_numpy(zero_copy_only=False)
    kept = transitions.filter(
        exchanged & is_name(column(transitions, "proxy"), proxy) & ~is_name(column(transitions, "host"), BROKER)
    )
    target = column(kept, "target")
    names = names_in(target)
    number = numbers(target, names)
    flags = {name: (number == place).astype(np.int64) for place, name in enumerate(names.to_pylist())}
    cells = cell_sums(Grid(_corner(positions), TRANSITION_CELL), reals(kept, "lat"), reals(kept, "lon"), **flags)
    return _cells(cells, TRANSITION_CELL, tuple(flags))


def _corner(positions: Any) -> Point:
    """The south-western corner of where people have been."""
    return Point(float(reals(positions, "lat").min()), float(reals(positions, "lon").min()))


def _cells(table: Any, size: float, names: tuple[str, ...]) -> Cells:
    half = np.float64(0.5)
    return Cells(
        size=size,
        x=((wholes(table, "column") + half) * size).tolist(),
        y=((wholes(table, "row") + half) * size).tolist(),
        values={name: wholes(table, name).tolist() for name in names},
    )
