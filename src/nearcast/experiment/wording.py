"""Numbers of checks, as people read them."""

from __future__ import annotations

from nearcast.experiment.checks import PartResult, shown


def number(part: PartResult) -> str:
    """The mean over the seeds, with its standard deviation where there are several."""
    if part.measured is None:
        return "–"
    written = shown(part.measured)
    if part.deviation is not None:
        written += f" ± {part.deviation:.2g}"
    return written + part.unit
