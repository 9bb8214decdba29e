"""Figures that several experiments have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nearcast.experiment.checks import Outcome
from nearcast.experiment.experiment import Drawing
from nearcast.experiment.figures.bands import close_up, over_time
from nearcast.experiment.figures.boxes import recall_and_precision
from nearcast.experiment.figures.maps import mechanisms
from nearcast.experiment.measures import Measures

CONTROL: Final = ("download context", "upload context", "download coordination", "upload coordination")
BY_RADIO: Final = ("ad hoc download event", "ad hoc upload event", "ad hoc download neighbourhood")


def windows_of(run: str) -> Drawing:
    return Drawing(
        f"over-time-{run}",
        f"Clients in windows of time, run {run}; T1 to T4: transitions",
        (run,),
        lambda outcomes: over_time(outcomes[0][run], traffic=BY_RADIO if _by_radio(outcomes[0][run]) else CONTROL),
    )


def _by_radio(measures: Measures) -> bool:
    return any(name in measures.series.rates for name in BY_RADIO)


def transitions_of(runs: Mapping[str, str], *, name: str = "close-up", of: str = "") -> Drawing:
    """What happens around each transition: runs by what they are called in the figure."""

    def draw(outcomes: Sequence[Outcome]) -> Any:
        return close_up({shown: outcomes[0][run] for shown, run in runs.items()})

    caption = "Recall by time of publication around each transition"
    return Drawing(name, f"{of}: {caption}" if of else caption, tuple(runs.values()), draw)


def schemes_of(run: str) -> Drawing:
    caption = f"Who ran which scheme when, run {run}: all clients, and the first forty"
    return Drawing("schemes", caption, (run,), lambda outcomes: mechanisms(outcomes[0][run]))


def mechanisms_of(run: str) -> Drawing:
    caption = f"Who spread events how when, run {run}: all clients, and the first forty"
    return Drawing("mechanisms", caption, (run,), lambda outcomes: mechanisms(outcomes[0][run]))


def boxes_of(runs: Mapping[str, str], label: str = "") -> Drawing:
    """Recall and precision: runs by what is written below them."""

    def draw(outcomes: Sequence[Outcome]) -> Any:
        deliveries = {
            shown: [outcome[run].phase("all").delivery for outcome in outcomes] for shown, run in runs.items()
        }
        return recall_and_precision(deliveries, label=label)

    return Drawing(
        "recall-and-precision",
        "Recall and precision of clients, first seed; diamonds: mean of events over seeds",
        tuple(runs.values()),
        draw,
    )
