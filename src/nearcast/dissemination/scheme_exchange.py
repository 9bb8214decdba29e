"""Which filter scheme serves which client of a broker, and how that changes: by plans, for all clients or some.

Every client belongs to one scheme at a time, the usual one or one that it insists on.  Schemes that were exchanged go on for a
while for those clients that have not been heard in the new one (``filtering.overlap``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from nearcast.dissemination.broker_settings import (
    EVERYBODY,
    PATIENCE,
    PINNED,
    BrokerSettings,
    Forgetting,
    Memory,
)
from nearcast.dissemination.cloud_messages import PROXY
from nearcast.dissemination.scheme_state import ClientState, OldService, as_kept, context_in
from nearcast.errors import InvalidPlan, InvalidScheme, TransitionFailed
from nearcast.filtering.broker_half import BrokerHalf, Cloud, Tally
from nearcast.filtering.context import NEVER, ClientContext
from nearcast.filtering.messages import ToClient
from nearcast.filtering.overlap import Overlaps
from nearcast.filtering.registry import broker_halves
from nearcast.filtering.scheme import Territory
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.plan import Action, Exchange, PlanDone, PlanId
from nearcast.transition.proxy import ParallelProxy
from nearcast.transition.specification import NULL, MechanismSpec

Say = Callable[[Address, ToClient], None]
"""Bring a message of a scheme to a client; it has its tag already."""


@dataclass(frozen=True, slots=True)
class _Copied:
    """A scheme that goes on for a while."""

    scheme: MechanismSpec
    clock: int
    """Of the plan by which its clients are to leave it."""

    tags: Mapping[Address, int]
    """The clocks by which they had come to it."""


class SchemeExchange:
    """The schemes that run at one broker, with their clients; they, and what they cost, outlive every exchange."""

    def __init__(
        self,
        host: Host,
        territory: Territory,
        settings: BrokerSettings,
        memory: Memory,
        say: Say,
    ) -> None:
        """The host has a ``HostEngine`` and a ``TransitionCoordinator``, both started."""
        self.tally: Final = Tally()
        self.overlaps: Final = Overlaps()
        self.refused = 0
        self.memory: Final = memory
        self._host: Final = host
        self._territory: Final = territory
        self._settings: Final = settings
        self._send: Final = say
        self._clock = 0
        """Lamport time of the plan that newcomers are to follow."""

        self._clocks: dict[Address, int] = {}
        """Of those for whom there was another, later plan."""

        self._planned: Instant = NEVER
        """When the newest plan was sent."""

        self._addressed: frozenset[Address] = frozenset()
        """To whom."""

        self._unable: dict[Address, int] = {}
        """Clients that could not follow a plan, and its clock: they stay in the scheme that they have."""

        self._copied: Final = WeakKeyDictionary[BrokerHalf, _Copied]()
        self._old_services: dict[tuple[int, MechanismSpec], dict[Address, OldService]] = {}
        """Of an earlier life, to go on (``go_on``)."""

        self._engine: Final = host.component(HostEngine).engine
        self._coordinator: Final = host.component(TransitionCoordinator)
        self._coordinator.done = self._answered
        make = broker_halves(territory, Cloud(self._engine.silence.guarded(self._say), self.tally))
        self._proxy: Final[ParallelProxy[BrokerHalf]] = self._engine.create_parallel_proxy(
            PROXY, BrokerHalf, make, settings.scheme
        )
        self._pinned: Final[ParallelProxy[BrokerHalf]] = self._engine.create_parallel_proxy(
            PINNED, BrokerHalf, make, NULL
        )
        if not settings.state_transfer:
            self._engine.register(PROXY, Forgetting())
        self._remember()

    # Who belongs where

    @property
    def scheme(self) -> MechanismSpec:
        """That of newcomers."""
        return self._proxy.default

    @property
    def members(self) -> list[Address]:
        """All clients that belong to a scheme."""
        return [*self._proxy.members, *self._pinned.members]

    def __len__(self) -> int:
        """How many these are."""
        return len(self._proxy.members) + len(self._pinned.members)

    def __contains__(self, client: object) -> bool:
        return client in self._proxy.members or client in self._pinned.members

    def scheme_of(self, client: Address) -> MechanismSpec:
        return (self._pinned if client in self._pinned.members else self._proxy).spec_for(client)

    def half_of(self, client: Address) -> BrokerHalf:
        """The scheme that a client belongs to; whoever is new belongs to the usual one."""
        half = self._pinned.instance_for(client) if client in self._pinned.members else self._proxy.add(client)
        if client not in half.contexts:
            half.adopt(client, ClientContext())
        return half

    def halves_of(self, client: Address) -> list[BrokerHalf]:
        """That, and those that go on for it."""
        return [self.half_of(client), *self.overlaps.halves_of(client)]

    def present(self) -> Iterator[BrokerHalf]:
        """All schemes that clients belong to."""
        yield from self._proxy.instances.values()
        for scheme, half in self._pinned.instances.items():
            if scheme != NULL:
                yield half

    def running(self) -> Iterator[tuple[MechanismSpec, BrokerHalf]]:
        """The same with their specifications; one that some insist on may come twice."""
        for proxy in (self._proxy, self._pinned):
            yield from ((scheme, half) for scheme, half in proxy.instances.items() if scheme != NULL)

    def clock_of(self, client: Address) -> int:
        """Lamport time of the plan by which this client is where it is, or should be."""
        if not self.follows(client):
            return 0  # it follows no plan, and takes nothing that belongs to one
        return self._clocks.get(client, self._clock)

    def pin(self, client: Address, scheme: MechanismSpec) -> None:
        """The client insists on this scheme; one that the broker does not have is refused: it is served as others are."""
        if self._pinned.spec_for(client) == scheme:
            return
        try:
            self._engine.execute_partial(PINNED, scheme, [client])
        except TransitionFailed:
            self.refused += 1
            return
        # Its first message says that it is pinned; but something else may have overtaken that.
        if client in self._proxy.members:
            usual = self._proxy.instance_for(client)
            known = usual.contexts.get(client)
            usual.forget(client)
            self.overlaps.forget([client])
            self._proxy.remove(client)
            for subscription in known.subscriptions.values() if known else ():
                self.half_of(client).subscribe(client, subscription)

    def knows_all_of(self, client: Address, subscriptions: int) -> bool:
        """Whether the scheme that a client is to come to can serve it; it says that it holds so many subscriptions."""
        known = len(self.half_of(client).contexts[client].subscriptions)
        # Where no state is transferred, all are told anew: some of them may have come, and the others not.
        return known >= (1 if self._settings.state_transfer else max(1, subscriptions))

    def forget(self, client: Address) -> None:
        self.half_of(client).forget(client)
        self.overlaps.forget([client])
        for proxy in (self._proxy, self._pinned):
            proxy.remove(client)
        self._coordinator.forget(client)
        for known in (self._clocks, self._unable):
            known.pop(client, None)
        self._addressed -= {client}  # should it return, it has forgotten the plan

    def groups(self) -> dict[MechanismSpec, int]:
        """How many clients each scheme has."""
        running = [(proxy, spec) for proxy in (self._proxy, self._pinned) for spec in proxy.instances if spec != NULL]
        counts: dict[MechanismSpec, int] = {}
        for proxy, spec in running:
            counts[spec] = counts.get(spec, 0) + len(proxy.members_of(spec))
        return counts

    # Restarts

    def state_of(self, client: Address) -> ClientState:
        """What has to be known of a client, its subscriptions apart, to go on with it after a restart."""
        old = [(half, self._copied[half]) for half in self.overlaps.halves_of(client)]
        return ClientState(
            scheme=self.scheme_of(client),
            pinned=not self.follows(client),
            clock=self.clock_of(client),
            context=as_kept(self.half_of(client).contexts[client]),
            old=tuple(
                OldService(copied.scheme, copied.clock, copied.tags[client], as_kept(half.contexts[client]))
                for half, copied in old
            ),
        )

    def adopt(self, client: Address, state: ClientState) -> None:
        """Go on with a client of an earlier life; one whose scheme this broker does not have any more begins anew."""
        held, old = self.half_of(client).contexts[client].subscriptions, state.old
        if state.pinned:
            self.pin(client, state.scheme)
        elif state.clock < self._clock:
            # It was written down before the last plan for everybody: what is known of it is known in a scheme that is over.
            old = (*old, OldService(state.scheme, self._clock, state.clock, state.context))
        else:
            self.follow(client, state.scheme, PlanId(state.clock, self._host.name))
        self.half_of(client).adopt(client, context_in(state.context, held))
        for service in old:
            self._old_services.setdefault((service.clock, service.scheme), {})[client] = service

    def go_on(self) -> None:
        """All clients of an earlier life were adopted: their old schemes go on, if they had not come to the new one."""
        services, self._old_services = self._old_services, {}
        told_alone: dict[MechanismSpec, dict[Address, None]] = {}
        for (clock, spec), clients in sorted(services.items(), key=lambda item: item[0][0]):
            tags = {client: service.said_under for client, service in clients.items()}
            try:
                half = self._copy(_Copied(spec, clock, tags))
            except InvalidScheme:  # an earlier release had it
                self.refused += len(clients)
                continue
            for client, service in clients.items():
                held = self.half_of(client).contexts[client].subscriptions
                half.adopt(client, context_in(service.context, held))
                if self.clock_of(client) > self._clock:
                    told_alone.setdefault(self.scheme_of(client), {})[client] = None
            self.overlaps.begin(half, clock, self._end_of_grace())
        # Of plans for everybody, the tags of clients tell who has missed one; a plan for some is made once more.
        for spec, some in told_alone.items():
            plan = self._coordinator.execute([Exchange(PROXY, spec)], some)
            self._clocks |= dict.fromkeys(some, plan.id.clock)
            self.memory.clock = plan.id.clock

    # Transitions

    def check(self, scheme: MechanismSpec) -> None:
        """Raises ``InvalidInput`` for one that cannot be made here: the ground may be too large for its cells, for instance."""
        if scheme not in self._proxy.instances:
            broker_halves(self._territory, Cloud(_unsaid, Tally()))(scheme)

    def transition(
        self,
        scheme: MechanismSpec,
        clients: Iterable[Address] | None = None,
        also: Sequence[Action] = (),
        place: str = "",
    ) -> None:
        """Bring all clients, or these, to that scheme: first here, at once; then each of them, by a plan.

        ``also`` is what else the plan asks of whoever changes its scheme by it, at that ``place`` if it is for one.  Raises ``TransitionFailed`` if the broker cannot
        change; then nobody does.
        """
        if scheme == NULL:
            raise InvalidPlan("a broker needs a filter scheme: without one, it would forget its clients")
        members = [client for client in (self._proxy.members if clients is None else clients) if self.follows(client)]
        affected = [client for client in members if self._proxy.spec_for(client) != scheme]
        if not affected and (clients is not None or scheme == self._proxy.default):
            return
        plan = self._coordinator.next_plan(place)
        old = self._copies(affected, plan.clock) if self._settings.overlap else []
        before = self._clock, self._clocks
        # Before the exchange: what the new scheme says to clients carries the tag of the new plan.
        if clients is None:
            self._clock, self._clocks = plan.clock, {}
        else:
            self._clocks = self._clocks | dict.fromkeys(affected, plan.clock)
        try:
            if clients is None:
                self._engine.execute(PROXY, scheme, str(plan))
            else:
                self._engine.execute_partial(PROXY, scheme, affected, str(plan))
        except TransitionFailed:
            self._clock, self._clocks = before
            raise
        for half in old:
            self.overlaps.begin(half, plan.clock, self._end_of_grace())
        group = EVERYBODY if clients is None else None
        told = members if clients is None else affected
        self._coordinator.execute([Exchange(PROXY, scheme), *also], told, group, place=place)
        self.memory.plans = self._coordinator.goal(EVERYBODY)
        self.memory.clock = plan.clock
        self._planned, self._addressed = self._host.now(), frozenset(members)

    def tell(
        self, actions: Sequence[Action], clients: Iterable[Address], group: str | None = None, place: str = ""
    ) -> None:
        """Have clients do what is no affair of filter schemes.  What everybody was told, and the clock, outlive a failure of this broker."""
        plan = self._coordinator.execute(actions, clients, group, place=place)
        self.memory.plans = self._coordinator.goal(EVERYBODY)
        self.memory.clock = plan.id.clock

    def welcome(self, client: Address) -> None:
        """It is new here.  Tags speak of filter schemes only: what else everybody was told, it may have missed unnoticed."""
        told = self._coordinator.goal(EVERYBODY)
        if any(action.proxy != PROXY for plan in told for action in plan.actions):
            self._coordinator.bring_up(client, EVERYBODY)

    def check_clock(self, client: Address, clock: int) -> bool:
        """The tag reveals who has missed a plan (BYPASS.KOM 4.2.2), and that this broker has.

        True: this broker has forgotten, or another initiator was faster.  Then the client has to say which scheme it runs
        (``follow``).
        """
        if not self.follows(client):
            return False
        ours = self.clock_of(client)
        if clock < ours:
            self.overlaps.prolong(client, clock, self._end_of_grace())
            # Right after a plan, what clients said before they got it is still on its way.
            patient = client in self._addressed and self._host.now() - self._planned <= PATIENCE
            if not patient and self._unable.get(client) != ours:
                self._coordinator.bring_up(client, EVERYBODY)
        elif clock > ours:
            self._coordinator.observe_clock(clock)
            return True
        return False

    def follow(self, client: Address, running: MechanismSpec, plan: PlanId) -> None:
        """Self-healing: whoever has seen the later plan is right (BYPASS.KOM 4.3.3), as far as it is concerned itself."""
        self.half_of(client)
        try:
            self._engine.execute_partial(PROXY, running, [client], str(plan))
        except TransitionFailed:
            self.refused += 1
        else:
            self._clocks[client] = plan.clock

    def _remember(self) -> None:
        """After a failure: what everybody was told last still holds."""
        self._coordinator.observe_clock(self.memory.clock)
        self._coordinator.recover(EVERYBODY, self.memory.plans)
        for plan in self.memory.plans:
            for action in plan.actions:
                if isinstance(action, Exchange) and action.proxy == PROXY:
                    self._clock = plan.id.clock
                    self._engine.execute(PROXY, action.target)

    def _copies(self, clients: list[Address], clock: int) -> list[BrokerHalf]:
        """The present schemes of these clients once more, to go on with them for a while after the plan of that clock."""
        tags, copies = {client: self.clock_of(client) for client in clients}, []
        for spec, group in self._proxy.groups(clients).items():
            half = self._copy(_Copied(spec, clock, tags))
            contexts = self._proxy.instances[spec].contexts
            for client in group:
                # Whoever wants no area gets the same in all schemes, and may have nothing to say in any.
                needed = client in contexts and (contexts[client].has_area() or not self._settings.state_transfer)
                if needed:
                    half.adopt(client, contexts[client].copy())
            if half.contexts:
                copies.append(half)
        return copies

    def _copy(self, copied: _Copied) -> BrokerHalf:
        # What the old scheme has to say is for those who are still in it: it keeps its tag.
        say = partial(self._send_tagged, copied.scheme.name, copied.tags)
        half = broker_halves(self._territory, Cloud(say, self.tally))(copied.scheme)
        self._copied[half] = copied
        return half

    def _end_of_grace(self) -> Instant:
        return self._host.now() + round(self._settings.grace * MICROSECONDS)

    def follows(self, client: Address) -> bool:
        """Whether plans are for this client."""
        return client not in self._pinned.members

    def _say(self, client: Address, message: ToClient) -> None:
        self._send_tagged(self.scheme_of(client).name, {client: self.clock_of(client)}, client, message)

    def _send_tagged(self, scheme: str, clocks: Mapping[Address, int], client: Address, message: ToClient) -> None:
        self._send(client, msgspec.structs.replace(message, scheme=scheme, clock=clocks[client]))

    def _answered(self, client: Address, done: PlanDone) -> None:
        if not done.ok and self.follows(client):
            self._unable[client] = done.plan.clock


def _unsaid(_client: Address, _message: ToClient) -> None:
    """Made only to see whether it can be."""
