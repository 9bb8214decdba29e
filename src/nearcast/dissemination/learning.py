"""What filter schemes cost, learned while they run, and which one should: the adaptive policy without clock and network.

The trade-off is the one that BYPASS.KOM 4.2.4 and 6.2 describe and leave to fixed times: a scheme that knows much of clients pays
for reports, one that knows little pays for events that nobody wanted, and both pay for matching.  All of it is expressed in bytes;
a match operation counts as so many.  For each candidate four numbers are kept that hold whatever the load is:

- *share*: of the clients, weighted by size of events, that it would tell of an event;
- *context*: bytes and messages that a client and the broker exchange in a second to keep the scheme going;
- *operations*: match operations for an event;
- *recall*.

With the load of the moment they give what each candidate would cost now.  A switch has a price, too, and nobody knows how long a
load will last.  So the policy switches as one stops renting skis: when the running scheme has already cost as much more than
another one, since the last switch, as the switch would have.  Then waiting never costs more than the switch that it may have saved,
however the load goes on; and the policy is quick where much is at stake, and slow where little is.

It still comes late when a quiet time ends, and then a coarse scheme tells everybody of the first large event.  What that would have
cost with each candidate is remembered, too: the price of *surprise*, spread over the time between such moments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.transition.specification import MechanismSpec

SHARE_MEMORY: Final = 60.0
"""Seconds after which what was seen counts 1/e: which events there are, and where, changes over the day."""

CONTEXT_MEMORY: Final = 600.0
"""How people move changes less."""

RECALL_MEMORY: Final = 300.0

OPTIMISM: Final = 1.0
"""How many standard errors a number that was hardly ever seen is taken for better than it looks: so it will be."""

PRIOR_HAPPENINGS: Final = 4.0
"""A guess from geometry counts as if so much had been seen."""

SURPRISE_MEMORY: Final = 1800.0
FIRST_SURPRISE: Final = 300.0
"""Seconds without a surprise that are taken for granted at first, so that one at the beginning is not taken for the rule."""

PRIOR_RECALL_PAIRS: Final = 100.0
PROOF: Final = 50.0
"""Pairs of event and client after which the recall of a scheme that cannot be tried without risk is taken for known."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is known of a candidate before it was seen: from geometry and from the size of messages."""

    share: float
    context_bytes: float
    """Of a client, each second."""

    context_messages: float
    operations: float
    switching_bytes: float
    """Of a client that is brought to this scheme: plan, acknowledgement, and what it says of itself at first."""

    recall: float = 1.0
    presumed: bool = True
    """Whether that recall is taken for granted until something else is seen: because it holds by construction, or because the
    scheme reveals its own recall as soon as it runs."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a window asked of the broker, whatever the scheme."""

    seconds: float
    clients: float
    events: float
    event_bytes: float
    """Of all of them, one copy each."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a window told of one candidate.  Nothing seen is 0 of 0."""

    offered_bytes: float = 0.0
    """Size of events times clients that were looked at, ..."""

    told_bytes: float = 0.0
    """... and of those copies that the scheme would have sent."""

    told: float = 0.0
    """How many copies that were."""

    events: float = 0.0
    operations: float = 0.0
    client_seconds: float = 0.0
    context_bytes: float = 0.0
    context_messages: float = 0.0
    due: float = 0.0
    """Pairs of event and client that should have met, ..."""

    found: float = 0.0
    """... and that the scheme would have brought together."""


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


@dataclass(slots=True)
class Ratio:
    """A mean with a memory: sums of what was seen, of which old parts fade, on top of a guess."""

    guess: float
    weight: float
    """The guess counts like a denominator of that size."""

    memory: float
    numerator: float = 0.0
    denominator: float = 0.0
    happenings: float = 0.0
    """How many single things the numerator is made of: what its scatter depends on."""

    def observe(self, numerator: float, denominator: float, happenings: float) -> None:
        self.numerator += numerator
        self.denominator += denominator
        self.happenings += happenings

    def fade(self, seconds: float) -> None:
        kept = math.exp(-seconds / self.memory)
        self.numerator *= kept
        self.denominator *= kept
        self.happenings *= kept

    @property
    def mean(self) -> float:
        return (self.guess * self.weight + self.numerator) / (self.weight + self.denominator)

    @property
    def optimistic(self) -> float:
        """As low as it may well be; counts scatter by their square root."""
        return self.mean / (1.0 + OPTIMISM / math.sqrt(PRIOR_HAPPENINGS + self.happenings))


