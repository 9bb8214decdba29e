"""Self-healing: an exchange spreads with the messages of the mechanism itself (BYPASS.KOM 4.3.3).

Every message carries which mechanism its sender runs, and the clock of the plan that said so; whoever hears of a newer plan
follows.  Beyond the documents, initiators may be several: at one clock, the greater name wins, on all hosts alike; and
parameters are part of the specification, so self-transitions spread as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput, TransitionFailed
from nearcast.transition.engine import TransitionEngine
from nearcast.transition.goal import HEARD, Goal
from nearcast.transition.plan import Exchange, PlanId
from nearcast.transition.proxy import ParallelProxy
from nearcast.transition.specification import MechanismSpec


@dataclass(frozen=True, slots=True)
class HealingStatistics:
    clock: int
    conflicts: int
    """Messages of hosts that run another mechanism."""

    healed: int
    """Exchanges because another host knew a newer plan."""

    failed: int
    """Newer plans that this host could not follow; it tries again at the next message."""


class SelfHealing:
    """Of one proxy of one host.  With a ``TransitionAgent`` on the host, both must have the same goal."""

    def __init__(self, engine: TransitionEngine, proxy_name: str, goal: Goal | None = None) -> None:
        proxy = engine.proxy(proxy_name)
        if isinstance(proxy, ParallelProxy):
            raise InvalidInput(f"proxy {proxy_name!r} runs several mechanisms; a message can name only one")
        self.goal: Final = goal if goal is not None else Goal()
        self._engine: Final = engine
        self._proxy: Final = proxy
        self._conflicts = self._healed = self._failed = 0

    def outgoing(self) -> tuple[MechanismSpec, int, str]:
        """What to attach to a message: mechanism, clock and initiator."""
        newest = self.goal.newest(self._proxy.name)
        return self._proxy.spec, newest.clock, newest.initiator

    def incoming(self, spec: MechanismSpec, clock: int, initiator: str) -> bool:
        """A message said this; true if the host has followed a newer plan."""
        conflict = spec != self._proxy.spec
        self._conflicts += conflict
        heard, newest = PlanId(clock, initiator), self.goal.newest(self._proxy.name)
        # Who is within earshot need not be at the same place.
        if heard <= newest or heard.place not in ("", newest.place):
            return False
        try:
            # No plan asked for it: the records show self-healing by that.
            self._exchange(heard, HEARD, spec, None)
        except TransitionFailed:
            self._failed += 1
            return False
        self._healed += conflict
        return conflict

    def initiate(self, spec: MechanismSpec, initiator: str) -> PlanId:
        """Start a new exchange here; it spreads from this host on."""
        plan = PlanId(self.goal.newest(self._proxy.name).clock + 1, initiator)
        self._exchange(plan, 0, spec, str(plan))
        return plan

    def statistics(self) -> HealingStatistics:
        clock = self.goal.newest(self._proxy.name).clock
        return HealingStatistics(clock, self._conflicts, self._healed, self._failed)

    def _exchange(self, plan: PlanId, place: int, spec: MechanismSpec, shown: str | None) -> None:
        # What is heard comes last: the specification says all that the plan set.
        with self.goal.accepting(plan, place, Exchange(self._proxy.name, spec)):
            self._engine.execute(self._proxy.name, spec, shown)
