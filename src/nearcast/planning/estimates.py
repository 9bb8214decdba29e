"""What is known of a filter scheme: four numbers that hold whatever the load is, guessed at first and then seen.

- *share*: of the clients, weighted by size of events, that it would tell of an event;
- *context*: bytes and messages that a client and the broker exchange in a second to keep the scheme going;
- *operations*: match operations for an event;
- *recall*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

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
GRANTED: Final = 2.0
"""Standard errors by which the recall of what runs may seem too low: misses come in groups, since clients that are off miss several."""

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
    """Bytes that the running scheme has cost more than this one would have, since that has begun."""

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

    def keeps(self, target: float, *, runs: bool) -> bool:
        """Whether the recall is good enough, as far as one can tell.  What runs already is not given up because of chance."""
        if not self.expected.presumed and self.recall.denominator < PROOF:
            return False
        mean, pairs = self.recall.mean, self.recall.weight + self.recall.denominator
        granted = GRANTED * math.sqrt(max(0.0, mean * (1.0 - mean)) / pairs) if runs else 0.0
        return mean + granted >= target
