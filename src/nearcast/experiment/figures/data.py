"""The numbers that a figure shows, as a table: for whoever cannot see it, and for whoever wants to draw it otherwise."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from nearcast.experiment.measures import Bands, Measures

Cell: TypeAlias = str | float | None
TIME: Final = "seconds"
DIGITS: Final = 9
"""As many as mean anything; more would differ from one processor to the next."""

_ATTRIBUTE: Final = "nearcast_data"


@dataclass(frozen=True, slots=True)
class FigureData:
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def to_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_written(cell) for cell in row] for row in self.rows)
        return text.getvalue()


def attach(figure: Any, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Say what the figure shows; whoever saves it writes that down beside it."""
    setattr(figure, _ATTRIBUTE, FigureData(tuple(columns), tuple(tuple(row) for row in rows)))


def data_of(figure: Any) -> FigureData:
    """None of our figures comes without."""
    found: FigureData = getattr(figure, _ATTRIBUTE)
    return found


def band_rows(panel: str, measures: Measures, bands: Bands) -> Iterable[tuple[Cell, ...]]:
    """Of a panel with percentiles over time: panel, series, middle of the window, value."""
    for series, values in (
        ("mean", bands.mean),
        ("5 %", bands.p5),
        ("25 %", bands.p25),
        ("median", bands.p50),
        ("75 %", bands.p75),
        ("95 %", bands.p95),
    ):
        yield from over_windows(panel, series, measures, values)


def over_windows(
    panel: str, series: str, measures: Measures, values: Sequence[float | None]
) -> Iterable[tuple[Cell, ...]]:
    for start, value in zip(measures.series.starts, values, strict=False):
        yield panel, series, start + measures.series.length / 2, value


def cell_rows(
    name: str, x: Sequence[float], y: Sequence[float], values: Mapping[str, Sequence[float]]
) -> Iterable[Any]:
    """Of a map: its name, metres to the east and to the north, and the values there."""
    for number, (east, north) in enumerate(zip(x, y, strict=True)):
        yield (name, east, north, *(each[number] for each in values.values()))


def _written(cell: Cell) -> str | int:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return f"{cell:.{DIGITS}g}" if isinstance(cell, float) else cell
