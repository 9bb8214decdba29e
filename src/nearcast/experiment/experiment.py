"""An experiment: what it runs, what it checks, and what it draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nearcast.experiment.checks import Check, Outcome
from nearcast.experiment.runs import Computed, Run

Draw: TypeAlias = Callable[[Sequence[Outcome]], Any]
"""Makes a matplotlib figure from the outcomes of all seeds."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure: the name of its file, what it shows, the runs that it needs, and how it is drawn."""

    name: str
    caption: str
    runs: tuple[str, ...]
    draw: Draw


@dataclass(frozen=True, slots=True)
class Experiment:
    """Part of an evaluation."""

    name: str
    document: str
    """Where it stands: document and section."""

    title: str
    runs: Callable[[bool], tuple[Run, ...]]
    """Given whether it must be quick."""

    checks: tuple[Check, ...]
    drawings: tuple[Drawing, ...]
    seeds: int = 5
    """So many unless told otherwise; quick runs have one."""

    computed: Callable[[bool], tuple[Computed, ...]] = lambda _quick: ()
    """Runs without a scenario, given the same."""

    def all_runs(self, quick: bool, longer: int = 1) -> tuple[Run | Computed, ...]:
        """Of which those in which nothing changes take ``longer`` times as long; the others, and what is computed, do not."""
        runs = (run.longer(longer) if longer > 1 and run.steady else run for run in self.runs(quick))
        return (*runs, *self.computed(quick))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "document": self.document,
            "title": self.title,
            "checks": [check.to_json() for check in self.checks],
        }
