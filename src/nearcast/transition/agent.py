"""The part of coordination on every host that is told what to do (BYPASS.KOM 5.2.3: a passive executor)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from nearcast.errors import NearcastError, TransitionFailed
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address, Endpoint
from nearcast.transition.engine import HostEngine, TransitionEngine
from nearcast.transition.goal import Goal
from nearcast.transition.plan import Action, Exchange, ExecutionPlan, PlanDone, PlanId, PlanMessage

PORT: Final = 3
REMEMBERED: Final = 256
"""So many plans are remembered with what became of them: to be acknowledged again when they are repeated."""


@dataclass(frozen=True, slots=True)
class AgentStatistics:
    plans: int
    repeated: int
    """Plans that came again, and were only acknowledged."""

    executed: int
    """Actions."""

    outdated: int
    """Actions about which something newer was known."""

    failed: int
    """Plans that could not be carried out to the end."""

    clock: int


class TransitionAgent(Component):
    """Executes plans through the engine of its host (``HostEngine``, a component before this one).

    What was carried out is in ``goal``: whatever carries transitions on a host by other ways (self-healing) shares it.
    """

    def __init__(self, interface: str = "cellular", *, acknowledge: bool = True) -> None:
        self.goal: Final = Goal()
        self._interface: Final = interface
        self._acknowledge: Final = acknowledge
        self._results: Final[dict[PlanId, tuple[ExecutionPlan, PlanDone]]] = {}
        self._callbacks: Final[dict[str, Callable[[], None]]] = {}
        self._pinned: Final[set[str]] = set()
        self._plans = self._repeated = self._executed = self._outdated = self._failed = 0
        self._engine: TransitionEngine
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._engine = host.component(HostEngine).engine
        self._endpoint = host.link(self._interface).open(PORT, self._receive, PlanMessage)

    def execute(self, plan: ExecutionPlan) -> PlanDone:
        """Do what the plan says, unless it is known already."""
        if plan.id in self._results:
            known, result = self._results[plan.id]
            self._repeated += 1
            # What is brought up later may be a part of the plan: the rest is outdated by then.
            return result if set(plan.actions) <= set(known.actions) else self._mistaken(plan)
        self._plans += 1
        result = self._carried_out(plan)
        self._results[plan.id] = plan, result
        self._failed += not result.ok
        if len(self._results) > REMEMBERED:
            del self._results[next(iter(self._results))]
        return result

    def after(self, proxy: str, callback: Callable[[], None]) -> None:
        """Call back whenever an action on this proxy was carried out."""
        self._callbacks[proxy] = callback

    def pin(self, proxy: str) -> None:
        """This proxy stays as it is: plans that want something else of it fail here."""
        self._pinned.add(proxy)

    def statistics(self) -> AgentStatistics:
        return AgentStatistics(
            self._plans, self._repeated, self._executed, self._outdated, self._failed, self.goal.clock
        )

    def _receive(self, sender: Address, message: PlanMessage) -> None:
        done = self.execute(message.plan)
        if self._acknowledge:
            self._endpoint.send(sender, msgspec.structs.replace(done, attempt=message.attempt))

    def _carried_out(self, plan: ExecutionPlan) -> PlanDone:
        newer: PlanId | None = None
        error: str | None = None
        for place, action in enumerate(plan.actions):
            outdated_by = self.goal.outdated_by(plan.id, place, action)
            if outdated_by is not None:
                self._outdated += 1
                self.goal.pass_over(plan.id, place, action)
                if outdated_by != plan.id:  # that is: unless self-healing was faster
                    newer = max(newer or outdated_by, outdated_by)
                continue
            try:
                with self.goal.accepting(plan.id, place, action):
                    self._perform(plan.id, action)
                if isinstance(action, Exchange):
                    # What was asked for later, but arrived earlier, was set in the mechanism before.
                    for later, state in self.goal.states_since(action.proxy):
                        self._perform(later, state)
                if action.proxy in self._callbacks:
                    self._callbacks[action.proxy]()
            except NearcastError as failure:
                error = f"action {place + 1} of {len(plan.actions)}: {failure}"
                break
        return PlanDone(plan.id, ok=error is None, error=error, clock=self.goal.clock, outdated_by=newer)

    def _mistaken(self, plan: ExecutionPlan) -> PlanDone:
        error = f"there was another plan {plan.id}: after a restart, recover or observe the clocks before making plans"
        return PlanDone(plan.id, ok=False, error=error, clock=self.goal.clock, outdated_by=plan.id)

    def _perform(self, plan: PlanId, action: Action) -> None:
        if action.proxy in self._pinned:
            raise TransitionFailed(f"{action.proxy!r} is pinned on this host: it stays as it is")
        if isinstance(action, Exchange):
            self._engine.execute(action.proxy, action.target, str(plan))
        else:
            self._engine.execute_self(action.proxy, action.state, action.value, str(plan))
        self._executed += 1
