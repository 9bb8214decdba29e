"""Events from host to host: what is the same whatever mechanism spreads them (BYPASS.KOM 4.3.1, 4.3.3).

A host checks for itself what it hears; subscriptions are never sent.  *Geofencing*: an event that happened where its publisher was
is sent on only by hosts one of whose own subscriptions it matches.  *Self-healing*: every message says which mechanism its sender
runs, by which plan, and whoever hears of a newer plan follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from sys import intern
from typing import ClassVar, Final

from nearcast.dissemination.adhoc.messages import AdHocEvents, Carried, Hello, Mark, mark_of
from nearcast.dissemination.adhoc.registry import spreading
from nearcast.dissemination.adhoc.spreading import Air, Spreading, Tally
from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.inbox import DELIVERED, DUPLICATE
from nearcast.dissemination.transport.local_link import local_link
from nearcast.dissemination.wire import EventMessage, event_in, message_of
from nearcast.errors import InvalidInput
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address, Endpoint, Link, Repeated, Sending
from nearcast.runtime.recent import Recent
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.goal import Goal
from nearcast.transition.healing import HealingStatistics, SelfHealing
from nearcast.transition.plan import PlanId
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import NULL, MechanismSpec

LOCAL: Final = "lc"
"""The proxy for events that hosts publish to those around them; another one, of gateways, has another name and port."""

PORT: Final = 2


@dataclass(frozen=True, slots=True)
class AdHocSettings:
    """How a host takes part."""

    mechanism: MechanismSpec
    """At first; plans change it.  ``NULL``: none."""

    name: str = LOCAL
    """Of the proxy: plans call it by that."""

    port: int = PORT
    """The same for all mechanisms of a proxy, so that hosts hear who runs another one."""

    geofence: bool = True
    self_healing: bool = True
    foreign: bool = True
    """Whether events are taken whose sender runs another mechanism; false: as in the documents, where they are lost."""


@dataclass(frozen=True, slots=True)
class AdHocStatistics:
    mechanism: str
    published: int
    frames: int
    """Sent, with one event or several, not counting hellos."""

    forwarded: int
    """Events of others that were sent on."""

    cancelled: int
    """Events that were not sent on after all, because others had done it."""

    repeated: int
    """Events that were sent on again because two partitions had met."""

    copies: int
    """Heard, beside the first one of each event."""

    fenced: int
    """Events that were not sent on because nobody here wanted them."""

    foreign: int
    """Messages whose sender runs another mechanism, after this host has followed it if it was right."""

    ignored: int
    """Messages that came in while no mechanism ran."""

    malformed: int
    healing: HealingStatistics


class AdHoc(Carrier):
    """After ``HostEngine``, the ``TransitionAgent`` if there is one, and the service among the components of its host."""

    TO_INBOX: ClassVar = True
    """What is heard goes straight to the inbox: on several hosts in one go, where they hear it at once."""

    def __init__(self, settings: AdHocSettings, interface: str = "wifi", path: str | None = None) -> None:
        """The interface is for hosts without a ``LocalTransport``.  ``path`` is how records call this way; the interface's name if not given."""
        self.settings: Final = settings
        self._fence: Final = settings.geofence
        self._interface: Final = interface
        self._path: Final = path
        self._tally: Final = Tally()
        self._known: Final = Recent()
        """What was heard, or sent, this way.  The inbox knows also what came by others: to those around that is news all the same."""

        self._streams: Final[dict[str, Random]] = {}
        self._published = self._copies = self._fenced = self._foreign = self._ignored = self._malformed = 0
        self._mark: Mark
        self._marked = ""
        self._spec: MechanismSpec | None = None
        self._changes = -1
        self._runs = False
        self._alike: Mark | None = None
        """The mark, if what runs is heedless of copies: hosts with the same mark do the same with an event that they hear."""

        self._jointly: bool
        self._host: Host
        self._now: Callable[[], Instant]
        self._link: Link
        self._endpoint: Endpoint
        self._repeated: Repeated
        self._goal: Goal
        self._healing: SelfHealing
        self._proxy: Proxy[Spreading]

    def start(self, host: Host) -> None:
        self._host, self._now = host, host.clock.now
        # Who analyzes sees each row as soon as there is one.
        self._jointly = self.TO_INBOX and not host.observers.analyzing
        engine = host.component(HostEngine).engine
        guarded = engine.silence.guarded
        self._link = local_link(host, self._interface)
        self._endpoint = self._link.open(self.settings.port, self._receive, AdHocEvents, Hello)
        self._endpoint.together(AdHocEvents, self, AdHoc._receive_together)
        self._repeated = self._endpoint.repeater()
        air = Air(
            now=host.clock.now,
            timers=host.timers,
            random=self._random,
            position=host.position,
            broadcast=guarded(self._broadcast),
            send=guarded(self._send),
            greet=guarded(self._greet),
            inside=self._inside,
            tally=self._tally,
        )
        name = self.settings.name
        # Mypy takes an abstract class for no type; an API is one.
        self._proxy = engine.create_proxy(name, Spreading, spreading(air), self.settings.mechanism)
        self._proxy.changed = self._exchanged
        agents = [component for component in host.components if isinstance(component, TransitionAgent)]
        self._goal = agents[0].goal if agents else Goal()
        self._healing = SelfHealing(engine, name, self._goal)

    @property
    def running(self) -> MechanismSpec:
        return self._proxy.spec

    def initiate(self, mechanism: MechanismSpec) -> PlanId:
        """Change to that mechanism, and have it spread from here (BYPASS.KOM 6.3.4)."""
        return self._healing.initiate(mechanism, self._host.name)

    def statistics(self) -> AdHocStatistics:
        tally = self._tally
        return AdHocStatistics(
            mechanism=str(self._proxy.spec),
            published=self._published,
            frames=tally.frames,
            forwarded=tally.forwarded,
            cancelled=tally.cancelled,
            repeated=tally.repeated,
            copies=self._copies + self._endpoint.unread,
            fenced=self._fenced,
            foreign=self._foreign,
            ignored=self._ignored,
            malformed=self._malformed,
            healing=self._healing.statistics(),
        )

    # From here to others

    def carry(self, event: Event, *, local: bool) -> None:
        self.disseminate(message_of(event, local=local))

    def disseminate(self, message: EventMessage, targets: Sequence[Address] = ()) -> None:
        """Send an event to those nearby: one that happened here, or one for which this host is the gateway (4.3.4)."""
        self._current()
        if self._runs:
            self._known.add(message.id, self._now())
            self._published += 1
            self._proxy.active.publish(Carried(message, 1), targets)

    def _broadcast(self, carried: tuple[Carried, ...], place: Point | None = None) -> Sending:
        self._count(carried)
        mark = self._current()
        message = AdHocEvents(mark, carried) if place is None else AdHocEvents(mark, carried, place.lat, place.lon)
        if len(carried) > 1:
            return self._endpoint.broadcast(message)
        first = carried[0]
        name = message.__dict__["repetition"] = self._marked, first.event.id
        sent = self._endpoint.broadcast(message)
        if first.hops == 1 and not self._proxy.active.minds(first.event.id):
            self._repeated(name)
        return sent

    def _send(self, to: Address, carried: Carried) -> Sending:
        self._count((carried,))
        return self._endpoint.send(to, AdHocEvents(self._current(), (carried,)))

    def _greet(self, heard: tuple[str, ...] | None) -> Sending:
        return self._endpoint.broadcast(Hello(self._current(), heard))

    def _count(self, sent: tuple[Carried, ...]) -> None:
        self._tally.frames += 1
        for carried in sent:
            if carried.hops > 1:
                self._tally.forwarded += 1

    def _inside(self, carried: Carried) -> bool:
        if not (self.settings.geofence and carried.event.local):
            return True
        return self.inbox.wants(event_in(carried.event))

    # From others to here

    def _receive(self, sender: Address, message: AdHocEvents | Hello) -> None:
        if self._proxy.spec is not self._spec or self._changes != self._goal.changes:
            self._current()
        if not self._runs:
            # No mechanism, no flag to compare: whoever was told to keep out of it is not drawn in by those who pass by.
            self._ignored += 1
            return
        ours = message.mark is self._mark or message.mark == self._mark
        if not ours and not self._understood(message.mark):
            return
        if isinstance(message, Hello):
            self._proxy.active.greeted(sender, message.heard)
            return
        try:
            place = None if message.lat is None else message.place
        except InvalidInput:
            self._malformed += 1
            return
        for carried in message.carried:
            self._take(carried, place)
        # Whoever runs another mechanism, or by another plan, is heard all the same.
        name = message.__dict__.get("repetition") if ours else None
        if name is not None and not self._proxy.active.minds(name[1]):
            self._repeated(name)

    @staticmethod
    def _receive_together(carriers: Iterable[AdHoc], sender: Address, message: AdHocEvents) -> None:
        """Several hosts hear a message: what ``_receive`` does on each of them, in one go where they do the same."""
        mark, carried = message.mark, message.carried[0]
        name, hops, local = carried.event.id, carried.hops, carried.event.local
        event: Event | None = None
        if len(message.carried) == 1 and message.lat is None:
            with suppress(InvalidInput):  # somebody else's bytes
                event = event_in(carried.event)
        rows: list[object] = []
        emit = None
        try:
            for self in carriers:  # as a method of each of them would see it
                known = self._known
                if self._alike is not mark or self._changes != self._goal.changes or event is None or name in known:
                    if emit is not None:  # in the order in which they hear it
                        emit(rows)
                        rows, emit = [], None
                    self._receive(sender, message)
                    continue
                inbox = self.inbox
                row = inbox.judged(event, self._path or self._link.interface, hops)
                known.add(name, row[0])
                rows += row
                emit = inbox.notification_rows
                outcome = row[4]
                if outcome is DELIVERED or self._passes(outcome, event, local):
                    self._proxy.active.heard(carried, None)
                else:
                    self._fenced += 1
        finally:  # also if somebody who was notified raises: what others got has happened
            if emit is not None:
                emit(rows)

    def _take(self, carried: Carried, place: Point | None) -> None:
        message = carried.event
        if message.id in self._known:
            # Not a row of the records for each: the books of the link count them.
            self._copies += 1
            self._proxy.active.copied(message.id, place)
            return
        try:
            event = event_in(message)
        except InvalidInput:  # somebody else's bytes
            self._malformed += 1
            return
        self._known.add(message.id, self._now())
        if self._hand_over(message, event, carried.hops):
            self._proxy.active.heard(carried, place)
        else:
            self._fenced += 1

    def _hand_over(self, message: EventMessage, event: Event, hops: int) -> bool:
        """Give what was heard for the first time to whom it is for; whether this host may send it on (geofencing)."""
        outcome = self.inbox.receive(event, self._path or self._link.interface, hops)
        return outcome == DELIVERED or self._passes(outcome, event, message.local)

    def _passes(self, outcome: str, event: Event, local: bool) -> bool:
        """Whether what was not delivered here leaves the geofence all the same: it has none, or came another way before."""
        return not (self._fence and local) or (outcome == DUPLICATE and self.inbox.wants(event))

    def _understood(self, mark: Mark) -> bool:
        """A message of a host that runs something else, or by another plan: follow it if its plan is newer."""
        if mark.mechanism == NULL:  # who runs nothing says nothing
            self._malformed += 1
            return False
        if self.settings.self_healing:
            self._healing.incoming(mark.mechanism, mark.clock, mark.initiator)
        if mark.mechanism.name == self._proxy.spec.name:
            return True
        self._foreign += 1
        return self.settings.foreign

    def _current(self) -> Mark:
        """What this host runs, by which plan; made anew only when that has changed."""
        spec = self._proxy.spec
        if spec is not self._spec or self._changes != self._goal.changes:
            self._mark = mark_of(*self._healing.outgoing())
            self._marked = intern(f"{self._mark.mechanism} {self._mark.clock} {self._mark.initiator}")
            self._spec, self._changes = spec, self._goal.changes
            self._runs = spec != NULL
            heedless = self._runs and self._proxy.active.heedless
            self._alike = self._mark if heedless and self._jointly else None
            self._endpoint.once(self._marked if heedless else None)
        return self._mark

    def _exchanged(self) -> None:
        """Another mechanism runs, or the same with another parameter: what it needs to hear is found out anew."""
        self._spec = self._alike = None
        self._endpoint.once(None)
        self._endpoint.attend()

    def _random(self, name: str) -> Random:
        if name not in self._streams:
            self._streams[name] = self._host.random(f"{self.settings.name} {name}")
        return self._streams[name]
