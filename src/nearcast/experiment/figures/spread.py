"""How an exchange spreads: where clients were when they followed, by colour how late, and how many how late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nearcast.experiment.figures.data import attach, cell_rows
from nearcast.experiment.figures.style import COLOURS, WIDTH, styled
from nearcast.experiment.measures import Mark


def spread_maps(marks: Mapping[str, Mark]) -> Any:
    """A row for each transition: the map on the left, the histogram on the right; each has its own scale of time."""
    from matplotlib.figure import Figure

    with styled() as mpl:
        figure = Figure(figsize=(WIDTH, 2.7 * max(1, len(marks)) + 0.3))
        axes = figure.subplots(max(1, len(marks)), 2, squeeze=False, width_ratios=(1.0, 1.1))
        for (place, counts), (name, mark) in zip(axes, marks.items(), strict=True):
            followed = mark.followed
            if followed is None:
                continue
            after = np.array(followed.after)
            shown = place.scatter(
                followed.x, followed.y, 9.0, c=after, cmap=mpl.colormaps["viridis"], vmin=0.0, linewidths=0
            )
            figure.colorbar(shown, ax=place, shrink=0.85, pad=0.02, label="s")
            place.set_aspect("equal")
            place.set_title(name)
            place.set_xlabel("metres to the east")
            place.set_ylabel("metres to the north")
            counts.hist(after, bins=40, color=COLOURS[0], linewidth=0)
            counts.set_title(f"{len(after)} of {followed.clients} clients")
            counts.set_xlabel("seconds after the transition")
            counts.set_ylabel("clients")
            counts.set_xlim(left=0.0)
        attach(
            figure,
            ("transition", "metres to the east", "metres to the north", "seconds after it"),
            (
                row
                for name, mark in marks.items()
                if (each := mark.followed) is not None
                for row in cell_rows(name, each.x, each.y, {"after": each.after})
            ),
        )
        return figure
