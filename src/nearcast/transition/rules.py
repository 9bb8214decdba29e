"""Rules that decide when to exchange a mechanism: event, condition, action (BYPASS.KOM 4.7).

The documents leave the decision to predefined times or to one threshold, at which they see oscillation; here a rule has a
second threshold to switch back at, and a shortest time between two switches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from math import isnan
from typing import Final

from nearcast.errors import InvalidPlan, TransitionFailed
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Cancellable, Clock, Timers
from nearcast.runtime.state import Information, StateInformation
from nearcast.transition.plan import Action


class Direction(Enum):
    ABOVE = "above"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Condition:
    """Begins to hold when the value is beyond the threshold; ends when it is back at ``back_at`` (default: the threshold)."""

    information: Information[float]
    direction: Direction
    threshold: float
    back_at: float | None = None

    def __post_init__(self) -> None:
        back_at = self.threshold if self.back_at is None else self.back_at
        right_side = back_at <= self.threshold if self.direction is Direction.ABOVE else back_at >= self.threshold
        if not right_side:  # also refuses NaN
            raise InvalidPlan(
                f"{self.information.name!r} {self.direction.value} {self.threshold!r} cannot end at {self.back_at!r}: "
                "the value would have to be on both sides at once"
            )

    def holds(self, value: float, *, held: bool) -> bool:
        """Whether it holds now, if it ``held`` before or not."""
        limit = self.back_at if held and self.back_at is not None else self.threshold
        return value > limit if self.direction is Direction.ABOVE else value < limit


@dataclass(frozen=True, slots=True)
class Rule:
    """When all conditions hold, one thing is done; when one of them ends, the other."""

    name: str
    conditions: tuple[Condition, ...]
    actions: tuple[Action, ...]
    otherwise: tuple[Action, ...] = ()
    dwell: float = 0.0
    """Seconds that have to pass between two switches of this rule."""

    def __post_init__(self) -> None:
        if not self.conditions or not (self.actions or self.otherwise):
            raise InvalidPlan(f"rule {self.name!r} needs a condition, and something to do")
        if not self.dwell >= 0:
            raise InvalidPlan(f"rule {self.name!r} cannot wait {self.dwell!r} seconds")


Act = Callable[[Rule, tuple[Action, ...]], None]
"""Has the actions carried out: by the coordinator, or by the engine of this host.  May raise ``TransitionFailed``."""


@dataclass(frozen=True, slots=True)
class RuleStatistics:
    evaluated: int
    switched: int
    unknown: int
    """Evaluations that came to nothing because something was not known."""

    waited: int
    """Evaluations that would have switched, but too soon after the last time."""

    failed: int
    """Switches that failed; they are tried again at the next evaluation."""


@dataclass(slots=True)
class _Status:
    active: bool = False
    since: Instant | None = None


class RuleEngine:
    """The rules of one host, looked at periodically and whenever something that they depend on is announced.

    At first, no rule is active: what runs then is taken for what ``otherwise`` asks for (the documents do not say what the
    density was before the first time, BYPASS.KOM 4.7).
    """

    def __init__(
        self,
        state: StateInformation,
        clock: Clock,
        timers: Timers,
        rules: Iterable[Rule],
        act: Act,
        interval: float = 1.0,
    ) -> None:
        self._state: Final = state
        self._clock: Final = clock
        self._timers: Final = timers
        self._status: Final[dict[Rule, _Status]] = {}
        self._act: Final = act
        self._interval: Final = interval
        self._held: list[Cancellable] = []
        self._acting = False
        self._evaluated = self._switched = self._unknown = self._waited = self._failed = 0
        for rule in rules:
            if any(rule.name == other.name for other in self._status):
                raise InvalidPlan(f"there is a rule {rule.name!r} already; give each its own name")
            self._status[rule] = _Status()

    def start(self) -> None:
        informations = {
            condition.information.name: condition.information for rule in self._status for condition in rule.conditions
        }
        self._held = [self._state.consume(of, self._announced(of.name)) for of in informations.values()]
        self._held.append(self._timers.every(self._interval, self.evaluate))

    def stop(self) -> None:
        for held in self._held:
            held.cancel()
        self._held = []

    def active(self, name: str) -> bool:
        """Whether the rule of that name has switched, and not back."""
        return any(status.active for rule, status in self._status.items() if rule.name == name)

    def evaluate(self) -> None:
        """Look at all rules now."""
        self._evaluate(self._status, {})

    def statistics(self) -> RuleStatistics:
        return RuleStatistics(self._evaluated, self._switched, self._unknown, self._waited, self._failed)

    def _announced(self, name: str) -> Callable[[float], None]:
        concerned = [rule for rule in self._status if any(it.information.name == name for it in rule.conditions)]
        return lambda value: self._evaluate(concerned, {name: value})

    def _evaluate(self, rules: Iterable[Rule], announced: dict[str, float]) -> None:
        if self._acting:
            return  # what an action announces is looked at the next time: no rule runs in circles
        for rule in rules:
            self._evaluated += 1
            self._consider(rule, announced)

    def _consider(self, rule: Rule, announced: dict[str, float]) -> None:
        status = self._status[rule]
        wanted = self._wanted(rule, announced, active=status.active)
        if wanted is None:
            self._unknown += 1
            return
        if wanted == status.active:
            return
        now = self._clock.now()
        if status.since is not None and now < status.since + round(rule.dwell * MICROSECONDS):
            self._waited += 1
            return
        actions = rule.actions if wanted else rule.otherwise
        self._acting = True
        try:
            if actions:
                self._act(rule, actions)
        except TransitionFailed:
            self._failed += 1
            return
        finally:
            self._acting = False
        status.active, status.since = wanted, now
        self._switched += 1

    def _wanted(self, rule: Rule, announced: dict[str, float], *, active: bool) -> bool | None:
        """Whether the rule should be active; none if a value is missing, or no number."""
        result = True
        for condition in rule.conditions:
            value = announced.get(condition.information.name)
            value = self._state.get(condition.information) if value is None else value
            if value is None or isnan(value):
                return None
            result = result and condition.holds(value, held=active)
        return result
