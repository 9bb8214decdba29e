"""What filter schemes cost, learned while they run, and which one should: the adaptive policy without clock and network.

The trade-off is the one that BYPASS.KOM 4.2.4 and 6.2 describe and leave to fixed times: a scheme that knows much of clients pays
for reports, one that knows little pays for events that nobody wanted, and both pay for matching.  All of it is expressed in bytes;
a match operation counts as so many.  What is known of each candidate (``estimates``) says, with the load of the moment, what it would
cost now.  A switch has a price, too, and nobody knows how long a
load will last.  So the policy switches as one stops renting skis: when the running scheme has already cost as much more than
another one as the switch would.  Then waiting never costs much more than the switches that it may have saved, however the load
goes on; and the policy is quick where much is at stake, and slow where little is.

It still comes late when a quiet time ends, and then a coarse scheme tells everybody of the first large event.  What that would have
cost with each candidate is remembered, too: the price of *surprise*, spread over the time between such moments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from nearcast.planning.estimates import Candidate, Expectation, Load, Observation
from nearcast.transition.specification import MechanismSpec

LOAD_MEMORY: Final = 15.0
"""For the usual load: a window without an event does not mean that there are none."""


@dataclass(frozen=True, slots=True)
class LearnerSettings:
    dwell: float = 10.0
    """Seconds between two switches, at least."""

    target_recall: float = 0.95
    match_weight: float = 1.0
    """Bytes that a match operation counts as."""

    keep_alive: float = 20.0
    """A client that had nothing to say for so many seconds says that it is there, ..."""

    alive_bytes: float = 60.0
    """... which takes so much."""


@dataclass(frozen=True, slots=True)
class CandidateEstimate:
    """What is believed of a candidate."""

    share: float
    context_bytes: float
    operations: float
    recall: float
    cost: float
    """Bytes each second, with the load of the last window."""

    surprise: float
    excess: float


@dataclass(frozen=True, slots=True)
class LearnerStatistics:
    running: MechanismSpec
    windows: int
    switches: int
    estimates: dict[MechanismSpec, CandidateEstimate]


class Learner:
    """Chooses among candidates.  Tell it of each window, ask it, and tell it when the choice was carried out."""

    def __init__(
        self, expected: Mapping[MechanismSpec, Expectation], running: MechanismSpec, settings: LearnerSettings
    ) -> None:
        self._settings: Final = settings
        self._candidates: Final = {spec: Candidate(expectation) for spec, expectation in expected.items()}
        self._running = running
        self._load = self._usual = Load(1.0, 0.0, 0.0, 0.0)
        self._since_switch = math.inf
        self._windows = self._switches = 0

    @property
    def running(self) -> MechanismSpec:
        return self._running

    def observe(self, load: Load, seen: Mapping[MechanismSpec, Observation]) -> None:
        """A window is over."""
        self._usual = _smoothed(self._usual, load)
        self._load = load
        self._windows += 1
        self._since_switch += load.seconds
        for spec, candidate in self._candidates.items():
            candidate.observe(load, seen.get(spec, Observation()))
        actual = self._expected_cost(self._running, load)
        for spec, candidate in self._candidates.items():
            saved = (actual - self._expected_cost(spec, load)) * load.seconds
            candidate.excess = 0.0 if spec == self._running else max(0.0, candidate.excess + saved)

    def choose(self) -> MechanismSpec:
        """What should run from now on."""
        if self._since_switch < self._settings.dwell:
            return self._running
        target, running, clients = self._settings.target_recall, self._running, self._load.clients
        allowed = [spec for spec, each in self._candidates.items() if each.keeps(target, runs=spec == running)]
        if running not in allowed:
            return min(allowed, key=self._usual_cost) if allowed else self._best_recall()
        paid = [
            spec
            for spec in allowed
            if self._candidates[spec].excess > self._candidates[spec].expected.switching_bytes * clients
            # What has paid until now must go on to do so.
            and self._usual_cost(spec) < self._usual_cost(running)
        ]
        return min(paid, key=self._usual_cost, default=running)

    def switched(self, to: MechanismSpec) -> None:
        """That scheme runs from now on, by this choice or somebody else's."""
        if to in self._candidates and self._candidates[to].share.mean < self._candidates[self._running].share.mean:
            self._remember_surprise(to)
        self._running = to
        self._since_switch = 0.0
        self._switches += 1
        for candidate in self._candidates.values():
            candidate.excess = 0.0

    def cost(self, spec: MechanismSpec) -> float:
        """Bytes each second, match operations among them, with the load of the last window."""
        return self._cost(spec, self._load, self._candidates[spec].context_bytes.mean)

    def _usual_cost(self, spec: MechanismSpec) -> float:
        return self._expected_cost(spec, self._usual)

    def _expected_cost(self, spec: MechanismSpec, load: Load) -> float:
        """As decisions see it: hopeful where little is known, and with the price of surprise."""
        candidate = self._candidates[spec]
        return self._cost(spec, load, candidate.context_bytes.optimistic) + candidate.surprise.mean

    def _cost(self, spec: MechanismSpec, load: Load, context: float) -> float:
        candidate, settings = self._candidates[spec], self._settings
        copies = candidate.share.mean * load.clients * load.event_bytes / load.seconds
        operations = settings.match_weight * candidate.operations.mean * load.events / load.seconds
        silent = math.exp(-candidate.context_messages.mean * settings.keep_alive)
        alive = silent * settings.alive_bytes / settings.keep_alive
        return copies + operations + (context + alive) * load.clients

    def statistics(self) -> LearnerStatistics:
        return LearnerStatistics(
            running=self._running,
            windows=self._windows,
            switches=self._switches,
            estimates={
                spec: CandidateEstimate(
                    share=each.share.mean,
                    context_bytes=each.context_bytes.mean,
                    operations=each.operations.mean,
                    recall=each.recall.mean,
                    cost=self.cost(spec),
                    surprise=each.surprise.mean,
                    excess=each.excess,
                )
                for spec, each in self._candidates.items()
            },
        )

    def _remember_surprise(self, right: MechanismSpec) -> None:
        """Events made a more precise scheme necessary: what would the last window have cost with each?"""
        least = self.cost(right)
        for spec, candidate in self._candidates.items():
            late = max(0.0, self.cost(spec) - least) * self._load.seconds
            candidate.surprise.observe(late, 0.0, 1.0)

    def _best_recall(self) -> MechanismSpec:
        return max(self._candidates, key=lambda spec: self._candidates[spec].recall.mean)


def _smoothed(usual: Load, load: Load) -> Load:
    """For one second."""
    kept = math.exp(-load.seconds / LOAD_MEMORY)
    return Load(
        1.0,
        load.clients,
        kept * usual.events + (1.0 - kept) * load.events / load.seconds,
        kept * usual.event_bytes + (1.0 - kept) * load.event_bytes / load.seconds,
    )
