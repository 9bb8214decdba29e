"""The coordinator: makes plans, brings them to hosts, and brings up those that missed one (BYPASS.KOM 5.2.3).

In the documents a plan is sent once and believed to arrive; here it is repeated until the host has answered.  A host gets its
plans one after the other, so that they cannot overtake each other on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address, Cancellable, Endpoint
from nearcast.transition.agent import PORT
from nearcast.transition.goal import NEVER, Goal
from nearcast.transition.plan import Action, Exchange, ExecutionPlan, PlanDone, PlanId, PlanMessage, SetState

UNDERWAY: Final = 1.0
"""Seconds after which every host that can be reached has its plan, and nothing that was said before is on its way any more."""


@dataclass(frozen=True, slots=True)
class CoordinatorStatistics:
    clock: int
    plans: int
    sent: int
    """Messages, those that were repeated included."""

    repeated: int
    acknowledged: int
    failed: int
    """Plans of which a host said that it could not carry them out."""

    waiting: int
    """Hosts that have not answered yet."""


@dataclass(slots=True)
class _Addressee:
    """A host, what it was told by itself, and what it has not answered yet."""

    goal: Goal = field(default_factory=Goal)
    queue: list[ExecutionPlan] = field(default_factory=list)
    underway: ExecutionPlan | None = None
    """The first of the queue, which is repeated until it is answered."""

    wait: float = 0.0
    timer: Cancellable | None = None
    attempt: int = 0
    """How often it was brought up: an answer from before may be that of an earlier life, which it has forgotten."""


class TransitionCoordinator(Component):
    """An initiator of plans.  On its host, no ``TransitionAgent`` can use the same link: what it executes, it executes itself."""

    def __init__(
        self,
        interface: str = "cellular",
        *,
        acknowledged: bool = True,
        retry: float = 1.0,
        longest_retry: float = 30.0,
    ) -> None:
        """Repeat after ``retry`` seconds, then twice as long, at most ``longest_retry``; ``acknowledged=False``: send once."""
        if not 0 < retry <= longest_retry:
            raise InvalidInput(f"a plan cannot be repeated after {retry!r} s, at most {longest_retry!r} s")
        self.done: Callable[[Address, PlanDone], None] = _nobody
        """Called with what each host answers to each plan, once; to be set by whoever wants to know."""

        self._interface: Final = interface
        self._acknowledged: Final = acknowledged
        self._retry: Final = retry
        self._longest_retry: Final = longest_retry
        self._goals: Final[dict[str, Goal]] = {}
        self._addressees: Final[dict[Address, _Addressee]] = {}
        self._clock = 0
        self._plans = self._sent = self._repeated = self._answered = self._failed = 0
        self._host: Host
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._host = host
        self._endpoint = host.link(self._interface).open(PORT, self._receive, PlanDone)

    @property
    def clock(self) -> int:
        return self._clock

    def next_plan(self, place: str = "") -> PlanId:
        """That of the next plan, if it is for whoever is there."""
        return PlanId.for_place(self._clock + 1, self._host.name, place)

    def execute(
        self, actions: Sequence[Action], hosts: Iterable[Address], group: str | None = None, *, place: str = ""
    ) -> ExecutionPlan:
        """Have these hosts carry out the actions; with a ``group``, also whoever is brought up as part of it later.

        With a ``place``, it does not spread by self-healing to hosts that are elsewhere.
        """
        plan = ExecutionPlan(self.next_plan(place), tuple(actions))
        self._clock += 1
        self._plans += 1
        addressed = tuple(dict.fromkeys(hosts))
        if group is not None:
            self._goals.setdefault(group, Goal()).accept_plan(plan)
        for host in addressed:
            addressee = self._addressees.setdefault(host, _Addressee())
            if group is None:
                addressee.goal.accept_plan(plan)
            if self._acknowledged:
                self._enqueue(host, addressee, plan)
        if not self._acknowledged:
            self._sent += len(addressed)
            self._endpoint.send_all(addressed, PlanMessage(plan))
        return plan

    def bring_up(self, host: Address, group: str | None = None) -> int:
        """Send a host what it missed: called when it joined, came back, or shows by its messages that it lags behind.

        Answers to what was sent before count no longer.  Answers how many plans it takes.
        """
        addressee = self._addressees.setdefault(host, _Addressee())
        addressee.attempt += 1
        addressee.underway = None
        newest = Goal()
        for plan in (*self.goal(group), *addressee.goal.plans()):
            newest.accept_plan(plan)
        plans = newest.plans()
        for plan in plans:
            if not self._acknowledged:
                self._send(host, addressee, plan)
            elif all(plan.id != queued.id for queued in addressee.queue):
                self._enqueue(host, addressee, plan)
        self._advance(host, addressee)
        return len(plans)

    def forget(self, host: Address) -> None:
        """The host has gone: nothing more is sent to it, and what it alone was told is forgotten."""
        addressee = self._addressees.pop(host, None)
        if addressee is not None and addressee.timer:
            addressee.timer.cancel()

    def observe_clock(self, clock: int) -> None:
        """A clock was seen, of another initiator or of an earlier life: the next plan is newer."""
        self._clock = max(self._clock, clock)

    def newest(self, proxy: str, host: Address, group: str | None = None) -> PlanId:
        """The newest plan for a proxy of a host: whoever shows an older one has to be brought up."""
        goals = [self._goals.get(group) if group is not None else None]
        goals += [self._addressees[host].goal] if host in self._addressees else []
        return max((goal.newest(proxy) for goal in goals if goal), default=NEVER)

    def goal(self, group: str | None) -> tuple[ExecutionPlan, ...]:
        """What the group was told last: all that a coordinator needs to go on after a restart (``recover``)."""
        goal = self._goals.get(group) if group is not None else None
        return goal.plans() if goal else ()

    def recover(self, group: str, plans: Iterable[ExecutionPlan], hosts: Iterable[Address] = ()) -> None:
        """After a restart: take up the goal of a group, and send it again to these hosts.

        Whoever restarts without a goal must observe the clocks that its hosts show before it makes a plan.
        """
        goal = self._goals.setdefault(group, Goal())
        for plan in plans:
            goal.accept_plan(plan)
        self.observe_clock(goal.clock)
        for host in hosts:
            self.bring_up(host, group)

    def statistics(self) -> CoordinatorStatistics:
        waiting = sum(1 for addressee in self._addressees.values() if addressee.queue)
        return CoordinatorStatistics(
            self._clock, self._plans, self._sent, self._repeated, self._answered, self._failed, waiting
        )

    def _enqueue(self, host: Address, addressee: _Addressee, plan: ExecutionPlan) -> None:
        kept = [queued for queued in addressee.queue if not _superseded(queued, plan)]
        addressee.queue = sorted([*kept, plan], key=_id)
        self._advance(host, addressee)

    def _advance(self, host: Address, addressee: _Addressee) -> None:
        """Send the first plan of the queue, unless it is underway already."""
        first = addressee.queue[0] if addressee.queue else None
        if first is addressee.underway:
            return
        if addressee.timer:
            addressee.timer.cancel()
        addressee.underway, addressee.wait = first, self._retry
        if first:
            self._send(host, addressee, first)
            self._set_timer(host, addressee, first)

    def _set_timer(self, host: Address, addressee: _Addressee, plan: ExecutionPlan) -> None:
        def again() -> None:
            self._repeated += 1
            self._send(host, addressee, plan)
            addressee.wait = min(2 * addressee.wait, self._longest_retry)
            self._set_timer(host, addressee, plan)

        addressee.timer = self._host.timers.after(addressee.wait, again)

    def _send(self, host: Address, addressee: _Addressee, plan: ExecutionPlan) -> None:
        self._sent += 1
        self._endpoint.send(host, PlanMessage(plan, addressee.attempt))

    def _receive(self, sender: Address, done: PlanDone) -> None:
        self.observe_clock(done.clock)
        addressee = self._addressees.get(sender)
        if addressee is None or done.attempt < addressee.attempt:
            return
        if all(plan.id != done.plan for plan in addressee.queue):
            return  # answered before, or no longer wanted
        self._answered += 1
        self._failed += not done.ok
        addressee.queue = [plan for plan in addressee.queue if plan.id != done.plan]
        self._advance(sender, addressee)
        self.done(sender, done)


def _superseded(old: ExecutionPlan, new: ExecutionPlan) -> bool:
    """Whether all that the old plan asks for is undone by the new one: then nobody needs to hear of it any more."""
    return old.id < new.id and all(any(_undoes(later, action) for later in new.actions) for action in old.actions)


def _undoes(later: Action, action: Action) -> bool:
    if later.proxy != action.proxy:
        return False
    if isinstance(later, Exchange):
        return True
    return isinstance(action, SetState) and later.state == action.state


def _id(plan: ExecutionPlan) -> PlanId:
    return plan.id


def _nobody(_host: Address, _done: PlanDone) -> None:
    """Nobody wants to know."""