@dataclass(slots=True)
class Candidate:
    """All that is known of a scheme."""

    expected: Expectation
    share: Ratio = field(init=False)
    context_bytes: Ratio = field(init=False)
    context_messages: Ratio = field(init=False)
    operations: Ratio = field(init=False)
    recall: Ratio = field(init=False)
    surprise: Ratio = field(init=False)
    """Bytes each second."""

    excess: float = 0.0
    """Bytes that the running scheme has cost more than this one would have, since the last switch."""

    def __post_init__(self) -> None:
        expected = self.expected
        # The guess weighs as much as what would be seen while ``PRIOR_HAPPENINGS`` messages pass.
        seconds = PRIOR_HAPPENINGS / max(expected.context_messages, 1e-3)
        self.share = Ratio(expected.share, 1.0, SHARE_MEMORY)
        self.context_bytes = Ratio(expected.context_bytes, seconds, CONTEXT_MEMORY)
        self.context_messages = Ratio(expected.context_messages, seconds, CONTEXT_MEMORY)
        self.operations = Ratio(expected.operations, PRIOR_HAPPENINGS, SHARE_MEMORY)
        self.recall = Ratio(expected.recall, PRIOR_RECALL_PAIRS, RECALL_MEMORY)
        self.surprise = Ratio(0.0, FIRST_SURPRISE, SURPRISE_MEMORY)

    def observe(self, load: Load, seen: Observation) -> None:
        for ratio in (
            self.share,
            self.context_bytes,
            self.context_messages,
            self.operations,
            self.recall,
            self.surprise,
        ):
            ratio.fade(load.seconds)
        self.surprise.observe(0.0, load.seconds, 0.0)
        # The guess of the share counts like a handful of copies of events of this size.
        if load.events:
            self.share.weight = PRIOR_HAPPENINGS / max(self.expected.share, 1e-3) * load.event_bytes / load.events
        self.share.observe(seen.told_bytes, seen.offered_bytes, seen.told)
        self.context_bytes.observe(seen.context_bytes, seen.client_seconds, seen.context_messages)
        self.context_messages.observe(seen.context_messages, seen.client_seconds, seen.context_messages)
        self.operations.observe(seen.operations, seen.events, seen.events)
        self.recall.observe(seen.found, seen.due, seen.due)

    def keeps(self, target: float) -> bool:
        """Whether the recall is good enough, as far as one can tell; a standard error is granted."""
        if not self.expected.presumed and self.recall.denominator < PROOF:
            return False
        mean, pairs = self.recall.mean, self.recall.weight + self.recall.denominator
        return mean + math.sqrt(mean * (1.0 - mean) / pairs) >= target if mean < 1.0 else True


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
        self._load = Load(1.0, 0.0, 0.0, 0.0)
        self._since_switch = math.inf
        self._windows = self._switches = 0

    @property
    def running(self) -> MechanismSpec:
        return self._running

    def observe(self, load: Load, seen: Mapping[MechanismSpec, Observation]) -> None:
        """A window is over."""
        self._load = load
        self._windows += 1
        self._since_switch += load.seconds
        for spec, candidate in self._candidates.items():
            candidate.observe(load, seen.get(spec, Observation()))
        actual = self._expected_cost(self._running)
        for spec, candidate in self._candidates.items():
            saved = (actual - self._expected_cost(spec)) * load.seconds
            candidate.excess = 0.0 if spec == self._running else max(0.0, candidate.excess + saved)

    def choose(self) -> MechanismSpec:
        """What should run from now on."""
        if self._since_switch < self._settings.dwell:
            return self._running
        target = self._settings.target_recall
        allowed = {spec: each for spec, each in self._candidates.items() if each.keeps(target)}
        if self._running not in allowed:
            return min(allowed, key=self.cost) if allowed else self._best_recall()
        clients, running = self._load.clients, self._expected_cost(self._running)
        paid = [
            spec
            for spec, each in allowed.items()
            # What has paid until now must still do.
            if each.excess > each.expected.switching_bytes * clients and self._expected_cost(spec) < running
        ]
        return min(paid, key=self._expected_cost, default=self._running)

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
        return self._cost(spec, self._candidates[spec].context_bytes.mean)

    def _expected_cost(self, spec: MechanismSpec) -> float:
        """As decisions see it: hopeful where little is known, and with the price of surprise."""
        candidate = self._candidates[spec]
        return self._cost(spec, candidate.context_bytes.optimistic) + candidate.surprise.mean

    def _cost(self, spec: MechanismSpec, context: float) -> float:
        load, candidate, settings = self._load, self._candidates[spec], self._settings
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
