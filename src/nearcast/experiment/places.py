"""Recall and transitions by place (BYPASS.KOM 6.1.4: cells of 20 m and of 10 m)."""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.experiment.measures import Cells
from nearcast.experiment.schedule import PROXY
from nearcast.metrics.columns import column, is_name, names_in, numbers, reals, wholes
from nearcast.metrics.maps import TRANSITION_CELL, VISIT_CELL, Grid, cell_sums, recall_by_place_of_client
from nearcast.metrics.pairs import Pairs
from nearcast.metrics.traffic import BROKER
from nearcast.model.geometry import Point


def recall_map(pairs: Pairs, positions: Any) -> Cells:
    """What was due to clients and what reached them, by where they were."""
    cells = recall_by_place_of_client(pairs, positions, Grid(_corner(positions), VISIT_CELL))
    return _cells(cells, VISIT_CELL, ("due", "correct", "notified"))


def transition_map(transitions: Any, positions: Any) -> Cells:
    """Where clients exchanged their scheme: how often, by the scheme that they changed to."""
    # Without a source, a client only started.
    exchanged = column(transitions, "source").is_valid().to_numpy(zero_copy_only=False)
    kept = transitions.filter(
        exchanged & is_name(column(transitions, "proxy"), PROXY) & ~is_name(column(transitions, "host"), BROKER)
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
