"""``[[rule]]`` and ``[planning]``: how the broker finds the filter scheme to run, by thresholds (BYPASS.KOM 4.7) or by learning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from nearcast.dissemination.broker_state import INFORMATION
from nearcast.planning.ruled import SchemeRule
from nearcast.scenario.kinds import Number, OneOf, Optional, Quantity, Range, entry
from nearcast.scenario.problems import Contradiction
from nearcast.scenario.quantities import DURATION, PROBABILITY
from nearcast.scenario.scheme_sections import SCHEMES, Scheme
from nearcast.scenario.tables import Section, Tables, Varieties
from nearcast.transition.rules import Condition, Direction
from nearcast.transition.specification import MechanismSpec

_LIMIT: Final = Optional(Number(Range(least=0.0)))


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleEntry(Section):
    """``[[rule]]``: a scheme for as long as something is above, or below, a threshold."""

    when: str = entry(OneOf(tuple(INFORMATION)), "subscribers", "what the broker looks at, once a second")
    above: float | None = entry(_LIMIT, None, "the rule holds from more than that on; this or 'below' must be given")
    below: float | None = entry(_LIMIT, None, "the rule holds from less than that on")
    back_at: float | None = entry(_LIMIT, None, "until the value is back there; at the threshold if not given")
    dwell: float = entry(
        Quantity(DURATION, Range(least=0.0)), "30 s", "shortest time between two changes of the rule's mind"
    )
    scheme: Scheme = entry(
        SCHEMES, {}, "for everybody while the rule holds; of several rules that hold, the last decides"
    )
    otherwise: Scheme | None = entry(
        Optional(SCHEMES),
        None,
        "for everybody when no rule holds any more: that of the first rule that has one, or else the one of the start",
    )

    def contradictions(self) -> Iterator[Contradiction]:
        if (self.above is None) == (self.below is None):
            yield Contradiction(("above", "below"), "this or 'below' is needed, and not both")
            return
        threshold = self._threshold
        if self.back_at is None or threshold is None:
            return
        if self.back_at > threshold if self.above is not None else self.back_at < threshold:
            word, side = ("above", "at most") if self.above is not None else ("below", "at least")
            yield Contradiction(
                ("back_at", word), f"{self.back_at:g} is beyond the threshold; {side} {threshold:g} is needed"
            )

    def schemes(self) -> dict[str, Scheme]:
        """All that it may bring about, by key."""
        return {"scheme": self.scheme} | ({} if self.otherwise is None else {"otherwise": self.otherwise})

    def rule(self) -> SchemeRule:
        direction = Direction.BELOW if self.above is None else Direction.ABOVE
        assert self._threshold is not None
        condition = Condition(INFORMATION[self.when], direction, self._threshold, self.back_at)
        return SchemeRule(condition, self.scheme.spec(), self.dwell)

    @property
    def _threshold(self) -> float | None:
        return self.below if self.above is None else self.above


def when_none_holds(rules: Sequence[RuleEntry], start: Scheme) -> MechanismSpec:
    """What runs when no rule holds any more."""
    return next((rule.otherwise for rule in rules if rule.otherwise is not None), start).spec()


@dataclass(frozen=True, kw_only=True, slots=True)
class Planning(Section):
    """What all kinds share: nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoPlanning(Planning):
    """Set times and rules decide, or the scheme stays what it is."""

    word: ClassVar[str] = "none"


@dataclass(frozen=True, kw_only=True, slots=True)
class AdaptivePlanning(Planning):
    """The broker learns what each candidate costs, and runs the cheapest one that finds enough."""

    word: ClassVar[str] = "adaptive"

    candidates: tuple[Scheme, ...] = entry(
        Tables(SCHEMES),
        [{"kind": "RADIAL"}, *({"kind": "EGRID", "factor": factor} for factor in (2, 5, 10, 20))],
        "schemes to choose from, beside the one of the start",
    )
    window: float = entry(Quantity(DURATION, Range(least=0.1)), "2 s", "how often it decides")
    dwell: float = entry(Quantity(DURATION, Range(least=0.0)), "10 s", "shortest time between two transitions")
    target_recall: float = entry(
        Quantity(PROBABILITY, Range(least=0.0, most=1.0)), 0.95, "candidates that are seen to find less are not run"
    )
    match_weight: float = entry(Number(Range(least=0.0)), 1.0, "bytes of traffic that a match operation counts as")

    def contradictions(self) -> Iterator[Contradiction]:
        if not self.candidates:
            yield Contradiction(("candidates",), "has no candidates; give at least one scheme to choose")


PLANNING: Final = Varieties("kind", {kind.word: kind for kind in (NoPlanning, AdaptivePlanning)}, "none")
