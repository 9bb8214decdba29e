"""Box plots: quartiles, whiskers at the 2.5th and 97.5th percentile, and the mean over seeds (BYPASS.KOM 6.1.4)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from nearcast.experiment.figures.data import Cell, attach
from nearcast.experiment.figures.style import COLOURS, INK, panels, styled
from nearcast.experiment.measures import Delivery
from nearcast.metrics.distribution import BoxPlot, grand_mean


def recall_and_precision(groups: Mapping[str, Sequence[Delivery]], *, label: str = "") -> Any:
    """Two panels over the same groups; for each group the deliveries of all seeds, of which the first is drawn as a box."""
    with styled():
        figure, axes = panels(2, 2.1)
        for axis, what, colour in ((axes[0], "recall", COLOURS[0]), (axes[1], "precision", COLOURS[2])):
            for place, deliveries in enumerate(groups.values()):
                box: BoxPlot | None = getattr(deliveries[0], f"client_{what}")
                if box is not None:
                    _box(axis, place, box, colour)
                means = [value for each in deliveries if (value := getattr(each, what)) is not None]
                if means:
                    _mean(axis, place, means)
            axis.set_title(f"{what.capitalize()} of clients")
            axis.set_ylim(_floor(groups.values(), what), 1.03)
            axis.grid(visible=False, axis="x")
        axes[1].set_xticks(range(len(groups)), list(groups))
        axes[1].set_xlim(-0.6, len(groups) - 0.4)
        if label:
            axes[1].set_xlabel(label)
        attach(figure, (*_COLUMNS[:1], label or "group", *_COLUMNS[1:]), _box_rows(groups))
        return figure


_COLUMNS: Final = ("panel", "mean over seeds", "deviation", "2.5 %", "25 %", "median", "75 %", "97.5 %")


def _box_rows(groups: Mapping[str, Sequence[Delivery]]) -> Iterator[tuple[Cell, ...]]:
    for what in ("recall", "precision"):
        for name, deliveries in groups.items():
            box: BoxPlot | None = getattr(deliveries[0], f"client_{what}")
            means = [value for each in deliveries if (value := getattr(each, what)) is not None]
            over_seeds = (None, None) if not means else ((found := grand_mean(means)).mean, found.deviation)
            spread = (
                (None,) * 5 if box is None else (box.low, box.lower_quartile, box.median, box.upper_quartile, box.high)
            )
            yield (what, name, *over_seeds, *spread)


def bars(groups: Mapping[str, Mapping[str, float | None]], *, label: str, title: str) -> Any:
    """Values of several series side by side: groups by name, values by series; what is not known is left out."""
    with styled():
        figure, (axis,) = panels(1, 2.4)
        names = list(dict.fromkeys(name for values in groups.values() for name in values))
        width = 0.8 / max(1, len(names))
        for number, name in enumerate(names):
            places = np.arange(len(groups)) + (number - (len(names) - 1) / 2) * width
            values = [np.nan if (value := each.get(name)) is None else value for each in groups.values()]
            axis.bar(places, values, width * 0.92, color=COLOURS[number % len(COLOURS)], label=name)
        axis.set_xticks(range(len(groups)), list(groups))
        axis.set_ylabel(label)
        axis.set_title(title)
        axis.grid(visible=False, axis="x")
        axis.legend(loc="upper left", ncols=len(names))
        axis.margins(y=0.2)
        attach(figure, ("group", *names), ((group, *map(values.get, names)) for group, values in groups.items()))
        return figure


def _floor(groups: Iterable[Sequence[Delivery]], what: str) -> float:
    """From 0 on, unless all that there is to see happens far above it."""
    lows = [box.low for group in groups if (box := getattr(group[0], f"client_{what}")) is not None]
    least = min(lows, default=0.0)
    return -0.03 if least < 0.5 else math.floor(least * 10.0 - 0.5) / 10.0


def _box(axis: Any, place: int, box: BoxPlot, colour: str) -> None:
    drawn = {
        "whislo": box.low,
        "q1": box.lower_quartile,
        "med": box.median,
        "q3": box.upper_quartile,
        "whishi": box.high,
        "mean": box.mean,
    }
    axis.bxp(
        [drawn],
        positions=[place],
        widths=0.5,
        showfliers=False,
        patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.30, "edgecolor": colour, "linewidth": 1.0},
        medianprops={"color": colour, "linewidth": 1.6},
        whiskerprops={"color": colour, "linewidth": 1.0},
        capprops={"color": colour, "linewidth": 1.0},
        manage_ticks=False,
    )


def _mean(axis: Any, place: int, means: Sequence[float]) -> None:
    over_seeds = grand_mean(means)
    axis.errorbar(
        [place],
        [over_seeds.mean],
        yerr=None if over_seeds.deviation is None else [over_seeds.deviation],
        fmt="D",
        markersize=4,
        color=INK,
        markerfacecolor="white",
        capsize=3,
        linewidth=1.0,
        zorder=5,
    )
    axis.annotate(
        f"{over_seeds.mean:.2f}",
        (place + 0.3, over_seeds.mean),
        fontsize=7.5,
        color=INK,
        va="center",
    )
