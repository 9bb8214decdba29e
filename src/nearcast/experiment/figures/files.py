"""Writing figures: PNG for reading, SVG for printing, CSV with the numbers; the same bytes whenever they show the same."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from nearcast.experiment.figures.data import data_of
from nearcast.experiment.figures.style import styled
from nearcast.files import write_whole


def save(figure: Any, folder: Path, name: str) -> tuple[str, str, str]:
    """The names of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg, table = f"{name}.png", f"{name}.svg", f"{name}.csv"
    with styled():
        write_whole(folder / png, _drawn(figure, "png", {"Software": None}))
        # Finding a place for everything takes as long as drawing it, and both forms are to have the same.
        layout = figure.get_layout_engine()
        figure.set_layout_engine("none")
        write_whole(folder / svg, _drawn(figure, "svg", {"Date": None, "Creator": None}))
        figure.set_layout_engine(layout)
    write_whole(folder / table, data_of(figure).to_csv())
    return png, svg, table


def _drawn(figure: Any, form: str, metadata: dict[str, None]) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=form, metadata=metadata)
    return content.getvalue()
