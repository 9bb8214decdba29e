"""Maps of recall by place and of transition places, and who ran which scheme when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nearcast.experiment.figures.data import TIME, Cell, attach, cell_rows, over_windows
from nearcast.experiment.figures.style import COLOURS, QUIET, WIDTH, minutes, panels, styled, told_apart
from nearcast.experiment.measures import Cells, Measures, Timeline

_PLACE: Final = ("metres to the east", "metres to the north")


def recall_maps(runs: Mapping[str, Cells]) -> Any:
    """Side by side on one scale; cells in which nothing was due stay white."""
    with styled() as mpl:
        figure, axes = _maps(len(runs))
        colours = mpl.colormaps["cividis"]
        for axis, (name, cells) in zip(axes, runs.items(), strict=True):
            image = _image(cells)
            drawn = axis.imshow(
                image[0], origin="lower", extent=image[1], vmin=0.0, vmax=1.0, cmap=colours, interpolation="nearest"
            )
            axis.set_title(name)
        figure.colorbar(drawn, ax=list(axes), shrink=0.8, pad=0.02, label="recall of clients there")
        attach(
            figure,
            ("map", *_PLACE, "due", "correct"),
            (
                row
                for name, cells in runs.items()
                for row in cell_rows(name, cells.x, cells.y, {key: cells.values[key] for key in ("due", "correct")})
            ),
        )
        return figure


def transition_maps(runs: Mapping[str, Cells]) -> Any:
    """A dot for each cell: its size says how often, its colour to which scheme clients changed there."""
    with styled():
        figure, axes = _maps(len(runs))
        targets = sorted({target for cells in runs.values() for target in cells.values})
        name_of = dict(zip(targets, told_apart(targets), strict=True))
        most = max((max(counts, default=0) for cells in runs.values() for counts in cells.values.values()), default=0)
        for axis, (name, cells) in zip(axes, runs.items(), strict=True):
            for number, target in enumerate(targets):
                counts = np.array(cells.values.get(target, []), float)
                used = np.flatnonzero(counts)
                # The area of a dot is proportional to the count; a single transition must still be seen.
                size = 3.0 + 60.0 * counts[used] / max(1.0, most)
                x, y = np.array(cells.x)[used], np.array(cells.y)[used]
                axis.scatter(
                    x,
                    y,
                    size,
                    color=COLOURS[number % len(COLOURS)],
                    alpha=0.6,
                    linewidths=0,
                    label=f"to {name_of[target]}",
                )
            axis.set_title(name)
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
        attach(
            figure,
            ("map", *_PLACE, *(f"to {name_of[target]}" for target in targets)),
            (
                row
                for name, cells in runs.items()
                for row in cell_rows(
                    name, cells.x, cells.y, {key: cells.values.get(key, [0] * len(cells.x)) for key in targets}
                )
            ),
        )
        return figure


def mechanisms(measures: Measures) -> Any:
    """Above: how many clients ran which scheme; below: who of the first forty did when."""
    with styled():
        figure, axes = panels(2, 2.4)
        series = measures.series
        scale = 60.0 if minutes(measures.seconds) else 1.0
        names = list(series.mechanisms)
        colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
        ends = (np.array(series.starts) + series.length) / scale
        if names:
            axes[0].stackplot(
                [0.0, *ends],
                *([counts[0], *counts] for counts in series.mechanisms.values()),
                labels=names,
                colors=[colours[name] for name in names],
                step="pre",
                linewidth=0,
            )
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=min(5, len(names)))
        axes[0].set_ylabel("clients")
        _timelines(axes[1], measures.timelines, measures.seconds, scale, colours)
        axes[1].set_xlabel("time in minutes" if scale > 1 else "time in seconds")
        axes[1].set_xlim(0, measures.seconds / scale)
        attach(figure, ("panel", "series", TIME, "value"), _mechanism_rows(measures))
        return figure


def _mechanism_rows(measures: Measures) -> Iterator[tuple[Cell, ...]]:
    for name, counts in measures.series.mechanisms.items():
        yield from over_windows("clients", name, measures, counts)
    for line in measures.timelines:
        for since, mechanism in zip(line.since, line.mechanism, strict=True):
            yield "from then on", line.client, since, mechanism


def _timelines(axis: Any, timelines: Sequence[Timeline], end: float, scale: float, colours: Mapping[str, str]) -> None:
    for row, line in enumerate(timelines):
        ends = [*line.since[1:], end]
        for since, until, mechanism in zip(line.since, ends, line.mechanism, strict=True):
            if mechanism is not None:
                colour = colours.get(mechanism, QUIET)
                axis.barh(row, (until - since) / scale, left=since / scale, height=1.0, color=colour, linewidth=0)
    axis.set_ylabel("clients, one line each")
    axis.set_yticks([])
    axis.set_ylim(max(1, len(timelines)) - 0.5, -0.5)
    axis.grid(visible=False)


def _maps(count: int) -> tuple[Any, Sequence[Any]]:
    from matplotlib.figure import Figure

    columns = min(2, count)
    rows = -(-count // columns)
    figure = Figure(figsize=(WIDTH if columns > 1 else WIDTH * 0.62, rows * WIDTH / 2 * 0.9 + 0.3))
    axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_visible(False)
    for axis in axes[:count]:
        axis.set_aspect("equal")
        axis.set_xlabel("metres to the east")
    for axis in axes[::columns]:
        axis.set_ylabel("metres to the north")
    return figure, axes[:count]


def _image(cells: Cells) -> tuple[Any, tuple[float, float, float, float]]:
    """Recall by row and column, NaN where nothing was due, and the extent in metres."""
    columns = np.floor(np.array(cells.x) / cells.size).astype(int)
    rows = np.floor(np.array(cells.y) / cells.size).astype(int)
    left, bottom = min(columns, default=0), min(rows, default=0)
    width, height = max(columns, default=0) - left + 1, max(rows, default=0) - bottom + 1
    image = np.full((height, width), np.nan)
    due = np.array(cells.values["due"], float)
    recall = np.divide(np.array(cells.values["correct"], float), due, out=np.full(len(due), np.nan), where=due > 0)
    image[rows - bottom, columns - left] = recall
    extent = (left * cells.size, (left + width) * cells.size, bottom * cells.size, (bottom + height) * cells.size)
    return image, extent
