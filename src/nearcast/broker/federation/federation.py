"""A broker's part in a federation: the overlay on a live host, and what the broker has to do with it."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from mqtt5 import PublishPacket

from nearcast.broker.federation.acquaintances import TABLE, Acquaintances
from nearcast.broker.federation.contexts import ContextReports
from nearcast.broker.federation.custody import Custody
from nearcast.broker.federation.event_ids import TAKEN_BACK, EventIds
from nearcast.broker.federation.events import FederatedEvents
from nearcast.broker.federation.interests import PREFIX as TOPICS
from nearcast.broker.federation.interests import Interests
from nearcast.broker.federation.joining import Joining, objection, shown_address
from nearcast.broker.federation.notices import NoticeBoard
from nearcast.broker.federation.parcels import Done, Parcels
from nearcast.broker.federation.reconsidering import Reconsidering
from nearcast.broker.federation.replicas import Replicas
from nearcast.broker.federation.roaming import PREFIX as CLIENTS
from nearcast.broker.federation.roaming import Roaming
from nearcast.broker.federation.settings import FederationSettings
from nearcast.broker.federation.statistics import FederationStatistics
from nearcast.broker.federation.wire import (
    EVENT,
    KINDS,
    PORT,
    RELAY,
    SECOND_LOOK,
    UNPUBLISH,
    Claim,
    Granted,
    Holding,
    Notice,
    Notices,
    Parcel,
    Released,
    Replica,
    Replicated,
    Stored,
    Summary,
)
from nearcast.broker.federation.withdrawals import Withdrawals
from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.ports import Acknowledge
from nearcast.broker.sessions.session import Session
from nearcast.errors import InvalidInput
from nearcast.journal import Put
from nearcast.journal.entries import key_of
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.reporting import Cells
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.settings import RoutingSettings
from nearcast.overlay.topology.settings import TopologySettings
from nearcast.overlay.topology.spanning_tree import Tree
from nearcast.overlay.topology.topology import Topology
from nearcast.overlay.values.possible import possibly
from nearcast.runtime.host import Component, Host, Ports
from nearcast.runtime.live.addresses import name_of
from nearcast.runtime.live.tcp import Identity, TcpLink
from nearcast.runtime.live.timers import LiveTimers
from nearcast.runtime.messages import Message as Said
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Address, Sending

if TYPE_CHECKING:
    from nearcast.broker.core import Broker

log: Final = logging.getLogger(__name__)
INSTANCE: Final = "instance"
NAME: Final = "name"
INTERFACE: Final = "wired"

EVERY: Final = 1.0
"""Seconds between two looks at what waits."""


class _Exchange(Component):
    """The port on which brokers speak to each other; it follows the tree."""

    def __init__(self, federation: Federation) -> None:
        self._federation: Final = federation

    def start(self, host: Host) -> None:
        self._federation.outlet = host.link(INTERFACE).open(PORT, self._federation.receive, *KINDS).send
        host.component(Topology).follow(self._federation)
        host.timers.every(EVERY, self._federation.tick)


class Federation:
    """Everything of it; ``start`` when the broker may be reached."""

    def __init__(self, settings: FederationSettings, broker: Broker) -> None:
        self.settings: Final = settings
        self._secret: Final = settings.secret()
        self._broker: Final = broker
        self._loop: Final = broker.loop
        self._now: Final = broker.clock.now
        journal = broker.journal
        stored = journal.load(TABLE)
        self._instance: Final = stored.get(INSTANCE, b"").decode() or secrets.token_hex(16)
        self.name: Final = settings.name or stored.get(NAME, b"").decode() or f"broker-{secrets.token_hex(4)}"
        journal.write(
            puts=[Put(TABLE, INSTANCE, self._instance.encode()), Put(TABLE, NAME, self.name.encode())],
        )
        self._acquaintances: Final = Acquaintances(self.name, journal, stored, self._now(), int(settings.custody))
        self.address: Address = ""
        self._observers: Final = Observers()
        self._link: Final = TcpLink(
            INTERFACE, broker.clock, self._guard, self._observers, partial(objection, self.name, self._instance)
        )
        self._joining: Final = Joining(self._link, self._meet)
        self.outlet: Callable[[Address, Said], Sending] = _nowhere
        """How something is said to another broker."""

        self._knowledge: Final = Reference(
            RoutingSettings(unreachable=settings.custody / MICROSECONDS, tell_unreachable=True), possibly
        )
        self._overlay: Final = Router(self._knowledge, Cells(settings.cell))
        self._topology: Topology
        self._exchange: Final = _Exchange(self)
        self._host: Host | None = None
        self._timers: LiveTimers
        self._hops: dict[str, Address] = {}
        self._addresses: dict[str, Address] = {}
        self._tree: Tree | None = None

        self.custody: Final = Custody(
            journal, self._now, self._send, self, int(settings.custody), int(settings.custody_bytes)
        )
        self.parcels: Final = Parcels(self.name, journal, self.custody, self._send, self._open, self._secure)
        self.board: Final = NoticeBoard(self.name, self._send, self._now, self._heard)
        self.ids: Final = EventIds(journal, self._now, int(settings.remember))
        self.gone: Final = EventIds(journal, self._now, int(settings.custody), TAKEN_BACK)
        sessions = broker.sessions
        self.roaming: Final = Roaming(
            self.name,
            journal,
            self.board,
            self.custody,
            sessions,
            broker.lifecycle,
            broker.presence,
            broker.subscribing,
            broker.access.absent,
            self._addresses_get,
            self._send,
            self.parcels.loose,
            self.changed,
            self._gone,
            lambda key: key in self.gone,
            self._now,
            settings.handover / MICROSECONDS,
            int(settings.forward),
        )
        self.contexts: Final = ContextReports(
            sessions.all,
            broker.presence,
            broker.router,
            self._overlay,
            broker.loop.call_soon,
            self.roaming.left,
        )
        self.interests: Final = Interests(
            self.name, self.board, sessions.all, lambda call: broker.loop.call_later(0.05, call), self.roaming.left
        )
        self.replicas: Final = Replicas(
            self.name,
            settings.replicate,
            journal,
            self.custody,
            self._now,
            self._send,
            lambda: () if self._tree is None else tuple(sorted(self._tree.neighbours)),
            self._addresses_get,
            self._take_over,
        )
        self.events: Final = FederatedEvents(
            self.name,
            journal,
            broker.publishing,
            self.custody,
            self.ids,
            self.gone,
            self.interests,
            self.replicas,
            self._knowledge,
            self._acquaintances,
            self.parcels.loose,
            self.roaming.came,
            self._now,
        )

        self.withdrawals: Final = Withdrawals(
            journal, self.custody, self.replicas, self.gone, broker.temporal.unpublishing, self._others
        )
        self._reconsidering: Final = Reconsidering(
            self.custody,
            self.roaming.reconsider,
            self.events.reconsider,
            lambda look: broker.loop.call_later(0.02, self._guard, look),
            self._now,
        )

    def statistics(self) -> FederationStatistics:
        tree = self._tree
        return FederationStatistics(
            self.name,
            self.address,
            self._topology.links,
            () if tree is None else tuple(sorted(tree.neighbours)),
            () if tree is None else tree.spanning.edges,
            {broker: broker in self._hops for broker in self._others()},
            self.interests.topics,
            len(self.board),
            self.custody.statistics(),
            self.events.statistics(),
            self.roaming.statistics(),
            self.replicas.statistics(),
            self._topology.statistics(),
            self._overlay.statistics(),
            self._link.statistics(),
        )

    # Start and end

    def load(self) -> None:
        """Take up what an earlier life left: sessions are back, their messages are not."""
        self.ids.load()
        self.custody.load()
        self.replicas.load()
        self.withdrawals.load()
        self.roaming.load()

    def resume(self) -> None:
        """Messages are back as well; nobody is let in yet."""
        self.roaming.resume()

    async def start(self) -> tuple[str, int]:
        """Join the others; where they are listened to.  Raises what an operator has to put right."""
        host, port = self.settings.where()
        port = await self._link.listen(host, port)
        self.address = shown_address(self.name, self.settings, host, port)
        self._link.begin(Identity(self.address, self._instance, self._now(), self._secret))
        topology = TopologySettings(
            interface=INTERFACE,
            contacts=self._acquaintances.contacts,
            most_links=self.settings.most_links,
            wanted_links=self.settings.wanted_links,
            heartbeat=self.settings.heartbeat / MICROSECONDS,
            patience=self.settings.patience / MICROSECONDS,
        )
        self._topology = Topology(topology, Point(self.settings.lat, self.settings.lon))
        self._timers = LiveTimers(self._broker.clock, self._guard, self._observers)
        ports = Ports(
            self._broker.clock, self._timers, {INTERFACE: self._link}, None, lambda _name: Random(), self._observers
        )
        self._host = Host(self.address, ports, (self._topology, self._overlay, self._exchange))
        self._host.start()
        for session in self._broker.sessions:
            self.changed(session.client)
        self.interests.say()
        for text in self.settings.join:
            await self._joining.join(text)
        if self.settings.join or topology.contacts:
            await self._joining.settled()
        log.info("this is %s of a federation", self.address)
        return host, port

    async def stop(self) -> None:
        """Leave in good order: neighbours need not find out by themselves."""
        if self._host is not None:
            self._host.stop()
            self._timers.end()
            self._host = None
            self.outlet = _nowhere
        self._reconsidering.end()
        await self._joining.end()
        await self._link.end()

    def _meet(self, other: Address) -> None:
        self._topology.meet(other)

    def _guard(self, callback: Callable[..., None], *arguments: Any) -> None:
        """One message that is wrong does not end the federation."""
        try:
            callback(*arguments)
        except Exception:
            log.exception("something of the federation was not carried out")

    # What clients do here

    def changed(self, client: str) -> None:
        """A client, its subscriptions or its contexts are not what they were."""
        self.contexts.changed(client)
        self.interests.changed(client)

    async def arrive(self, client: str, user: str | None, *, clean: bool) -> None:
        """Before a client gets its session."""
        await self.roaming.arrive(client, user, clean=clean)

    def entered(self, session: Session, *, clean: bool) -> None:
        """It has it."""
        self.roaming.entered(session, clean=clean)

    def forgotten(self, session: Session) -> list[Put]:
        self.changed(session.client)
        return self.roaming.over(session)

    # Events (``publishing.ports.Beyond``)

    def key(self, publisher: Session | None, event: str) -> str:
        return key_of(None if publisher is None else publisher.client, event)

    def outbound(self, event: Event, message: Message, publisher: Session | None, channel: str | None) -> Any:
        return self.events.outbound(event, message, publisher, channel)

    def after(self, publisher: Session, event: str, acknowledge: Acknowledge) -> Acknowledge:
        return self.replicas.again(self.key(publisher, event), acknowledge)

    def came_before(self, publisher: Session, event: str) -> bool:
        return self.events.came_before(publisher, event)

    def pass_on(
        self,
        event: Event,
        message: Message,
        publisher: Session,
        acknowledge: Acknowledge,
        channel: str | None,
        puts: Sequence[Put],
    ) -> None:
        self.events.pass_on(event, message, publisher, acknowledge, channel, puts)

    def plain(self, packet: PublishPacket, topic: str, publisher: Session) -> None:
        self.events.plain(packet, topic, publisher)

    # What other brokers say

    def receive(self, sender: Address, message: Said) -> None:
        match message:
            case Parcel():
                self.parcels.hear(sender, message)
            case Stored():
                self.custody.stored(sender, message)
            case Notices() | Summary():
                self.board.hear(sender, message)
                if self._tree is not None and sender in self._tree.neighbours:
                    self._joining.told()  # contexts came before, on the same link
            case Claim():
                self.roaming.claimed(sender, message)
            case Granted():
                self.roaming.granted(message)
            case Replica():
                self.replicas.hear(sender, message)
            case Replicated():
                self.replicas.replicated(message)
            case Holding():
                self.replicas.asked(sender, message)
            case Released():
                self.replicas.released(message)

    def _open(self, parcel: Parcel, puts: list[Put], done: Done) -> None:
        match parcel.kind:
            case kind if kind == EVENT:
                self.events.arrive(parcel.key, parcel.body, puts, done)
            case kind if kind == SECOND_LOOK:
                self.events.look_again(parcel.key.removesuffix(" again"), parcel.body, puts, done)
            case kind if kind == RELAY:
                self.roaming.relayed(parcel.body, puts, done)
            case kind if kind == UNPUBLISH:
                self.withdrawals.arrive(parcel.body, puts, done)
            case kind:
                log.warning("a parcel of kind %r is not understood, and given up", kind)
                self._broker.journal.write(puts=puts, then=done)

    def _secure(self, parcel: Parcel, others: Sequence[str], then: Callable[[], object]) -> None:
        if parcel.kind == EVENT:
            self.replicas.secure(parcel.key, parcel.body, others, then)
        else:
            then()

    def _send(self, to: Address, message: Said) -> Sending:
        return self.outlet(to, message)

    def _heard(self, notice: Notice) -> None:
        if notice.key.startswith(TOPICS):
            broker = notice.key.removeprefix(TOPICS)
            if not notice.value and broker in self._hops:
                return  # forgotten, as far as others know: it will contradict
            self.interests.heard(notice)
            if not notice.value and broker != self.name:
                self._let_go(broker)
        elif notice.key.startswith(CLIENTS):
            self.roaming.heard(notice)

    def _take_over(self, key: str, body: bytes, puts: list[Put], done: Done) -> None:
        self.events.look_again(key, body, puts, done)

    def _others(self) -> list[str]:
        return sorted({*self.interests.brokers, *self._acquaintances})

    # Brokers that will not come back

    def forget(self, broker: str) -> int:
        """All brokers are to give up what they keep for that one; how many parcels that were here."""
        if broker in self._hops:
            raise InvalidInput(f"{broker} is in reach; stop it first, then nothing is kept for it any more")
        if broker == self.name or not (self.interests.knows(broker) or broker in self._acquaintances.addresses):
            raise InvalidInput(
                f"no other broker named {broker!r} is known here; `nearcast federation` shows all of them"
            )
        before = self.custody.statistics().expired
        self.roaming.abandon(broker)
        self._heard(self.board.post(TOPICS + broker, b""))
        return self.custody.statistics().expired - before

    def _let_go(self, broker: str) -> None:
        lost = self.custody.give_up(broker)
        self._acquaintances.forget(broker)
        for origin in self._knowledge.unreachable:
            if name_of(origin) == broker:
                self._knowledge.forget(origin)
        log.warning("%s is forgotten; %d parcels that waited for it are given up", broker, lost)

    # The tree

    def hop(self, broker: str) -> Address | None:
        return self._hops.get(broker)

    def _addresses_get(self, broker: str) -> Address | None:
        return self._addresses.get(broker)

    def tree_changed(self, tree: Tree) -> None:
        self._tree = tree
        self._addresses = {name_of(router): router for router in tree.routers if router != self.address}
        self._hops = {
            name: hop for name, router in self._addresses.items() if (hop := tree.next_hop(router)) is not None
        }
        log.info("the federation has %d brokers in reach; neighbours: %s", len(tree.routers), _listed(tree.neighbours))
        self._acquaintances.reached(self._addresses, self._now())
        self.board.tree_changed(tree.neighbours)
        self.custody.tree_changed()

    def joined(self, neighbour: Address) -> None:
        self.board.joined(neighbour)
        self.custody.joined(neighbour)

    def left(self, neighbour: Address) -> None:
        """What it did not confirm goes another way, or waits."""

    # From time to time

    def _gone(self, before: str, to: str) -> None:
        self._reconsidering.gone(before, to)

    def tick(self) -> None:
        self.board.tick()
        self.roaming.tick()
        self.custody.tick()
        self.replicas.tick()
        self._reconsidering.tick()
        self.ids.tidy()
        self.gone.tidy()


def _listed(addresses: frozenset[Address]) -> str:
    return ", ".join(sorted(map(name_of, addresses))) or "none"


def _nowhere(_to: Address, _message: Said) -> Sending:
    return Sending.DROPPED
