"""What was asked for last: of the plans of all initiators, in whatever order they arrive, the newest word on everything.

The documents know one initiator and compare one clock (BYPASS.KOM 4.3.3).  Plans of several may arrive in any order, and a
new parameter before the exchange that it was meant for: so each proxy remembers its newest exchange and what was set since,
by the order of plans, not of arrival.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from nearcast.errors import NearcastError
from nearcast.transition.plan import Action, Exchange, ExecutionPlan, PlanId, SetState
from nearcast.transition.specification import NULL

NEVER: Final = PlanId(0, "")
HEARD: Final = 2**31
"""The place of what a host did because it heard of another's plan: after all that the plan itself may ask for."""


@dataclass(slots=True)
class _Wanted:
    """Of one proxy."""

    exchange: tuple[PlanId, int, Exchange] | None = None
    states: dict[str, tuple[PlanId, int, SetState]] = field(default_factory=dict)
    told: tuple[PlanId, int] = NEVER, 0
    """The newest exchange that this host was told, not counting what it only heard."""

    @property
    def newest(self) -> tuple[PlanId, int]:
        entries = [self.exchange, *self.states.values()]
        return max((entry[:2] for entry in entries if entry), default=(NEVER, 0))


class Goal:
    """The newest exchange of each proxy, and the newest value of each state since."""

    def __init__(self) -> None:
        self.changes = 0
        """How often something was noted: for whoever keeps what follows from it."""

        self._proxies: Final[dict[str, _Wanted]] = {}

    def newest(self, proxy: str) -> PlanId:
        """The newest plan that had a say about this proxy."""
        wanted = self._proxies.get(proxy)
        return wanted.newest[0] if wanted else NEVER

    @property
    def clock(self) -> int:
        """The highest of all."""
        return max((wanted.newest[0].clock for wanted in self._proxies.values()), default=0)

    def outdated_by(self, plan: PlanId, place: int, action: Action) -> PlanId | None:
        """The plan that said something newer about what this action, the ``place``-th of its plan, is about.

        Who is told to run nothing is deaf from then on.  So what it has heard since, while it was being told, counts for nothing:
        had the plan been faster, it would not have heard it.
        """
        wanted, order = self._proxies.get(action.proxy, _Wanted()), (plan, place)
        held = wanted.states.get(action.state) if isinstance(action, SetState) else None
        if isinstance(action, Exchange) and action.target == NULL:
            return wanted.told[0] if order <= wanted.told else None
        for entry in (wanted.exchange, held):
            if entry and order <= entry[:2]:
                return entry[0]
        return None

    def pass_over(self, plan: PlanId, place: int, action: Action) -> None:
        """Take note that this host was told so, though something newer is known."""
        if isinstance(action, Exchange):
            wanted = self._proxies.setdefault(action.proxy, _Wanted())
            wanted.told = max(wanted.told, (plan, place))

    def accept(self, plan: PlanId, place: int, action: Action) -> None:
        """Take note of an action that is not outdated."""
        self.changes += 1
        wanted, order = self._proxies.setdefault(action.proxy, _Wanted()), (plan, place)
        if isinstance(action, SetState):
            wanted.states[action.state] = (*order, action)
        else:
            wanted.exchange = (*order, action)
            wanted.told = wanted.told if place == HEARD else order
            wanted.states = {state: entry for state, entry in wanted.states.items() if entry[:2] > order}

    @contextmanager
    def accepting(self, plan: PlanId, place: int, action: Action) -> Iterator[None]:
        """Take note of an action while it is carried out; not if that fails.

        A message that goes out meanwhile may show mechanism and plan (self-healing), and must never show an old mechanism
        with a new plan.  An exchange is silent until the new mechanism bootstraps: it is noted before.  Setting a state may
        be followed by messages at once, while the state is still that of before: it is noted afterwards.
        """
        before = replace(self._proxies.get(action.proxy, _Wanted()))
        if isinstance(action, Exchange):
            self.accept(plan, place, action)
        try:
            yield
        except NearcastError:
            self.changes += 1
            self._proxies[action.proxy] = before
            raise
        if isinstance(action, SetState):
            self.accept(plan, place, action)

    def states_since(self, proxy: str) -> tuple[tuple[PlanId, SetState], ...]:
        """What was asked for later than the newest exchange of the proxy, in its order."""
        wanted = self._proxies.get(proxy, _Wanted())
        return tuple((entry[0], entry[2]) for entry in sorted(wanted.states.values(), key=lambda entry: entry[:2]))

    def accept_plan(self, plan: ExecutionPlan) -> None:
        """Take note of all that is news in it."""
        for place, action in enumerate(plan.actions):
            if self.outdated_by(plan.id, place, action) is None:
                self.accept(plan.id, place, action)

    def plans(self) -> tuple[ExecutionPlan, ...]:
        """What a host needs that knows nothing: the newest words, in the plans that they were part of."""
        by_plan: dict[PlanId, list[Action]] = {}
        for plan, _, action in sorted(self._entries(), key=lambda entry: entry[:2]):
            by_plan.setdefault(plan, []).append(action)
        return tuple(ExecutionPlan(plan, tuple(actions)) for plan, actions in by_plan.items())

    def _entries(self) -> list[tuple[PlanId, int, Action]]:
        found: list[tuple[PlanId, int, Action]] = []
        for wanted in self._proxies.values():
            if wanted.exchange:
                found.append(wanted.exchange)
            found.extend(wanted.states.values())
        return found
