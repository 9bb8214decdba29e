"""Transitions by rules: when what the broker knows of its situation passes a threshold, everybody changes (BYPASS.KOM 4.7).

Several rules on the same information are the steps of a ladder, such as LPS, RGRID and GRID in LCN 2016.  So the scheme follows
from which rules hold, not from the order in which they began and ended: the last of those that hold decides.  A crowd that
leaves at once would else end on the step whose rule happened to be looked at last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.cloud_messages import PROXY
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Cancellable
from nearcast.transition.plan import Action, Exchange
from nearcast.transition.rules import Condition, Rule, RuleEngine, RuleStatistics
from nearcast.transition.specification import MechanismSpec

SETTLING: Final = 60.0
"""Seconds after a restart until a broker knows its situation again: by then everybody who is there has spoken."""


@dataclass(frozen=True, slots=True)
class SchemeRule:
    """That scheme as long as the condition holds; the shortest time between two changes of mind is ``dwell`` seconds."""

    condition: Condition
    scheme: MechanismSpec
    dwell: float = 0.0


class RuledSchemes(Component):
    """After ``PlannedBroker`` among the components of the broker's host.

    ``otherwise`` runs when no rule holds any more.  At first that is taken for granted: before a rule begins to hold, nothing is done.
    """

    def __init__(
        self, rules: Iterable[SchemeRule], otherwise: MechanismSpec, interval: float = 1.0, *, restarted: bool = True
    ) -> None:
        """``restarted``: these begin with the broker; else they follow others, and what these did is known."""
        self._restarted: Final = restarted
        self._otherwise: Final = otherwise
        self._interval: Final = interval
        self._rules: Final = [(_rule(f"rule {number}", each, otherwise), each) for number, each in enumerate(rules, 1)]
        self._broker: PlannedBroker
        self._engine: RuleEngine
        self._settling: Cancellable | None = None

    def start(self, host: Host) -> None:
        self._broker = host.component(PlannedBroker)
        rules = [rule for rule, _ in self._rules]
        self._engine = RuleEngine(host.state, host.clock, host.timers, rules, self._act, interval=self._interval)
        self._engine.start()
        if self._broker.recovered and self._restarted:
            # A rule may have ended while the broker was away, and nobody would notice: no rule of this engine ends.
            self._settling = host.timers.after(SETTLING, self._settle)

    def stop(self) -> None:
        self._engine.stop()
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None

    @property
    def settling(self) -> bool:
        """Whether a restart was so short ago that nobody knows yet which rules hold."""
        return self._settling is not None

    @property
    def active(self) -> bool:
        """Whether a rule holds."""
        return any(self._engine.active(rule.name) for rule, _ in self._rules)

    def evaluate(self) -> None:
        """Look at all rules now."""
        self._engine.evaluate()

    def statistics(self) -> RuleStatistics:
        return self._engine.statistics()

    def _settle(self) -> None:
        self._settling = None
        if not self.active:
            self._broker.transition(self._otherwise)

    def _act(self, changed: Rule, actions: tuple[Action, ...]) -> None:
        # The engine counts a rule as switched only after this has gone well.
        begins = actions is changed.actions
        holding = [
            each.scheme for rule, each in self._rules if (begins if rule is changed else self._engine.active(rule.name))
        ]
        self._broker.transition(holding[-1] if holding else self._otherwise)


def _rule(name: str, rule: SchemeRule, otherwise: MechanismSpec) -> Rule:
    return Rule(
        name, (rule.condition,), (Exchange(PROXY, rule.scheme),), (Exchange(PROXY, otherwise),), dwell=rule.dwell
    )
