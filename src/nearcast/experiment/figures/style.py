"""How all figures look: quiet axes, colours that everybody can tell apart, the same file for the same data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from nearcast.errors import SetupError

COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6B6B6B")
"""Okabe and Ito's, which the colour-blind can tell apart."""

INK: Final = "#222222"
QUIET: Final = "#8A8A8A"
WIDTH: Final = 7.2
"""Inches: a page with margins."""

_SETTINGS: Final[Any] = {
    "svg.hashsalt": "nearcast",
    # Text as outlines: the file looks the same on a machine without the font.
    "svg.fonttype": "path",
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.4,
}


@contextmanager
def styled() -> Iterator[Any]:
    """matplotlib, without a screen and with our settings; gives ``matplotlib``."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise SetupError("figures need matplotlib: install nearcast[figures], or matplotlib itself") from None
    with mpl.rc_context():
        # Figures are made without pyplot, so there is no backend to choose; what a user has configured must not show.
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield mpl


def panels(rows: int, height: float, *, columns: int = 1, share_x: bool = True) -> tuple[Any, Sequence[Any]]:
    """A figure with its axes from top to bottom, ``height`` inches each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, rows * height + 0.3))
    axes = figure.subplots(rows, columns, sharex=share_x, squeeze=False)
    return figure, list(axes.flat)


def told_apart(mechanisms: Sequence[str]) -> list[str]:
    """Their names; with parameters, which take room, only where the names are the same."""
    names = [mechanism.partition("(")[0] for mechanism in mechanisms]
    return names if len(set(names)) == len(set(mechanisms)) else list(mechanisms)


def minutes(seconds: float) -> bool:
    """Whether times of a run that long are better told in minutes."""
    return seconds >= 600.0
