"""Writing figures: PNG for reading, SVG for printing; the same bytes whenever they show the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearcast.experiment.figures.style import styled


def save(figure: Any, folder: Path, name: str) -> tuple[str, str]:
    """The names of both files."""
    folder.mkdir(parents=True, exist_ok=True)
    png, svg = f"{name}.png", f"{name}.svg"
    with styled():
        figure.savefig(folder / png, format="png", metadata={"Software": None})
        figure.savefig(folder / svg, format="svg", metadata={"Date": None, "Creator": None})
    return png, svg
