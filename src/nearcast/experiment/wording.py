"""Numbers of checks, as people read them."""

from __future__ import annotations

from nearcast.experiment.checks import PartResult


def number(part: PartResult) -> str:
    """The mean over the seeds, with its standard deviation where there are several."""
    if part.measured is None:
        return "–"
    shown = f"{part.measured:.4g}"
    if part.deviation is not None:
        shown += f" ± {part.deviation:.2g}"
    return shown + part.unit
