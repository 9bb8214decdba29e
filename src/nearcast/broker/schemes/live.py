"""Filter schemes and their transitions, live: for those clients that run the other half of them (``nc-schemes: 1``).

They hold the subscriptions with an area around the client; all else is the router's.  Nothing here touches a socket or a disk: messages go
out through ``send`` and come in through ``receive``, and what must survive a restart is asked for with ``changes``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

import msgspec

from nearcast.broker.schemes.gradual_broker import GradualBroker
from nearcast.broker.schemes.regions import regions_bytes, regions_in
from nearcast.broker.schemes.text import scheme_in
from nearcast.dissemination.broker_settings import BrokerSettings, BrokerStatistics, Memory
from nearcast.dissemination.handed_broker import TransitionDone
from nearcast.dissemination.handed_link import HandedLink
from nearcast.dissemination.scheme_messages import INTERFACE, Hello, check
from nearcast.dissemination.scheme_state import ClientState
from nearcast.errors import InvalidRecord, UnknownName
from nearcast.filtering.context import ClientContext
from nearcast.filtering.messages import AssignmentRequest, ContextUpdate, Joining
from nearcast.filtering.parameters import Radial
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.planning.regional import Moved, Region, RegionalSchemes
from nearcast.planning.ruled import RuledSchemes, SchemeRule
from nearcast.runtime.host import Host, Ports
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock, Timers
from nearcast.runtime.random import RandomStreams
from nearcast.transition.coordinator import TransitionCoordinator
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

T = TypeVar("T")

log: Final = logging.getLogger(__name__)

NAME: Final = "broker"
"""Under which plans are made; the same in every life, so that clients recognise them."""


@dataclass(frozen=True, slots=True)
class SchemePlan:
    """What the configuration says of schemes."""

    initial: MechanismSpec
    territory: Territory
    rules: Sequence[SchemeRule] = ()
    """Of several that hold, the last decides; when none holds, the initial scheme runs."""

    grace: float = 60.0
    """As in ``BrokerSettings``."""


@dataclass(frozen=True, slots=True)
class SchemeChanges:
    """What has to be written down, to go on after a restart."""

    memory: bytes | None
    """Plans, if there were new ones."""

    regions: bytes | None
    """All regions, if there were others before."""

    clients: Mapping[str, bytes]

    named: Mapping[str, bool]
    """Clients that were not brought to their scheme by name before, and are now; or the other way round."""


@dataclass(frozen=True, slots=True)
class SchemesStatus:
    """For operators."""

    scheme: MechanismSpec
    """That of newcomers."""

    groups: Mapping[MechanismSpec, int]
    """Clients in each scheme."""

    clock: int
    waiting: int
    """Clients that have not answered their plan yet."""

    overlaps: int
    """Schemes that go on for a while for those who were not heard in the new one."""

    transitions: int
    """Since the broker was started."""

    latest: tuple[TransitionDone, ...]
    """The last of them, oldest first."""

    regions: tuple[Region, ...]
    """With schemes of their own."""


@dataclass(frozen=True, slots=True)
class SchemesStatistics:
    connected: int
    schemes: BrokerStatistics
    messages_in: int
    messages_out: int


class LiveSchemes:
    """The broker's half of all filter schemes.

    A restart: give the constructor the ``memory`` and the ``regions`` that were written last, ``restore`` the state of each client, subscribe for it
    (before or after), and ``start``.
    """

    def __init__(
        self,
        clock: Clock,
        timers: Timers,
        plan: SchemePlan,
        send: Callable[[str, bytes], None],
        *,
        memory: bytes | None = None,
        regions: bytes | None = None,
        changed: Callable[[], None] | None = None,
        observers: Observers | None = None,
    ) -> None:
        """``send(client, payload)`` publishes to a client on ``$nearcast/scheme``, in order and with quality of service 1.

        ``changed()`` is called when there is something for ``changes``, once until it was asked for.
        """
        self.located: Callable[[str, Point | None], None] = _nobody
        """Told where a client says that it is, for whoever keeps contexts; none: it does not say any more, only its cells."""

        self._send: Final = send
        self._tell: Final = changed or _nothing
        self._connected: Final[set[str]] = set()
        self._located: Final[set[str]] = set()
        self._unwritten: set[str] = set()
        self._written = memory
        self._unwritten_regions: bytes | None = None
        self._written_named: frozenset[str] = frozenset()
        self._told = False
        self._told_of = 0
        observed = observers or Observers()
        self._link: Final = HandedLink(INTERFACE, NAME, observed, self._carry)
        self._memory: Final = _decoded(memory, Memory, "plans") if memory else Memory()
        self._regional: Final = RegionalSchemes(_readable(regions) if regions else ())
        self._coordinator: Final = TransitionCoordinator(INTERFACE)
        settings = BrokerSettings(plan.initial, grace=plan.grace)
        self._broker: Final = GradualBroker(plan.territory, settings, self._memory, self._note)
        streams = RandomStreams(clock.now())
        ports = Ports(clock, timers, {INTERFACE: self._link}, None, streams.stream, observed)
        self._host: Final = Host(NAME, ports, [HostEngine(), self._coordinator, self._broker, self._regional])
        self._host.start()
        self._plan: Final = plan
        self._rules: RuledSchemes | None = None
        self._rule_set = tuple(plan.rules)

    def start(self) -> None:
        """All that an earlier life left was restored: go on, and let rules decide from now on."""
        before = self._memory.clock
        self._broker.exchange.go_on()
        if self._memory.clock > before:
            self._note(self._broker.clients)
        if self._rule_set:
            self._rules = RuledSchemes(self._rule_set, self._plan.initial)
            self._rules.start(self._host)

    def stop(self) -> None:
        if self._rules is not None:
            self._rules.stop()
        self._link.switch(on=False)

    # Connections

    def connected(self, client: str, *, session_present: bool) -> None:
        """A client that speaks schemes has connected; one without a session begins anew."""
        if not session_present:
            self.forget(client)
        self._connected.add(client)
        self._broker.greet(client)

    def disconnected(self, client: str) -> None:
        """Nothing is sent to it until it is back: then it says itself where it stands."""
        self._connected.discard(client)

    def forget(self, client: str) -> None:
        """Its session is over."""
        for known in (self._connected, self._located, self._unwritten):
            known.discard(client)
        self._regional.forget(client)
        if client in self._broker.exchange:
            self._broker.schemes.forget(client)

    def receive(self, client: str, payload: bytes) -> None:
        """What a client has published to ``$nearcast/scheme``; raises ``InvalidInput`` or ``QuotaExceeded`` if it cannot be."""
        endpoint, message = self._link.read(payload)
        check(message, self._coordinator.clock)
        endpoint.receive(client, message)
        context = message.context if isinstance(message, Hello) else message
        match context:
            case ContextUpdate() | AssignmentRequest():
                self._located.add(client)
                self.located(client, Point(context.lat, context.lon))
            case Joining() if client in self._located:
                self._located.discard(client)
                self.located(client, None)

    # Subscriptions and events

    def subscribe(self, client: str, subscription: Subscription) -> None:
        """One with an area around the client; it replaces that of the same id."""
        self._broker.schemes.subscribe(client, subscription)
        self._note([client])

    def unsubscribe(self, client: str, subscription_id: str) -> None:
        self._broker.schemes.unsubscribe(client, subscription_id)
        self._note([client])

    def receivers(self, event: Event, channel: str | None) -> list[str]:
        """Who is interested in the event, each client once; reach and addressing are the caller's business.

        Schemes know positions only as well as they need to: whom a sender wants to reach is judged by who knows more.
        """
        return self._broker.schemes.receivers(event.for_everybody(), channel)

    def position(self, client: str) -> Point | None:
        """Where a client is, as far as its scheme tells."""
        return self._broker.schemes.context_of(client).position if client in self._broker.exchange else None

    def exact_position(self, client: str) -> Point | None:
        """The same where the scheme has every client report as it moves; others let positions grow old, and know cells.

        A client that has not spoken in such a scheme yet was last heard in another one.
        """
        exchange = self._broker.exchange
        if client not in exchange or not _is_exact(exchange.scheme_of(client)):
            return None
        context = self._broker.schemes.context_of(client)
        return context.position if context.clock >= exchange.clock_of(client) else None

    # Transitions

    def transition(self, scheme: MechanismSpec | str, clients: Iterable[str] | None = None) -> None:
        """Bring everybody, or these clients, to that scheme; raises ``InvalidInput``, ``UnknownName`` or ``TransitionFailed``.

        Everybody: there are no regions any more.  A rule, which nobody has just asked for, changes only what holds outside of them.
        These: wherever they are, and whatever rules say, until a later order names them or is for everybody.
        """
        spec = scheme_in(scheme) if isinstance(scheme, str) else scheme
        self._broker.exchange.check(spec)
        some = None if clients is None else list(clients)
        for client in some or ():
            if client not in self._broker.exchange:
                raise UnknownName(f"no client {client!r} takes part in filter schemes")
        if some is not None:
            self._broker.transition(spec, some)
            self._regional.name(client for client in some if self.follows(client))
            self._note(())
            return
        with self._regional.ended():
            self._broker.transition(spec)
        self._note_regions()

    @contextmanager
    def ordered(self, order: str) -> Iterator[None]:
        """What is exchanged meanwhile was asked for by that order, and not by a rule."""
        before, self._broker.order = self._broker.order, order
        try:
            yield
        finally:
            self._broker.order = before

    def transition_in(self, regions: Sequence[Region], elsewhere: MechanismSpec | str | None = None) -> None:
        """Have these schemes in these regions: for those who are there, and for whoever comes, as long as it stays.

        Regions of other names stay as they are; with a scheme for everybody elsewhere, these are all there are.  Raises ``InvalidInput`` or
        ``TransitionFailed``, and then all is as before.
        """
        outside = scheme_in(elsewhere) if isinstance(elsewhere, str) else elsewhere
        for spec in {region.scheme for region in regions} | ({outside} if outside is not None else set()):
            self._broker.exchange.check(spec)
        self._regional.plan(regions, outside)
        self._note_regions()

    def check(self, scheme: str) -> None:
        """Raises ``InvalidInput`` for a scheme that there is not, or that cannot be on this ground."""
        self._broker.exchange.check(scheme_in(scheme))

    def new_transitions(self) -> list[TransitionDone]:
        """Those since this was last asked for, oldest first; of very many only the last."""
        done = self._broker.transitions_done
        new, self._told_of = done - self._told_of, done
        return self.latest(new)

    def latest(self, most: int) -> list[TransitionDone]:
        """The last transitions, oldest first; of very many fewer are remembered."""
        done = list(self._broker.transitions)
        return done[max(0, len(done) - most) :]

    @property
    def transitions(self) -> int:
        """Since the broker was started."""
        return self._broker.transitions_done

    def moves(self) -> list[Moved]:
        """Who has changed its scheme because of a region, since this was last asked for."""
        return self._regional.moves()

    def when_moved(self, then: Callable[[], None]) -> None:
        """As soon as the broker has done its part of a transition for everybody; at once if there is none."""
        self._broker.when_moved(then)

    def scheme_of(self, client: str) -> MechanismSpec:
        """To which it belongs, or is about to be brought."""
        return self._broker.scheme_of(client)

    @property
    def territory(self) -> Territory:
        """The ground that schemes cut into channels."""
        return self._plan.territory

    @property
    def initial(self) -> MechanismSpec:
        """What runs when no rule holds."""
        return self._plan.initial

    @property
    def rules(self) -> Sequence[SchemeRule]:
        """Those that decide at present."""
        return self._rule_set

    def change_rules(self, rules: Sequence[SchemeRule]) -> None:
        """Let these decide from now on; raises ``InvalidInput`` for one that cannot be here, and then the others go on.

        If one of the others held and none of these does, the initial scheme runs again.
        """
        for rule in rules:
            self._broker.exchange.check(rule.scheme)
        before = self._rules
        held = before is not None and (before.active or before.settling)
        settling = before is not None and before.settling
        started = RuledSchemes(rules, self._plan.initial, restarted=settling) if rules else None
        self._rules, self._rule_set = started, tuple(rules)
        if before is not None:
            before.stop()
        if started is not None:
            started.start(self._host)
            started.evaluate()
        if held and not (started is not None and (started.active or started.settling)):
            self._broker.transition(self._plan.initial)

    def members(self) -> dict[MechanismSpec, list[ClientContext]]:
        """Of every scheme that somebody is in, what it knows of each: to be read only, and of many not all at once."""
        members: dict[MechanismSpec, list[ClientContext]] = {}
        for spec, half in self._broker.exchange.running():
            if half.contexts:
                members.setdefault(spec, []).extend(half.contexts.values())
        return members

    @property
    def regions(self) -> tuple[Region, ...]:
        """With schemes of their own."""
        return tuple(self._regional.regions)

    def channels_of(self, client: str) -> tuple[str, ...]:
        """Those that a client belongs to; none where its scheme has none."""
        return self._broker.schemes.context_of(client).channels if client in self._broker.exchange else ()

    def takes_part(self, client: str) -> bool:
        """Whether it is in a scheme at all."""
        return client in self._broker.exchange

    def follows(self, client: str) -> bool:
        """Whether plans are for this client: it takes part in schemes, and insists on none."""
        return client in self._broker.exchange and self._broker.exchange.follows(client)

    def status(self) -> SchemesStatus:
        exchange, coordinator = self._broker.exchange, self._coordinator.statistics()
        return SchemesStatus(
            scheme=exchange.scheme,
            groups=exchange.groups(),
            clock=coordinator.clock,
            # Who has not answered an older plan may remain, too.
            waiting=min(len(self._broker.clients), self._broker.remaining + coordinator.waiting),
            overlaps=len(exchange.overlaps),
            transitions=self._broker.transitions_done,
            latest=tuple(self._broker.transitions),
            regions=self.regions,
        )

    def statistics(self) -> SchemesStatistics:
        traffic = list(self._link.traffic())
        return SchemesStatistics(
            connected=len(self._connected),
            schemes=self._broker.schemes.statistics(),
            messages_in=sum(row.messages for row in traffic if row.direction == "received"),
            messages_out=sum(row.messages for row in traffic if row.direction == "sent"),
        )

    # Restarts

    def changes(self) -> SchemeChanges:
        """What has changed since this was last asked for; to be on disk before what caused it is acknowledged."""
        unwritten, self._unwritten = self._unwritten, set()
        memory, written = self.memory_state(), self._written
        regions, self._unwritten_regions = self._unwritten_regions, None
        named, before = self._regional.named, self._written_named
        self._written, self._written_named, self._told = memory, named, False
        known = self._broker.exchange
        return SchemeChanges(
            None if memory == written else memory,
            regions,
            {client: self.state_of(client) for client in sorted(unwritten) if client in known},
            {} if named is before else {client: client in named for client in sorted(named ^ before)},
        )

    def memory_state(self) -> bytes:
        """The plans of this broker: what the constructor takes as ``memory``."""
        return msgspec.msgpack.encode(self._memory)

    def state_of(self, client: str) -> bytes:
        """What is known of a client, its subscriptions apart."""
        return msgspec.msgpack.encode(self._broker.exchange.state_of(client))

    def restore(self, client: str, state: bytes, *, named: bool = False) -> None:
        """Go on with a client of an earlier life, which was brought to its scheme by name perhaps; before ``start``."""
        self._broker.exchange.adopt(client, _decoded(state, ClientState, f"the state of client {client!r}"))
        if named:
            self._regional.name([client])
            self._written_named |= {client}

    def _note_regions(self) -> None:
        self._unwritten_regions = regions_bytes(self._regional.regions)
        self._note(())

    def _note(self, clients: Collection[str]) -> None:
        self._unwritten.update(clients)
        if not self._told:
            self._told = True
            self._tell()

    def _carry(self, client: str, payload: bytes) -> bool:
        if client not in self._connected:
            return False
        self._send(client, payload)
        return True


@lru_cache
def _is_exact(spec: MechanismSpec) -> bool:
    scheme = scheme_of(spec)
    return type(scheme) is Radial and scheme.update == "fix"


def _decoded(data: bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidRecord(f"{what} cannot be read, and is better left out: {error}") from None


def _readable(regions: bytes) -> list[Region]:
    try:
        return regions_in(regions)
    except InvalidRecord as error:  # of another version: everybody is elsewhere until a plan says otherwise
        log.warning("%s", error)
        return []


def _nobody(_client: str, _position: Point | None) -> None:
    """Nobody keeps contexts."""


def _nothing() -> None:
    """Nobody writes anything down."""
