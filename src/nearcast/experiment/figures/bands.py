"""Percentile bands over time with transition marks, as in most figures of both documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nearcast.experiment.figures.data import TIME, attach, band_rows, over_windows
from nearcast.experiment.figures.style import COLOURS, INK, QUIET, minutes, panels, styled, told_apart
from nearcast.experiment.measures import Bands, Mark, Measures


def over_time(measures: Measures, *, traffic: Sequence[str] = ()) -> Any:
    """Recall and precision of the clients, and the named kinds of traffic, one below the other."""
    with styled():
        figure, axes = panels(2 + bool(traffic), 1.7)
        series = measures.series
        scale = _time_axis(axes[-1], measures.seconds)
        middles = (np.array(series.starts) + series.length / 2) / scale
        for axis, bands, title, colour in (
            (axes[0], series.recall, "Recall of clients", COLOURS[0]),
            (axes[1], series.precision, "Precision of clients", COLOURS[2]),
        ):
            _bands(axis, middles, bands, colour)
            axis.set_title(title)
            axis.set_ylim(-0.03, 1.05)
        _legend(axes[0], 1.13)
        if traffic:
            _traffic(axes[2], middles, {name: series.rates[name] for name in traffic if name in series.rates})
        for number, axis in enumerate(axes):
            _marks(axis, measures.marks, scale, named=number == 0)
        axes[0].set_xlim(0, measures.seconds / scale)
        rows = [*band_rows("recall", measures, series.recall), *band_rows("precision", measures, series.precision)]
        for name in traffic:
            rows += over_windows("traffic in kbit/s per client", name, measures, series.rates.get(name, ()))
        attach(figure, ("panel", "series", TIME, "value"), rows)
        return figure


def compared(runs: Mapping[str, Measures], what: str, title: str) -> Any:
    """Means over time of several runs in one panel, the last on top; ``what`` is ``recall`` or ``precision``."""
    with styled():
        figure, (axis,) = panels(1, 2.6)
        longest = max(measures.seconds for measures in runs.values())
        scale = _time_axis(axis, longest)
        for number, (name, measures) in enumerate(runs.items()):
            bands: Bands = getattr(measures.series, what)
            middles = (np.array(measures.series.starts) + measures.series.length / 2) / scale
            last = number == len(runs) - 1
            axis.plot(
                middles,
                _values(bands.mean),
                color=INK if last else COLOURS[number % len(COLOURS)],
                label=name,
                linewidth=1.2 if last else 2.6,
                alpha=1.0 if last else 0.55,
            )
        marks = next((measures.marks for measures in runs.values() if measures.marks), [])
        _marks(axis, marks, scale, named=True)
        axis.set_title(title, pad=18 if marks else None)
        axis.set_ylabel(f"mean {what}")
        axis.set_ylim(-0.03, 1.05)
        axis.set_xlim(0, longest / scale)
        axis.legend(loc="lower left", ncols=3)
        attach(
            figure,
            ("panel", "series", TIME, "value"),
            (
                row
                for name, measures in runs.items()
                for row in over_windows(f"mean {what}", name, measures, getattr(measures.series, what).mean)
            ),
        )
        return figure


def close_up(runs: Mapping[str, Measures], *, before: float = 0.5, after: float = 1.5) -> Any:
    """Recall by time of publication around each transition, a panel for each of them."""
    with styled():
        marks = next(iter(runs.values())).marks
        figure, axes = panels(-(-len(marks) // 2), 2.0, columns=2, share_x=False)
        for axis, mark in zip(axes, marks, strict=False):
            for number, (name, measures) in enumerate(runs.items()):
                _aligned(axis, measures.mark(mark.label), name, COLOURS[number % len(COLOURS)])
            axis.axvline(0.0, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
            axis.set_title(f"{mark.label}: {' → '.join(told_apart([mark.source or 'none', mark.target or 'none']))}")
            axis.set_xlim(-before, after)
            axis.set_ylim(-0.03, 1.08)
        for axis in axes[len(marks) :]:
            axis.set_visible(False)
        for axis in axes[max(0, len(marks) - 2) : len(marks)]:
            axis.set_xlabel("published, seconds after the transition")
        for axis in axes[::2]:
            axis.set_ylabel("recall")
        axes[0].legend(loc="lower right")
        attach(
            figure,
            ("transition", "run", "seconds after it", "recall"),
            (
                (mark.label, name, at, value)
                for mark in marks
                for name, measures in runs.items()
                for at, value in zip(*_around(measures.mark(mark.label)), strict=True)
                if -before <= at <= after
            ),
        )
        return figure


def _aligned(axis: Any, mark: Mark, name: str, colour: str) -> None:
    times, recall = _around(mark)
    axis.step(times, recall, where="post", color=colour, label=name, linewidth=1.2, alpha=0.9)


def _around(mark: Mark) -> tuple[Any, Any]:
    """The beginnings of its bins, in seconds after it, and recall in each; NaN where nothing was due."""
    due, correct = np.array(mark.due, float), np.array(mark.correct, float)
    recall = np.divide(correct, due, out=np.full(len(due), np.nan), where=due > 0)
    return np.arange(len(due)) * mark.bin - mark.before, recall


def _bands(axis: Any, middles: Any, bands: Bands, colour: str) -> None:
    axis.fill_between(
        middles, _values(bands.p5), _values(bands.p95), color=colour, alpha=0.15, linewidth=0, label="5 to 95 %"
    )
    axis.fill_between(
        middles, _values(bands.p25), _values(bands.p75), color=colour, alpha=0.30, linewidth=0, label="25 to 75 %"
    )
    axis.plot(middles, _values(bands.p50), color=colour, label="median")
    axis.plot(middles, _values(bands.mean), color=INK, linewidth=0.9, linestyle=(0, (1, 1.5)), label="mean")


def _traffic(axis: Any, middles: Any, rates: Mapping[str, list[float]]) -> None:
    for number, (name, values) in enumerate(rates.items()):
        axis.plot(middles, values, color=COLOURS[number % len(COLOURS)], label=name)
    axis.set_title("Traffic")
    axis.set_ylabel("kbit/s per client")
    axis.set_ylim(bottom=0)
    if rates:
        _legend(axis, 1.03)


def _legend(axis: Any, height: float) -> None:
    """Above the axes on the right, where it hides nothing: the title is on the left, the names of transitions are below."""
    axis.legend(
        loc="lower right",
        bbox_to_anchor=(1.01, height),
        ncols=4,
        borderaxespad=0,
        borderpad=0,
        handlelength=1.4,
        columnspacing=1.0,
    )


def _marks(axis: Any, marks: Sequence[Mark], scale: float, *, named: bool) -> None:
    for mark in marks:
        axis.axvline(mark.at / scale, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        if named:
            axis.annotate(
                f"{mark.label}",
                (mark.at / scale, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8,
                color=QUIET,
            )


def _time_axis(axis: Any, seconds: float) -> float:
    in_minutes = minutes(seconds)
    axis.set_xlabel("time in minutes" if in_minutes else "time in seconds")
    return 60.0 if in_minutes else 1.0


def _values(values: Sequence[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values])
