"""Values over one parameter, several series in one panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nearcast.experiment.figures.data import attach
from nearcast.experiment.figures.style import COLOURS, panels, styled

DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))


def lines(
    series: Mapping[str, Sequence[tuple[float, float | None]]],
    *,
    x: str,
    y: str,
    title: str,
    intervals: Mapping[str, Mapping[float, float]] | None = None,
) -> Any:
    """Points (x, y) of each series, those without a value left out; what has the same colour differs by its dashes.

    ``intervals``: how far the true value may lie above and below each point, by series and x.
    """
    known = {name: [(at, value) for at, value in points if value is not None] for name, points in series.items()}
    with styled():
        figure, (axis,) = panels(1, 3.0)
        for number, (name, points) in enumerate(known.items()):
            halves = (intervals or {}).get(name, {})
            axis.errorbar(
                [point[0] for point in points],
                [point[1] for point in points],
                yerr=[halves.get(point[0], 0.0) for point in points] if halves else None,
                capsize=2,
                color=COLOURS[number % len(COLOURS)],
                linestyle=DASHES[number // len(COLOURS) % len(DASHES)],
                marker="o",
                markersize=3,
                label=name,
            )
        axis.set_xlabel(x)
        axis.set_ylabel(y)
        axis.set_title(title)
        axis.set_ylim(bottom=min([0.0, *(point[1] for points in known.values() for point in points)]))
        axis.legend(loc="best", ncols=2)
        if intervals is None:
            attach(figure, ("series", x, y), ((name, *point) for name, points in known.items() for point in points))
        else:
            attach(
                figure,
                ("series", x, y, "95 % confidence, ±"),
                (
                    (name, *point, intervals.get(name, {}).get(point[0]))
                    for name, points in known.items()
                    for point in points
                ),
            )
        return figure
