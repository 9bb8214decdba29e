"""Everybody changes its filter scheme, but some at a time: a thousand clients at once would keep the loop busy for seconds.

The plan is made, and the scheme of newcomers changes, at once.  Whoever was not moved yet *remains*: it is served as before, by the scheme
and under the clock that it knows, and has been told of nothing.  So each step is what a transition is for these clients alone; but all
steps have one plan, and of each old scheme one copy goes on for those who were moved (``filtering.overlap``).  If the broker fails in between,
it finds the plan for everybody, and clients whose clocks are older: as if these had been moved, and not been heard since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from nearcast.dissemination.broker_settings import EVERYBODY
from nearcast.dissemination.cloud_messages import PROXY
from nearcast.dissemination.scheme_exchange import SchemeExchange, _Copied
from nearcast.errors import TransitionFailed
from nearcast.filtering.broker_half import BrokerHalf
from nearcast.runtime.ports import Address
from nearcast.transition.plan import Action, Exchange, PlanId
from nearcast.transition.specification import MechanismSpec


@dataclass(slots=True)
class _Underway:
    """An exchange for everybody that has begun."""

    scheme: MechanismSpec
    plan: PlanId
    remaining: dict[Address, None]
    """Also those who are in the scheme already, and only have to be told."""

    old: dict[MechanismSpec, tuple[BrokerHalf, dict[Address, int]]] = field(default_factory=dict)
    """What goes on of each scheme, and the clocks by which its clients had come to it."""


class GradualExchange(SchemeExchange):
    """``begin``, then ``advance`` as long as somebody remains; ``transition`` does all of it in one go, as ever."""

    _underway: _Underway | None = None

    @property
    def remaining(self) -> int:
        """How many clients are still to be moved."""
        return 0 if self._underway is None else len(self._underway.remaining)

    def coming_to(self, client: Address) -> MechanismSpec:
        """The scheme that a client belongs to, or is about to be moved to."""
        underway = self._underway
        return underway.scheme if underway is not None and self._remains(client) else self.scheme_of(client)

    def begin(self, scheme: MechanismSpec, at_once: int) -> list[Address]:
        """Bring everybody to that scheme, so many now; answers of whom something has changed.  Raises what ``transition`` does."""
        members = list(self._proxy.members)
        affected = [client for client in members if self._proxy.spec_for(client) != scheme]
        if len(affected) <= at_once:
            self.transition(scheme)
            return self.members
        plan, some = PlanId(self._coordinator.clock + 1, self._host.name), affected[:at_once]
        before = self._clock, self._clocks, self._underway
        self._clocks, self._clock = {client: self.clock_of(client) for client in members}, plan.clock
        self._underway = _Underway(scheme, plan, dict.fromkeys((*affected, *members)))
        try:
            self._move(self._underway, some)
        except Exception:
            self._clock, self._clocks, self._underway = before
            raise
        self._proxy.default = scheme  # the engine would move everybody with it
        self._coordinator.execute([Exchange(PROXY, scheme)], some, EVERYBODY)
        self.memory.plans = self._coordinator.goal(EVERYBODY)
        self.memory.clock = plan.clock
        self._planned, self._addressed = self._host.now(), frozenset(members)  # soon
        return some

    def advance(self, at_once: int) -> list[Address]:
        """Move so many more; answers who that is."""
        underway = self._underway
        if underway is None:
            return []
        some = list(islice(underway.remaining, at_once))
        remaining = [client for client in some if self._remains(client)]
        self._bring(underway, remaining)
        gone = [client for client in some if client in underway.remaining]  # or told something newer
        self._reached(underway, gone)
        return remaining

    def abandon(self) -> None:
        """Whoever remains stays where it is."""
        self._underway = None

    def transition(
        self,
        scheme: MechanismSpec,
        clients: Iterable[Address] | None = None,
        also: Sequence[Action] = (),
        place: str = "",
    ) -> None:
        if clients is None:
            super().transition(scheme, None, also, place)
            self._underway = None
            return
        some, underway = list(clients), self._underway
        staying = [client for client in some if self._remains(client) and self._proxy.spec_for(client) == scheme]
        super().transition(scheme, some, also, place)
        if underway is not None and staying:
            self._leave(underway, staying)

    def check_clock(self, client: Address, clock: int) -> bool:
        underway = self._underway
        if underway is not None and self._remains(client) and clock < self.clock_of(client):
            self._bring(underway, [client])  # it has missed a plan, and gets this one instead
        return super().check_clock(client, clock)

    def _remains(self, client: Address) -> bool:
        underway = self._underway
        return (
            underway is not None
            and client in underway.remaining
            and client in self._proxy.members
            and self.clock_of(client) < underway.plan.clock
        )

    def _leave(self, underway: _Underway, clients: list[Address]) -> None:
        """They stay in what they would have left: a plan of their own says so, which is newer than that for everybody."""
        plan = self._coordinator.execute([Exchange(PROXY, self._proxy.spec_for(clients[0]))], clients)
        self._clocks |= dict.fromkeys(clients, plan.id.clock)
        self.memory.clock, self._planned = plan.id.clock, self._host.now()
        self._reached(underway, clients)

    def _reached(self, underway: _Underway, clients: Iterable[Address]) -> None:
        for client in clients:
            del underway.remaining[client]
        if not underway.remaining:
            self._underway = None

    def _bring(self, underway: _Underway, clients: list[Address]) -> None:
        self._move(underway, clients)
        for client in clients:
            self._coordinator.bring_up(client, EVERYBODY)
        # Somebody at a border may have had a plan of its own meanwhile.
        self._planned, self._addressed = self._host.now(), self._addressed | frozenset(clients)

    def _move(self, underway: _Underway, clients: list[Address]) -> None:
        """What the broker does of a transition; to tell the clients is left to do."""
        moving = [client for client in clients if self._proxy.spec_for(client) != underway.scheme]
        copies = self._copies(moving, underway.plan.clock) if self._settings.overlap else []
        clocks = {client: self._clocks.pop(client) for client in clients}
        try:
            self._engine.execute_partial(PROXY, underway.scheme, moving, str(underway.plan))
        except TransitionFailed:
            self._clocks |= clocks
            for half in copies:
                for client in moving:
                    half.forget(client)
            raise
        self._reached(underway, clients)
        for half in copies:
            if half in self.overlaps:
                self.overlaps.prolong(next(iter(half.contexts)), underway.plan.clock - 1, self._end_of_grace())
            else:
                self.overlaps.begin(half, underway.plan.clock, self._end_of_grace())

    def _copy(self, copied: _Copied) -> BrokerHalf:
        underway = self._underway
        if underway is None or copied.clock != underway.plan.clock:
            return super()._copy(copied)
        # One that was given up meanwhile still knows those who were silent for too long: it is not taken up again.
        if copied.scheme not in underway.old or underway.old[copied.scheme][0] not in self.overlaps:
            tags: dict[Address, int] = {}
            underway.old[copied.scheme] = super()._copy(replace(copied, tags=tags)), tags
        half, tags = underway.old[copied.scheme]
        tags |= copied.tags
        return half
