"""A run of an experiment: a scenario, and what is to be measured in it; or a function that computes numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nearcast.experiment.schedule import PROXY
from nearcast.scenario.kinds import Toml
from nearcast.scenario.population_section import Everybody
from nearcast.scenario.reading import EXAMPLES, parse
from nearcast.scenario.schema import Scenario

DOCUMENTS_WAY: Final[dict[str, Toml]] = {"overlap": False, "acknowledged": False, "unknown_channels": "discard"}
"""``[transitions]`` as the documents have them; ours, without loss, are the defaults."""

WINDOW: Final = 10.0
"""Seconds (BYPASS.KOM 6.1.4)."""

SETTLING: Final = 10.0
"""Seconds after a transition that do not count for the phase that follows: two fixes, and all of their answers."""


@dataclass(frozen=True, slots=True)
class Run:
    """What to simulate, and what to look at."""

    name: str
    scenario: Scenario
    phases: tuple[str, ...] = ("all",)
    """Names of the times between the transitions, or between the ``cuts``."""

    cuts: tuple[float, ...] = ()
    """Seconds at which a run without transitions is cut, to be compared with one that has some."""

    transitions: bool = False
    """Whether the mechanism that is looked at is exchanged, as often as there are phases."""

    proxy: str = PROXY
    """Which one that is: the broker's filter scheme, or what spreads events from host to host (``LOCAL``)."""

    window: float = WINDOW
    settling: float = SETTLING
    maps: bool = False
    """Whether recall and transitions by place are wanted."""

    numbers: Callable[[Scenario, Path], Mapping[str, float]] | None = None
    """What else is to be measured in the recording, by name; a function of a module, as of ``Computed``."""

    @property
    def seconds(self) -> float:
        """How long it is compared with others."""
        return float(self.scenario.run.duration)

    @property
    def steady(self) -> bool:
        """Whether one of its seconds is like any other, so that it may take longer and still be the same run."""
        return len(self.phases) == 1 and not self.cuts and isinstance(self.scenario.population, Everybody)

    def longer(self, times: int) -> Run:
        """The same for so many times as long; only for those that are ``steady``."""
        lasting = replace(self.scenario.run, duration=times * self.scenario.run.duration)
        return replace(self, scenario=replace(self.scenario, run=lasting))

    @property
    def digest(self) -> str:
        return self.scenario.digest()


@dataclass(frozen=True, slots=True)
class Computed:
    """A run without a scenario: ``compute(seed, **arguments)`` gives its numbers, by name.

    Nothing is recorded: what it gives is all that there is to keep.  The function is one of a module, because runs take place in
    processes of their own.
    """

    name: str
    compute: Callable[..., Mapping[str, float]]
    arguments: tuple[tuple[str, float | str], ...] = ()
    seconds: float = 1.0
    """How long it takes compared with others."""

    @property
    def digest(self) -> str:
        """What is computed; the code itself is part of what a result depends on (``storage``)."""
        return f"{self.compute.__module__}.{self.compute.__qualname__}{self.arguments!r}"

    def numbers(self, seed: int) -> dict[str, float]:
        arguments: dict[str, Any] = dict(self.arguments)
        return {name: float(value) for name, value in self.compute(seed, **arguments).items()}


def scenario(example: str, changes: Mapping[str, Toml]) -> Scenario:
    """One of the scenarios that come with nearcast, changed; all that experiments need is sampled.

    A value of ``changes`` may be a table: ``{"scheme": {"kind": "STE"}}``.
    """
    path = EXAMPLES / f"{example}.toml"
    usual: dict[str, Toml] = {"run.metric_samples": "1 s"}
    return parse(
        path.read_text(encoding="utf-8"), name=example, folder=Path(path.parent), changes=usual | dict(changes)
    )
