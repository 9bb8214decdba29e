"""The local link of a host with several radios: one of them is used, and which one is a mechanism that can be exchanged (BYPASS.KOM 4.3).

*Make before break.*  A host that changes opens the new transport at once and goes on over the one before for a grace period: it listens on both
and says everything on both.  So whoever has not changed yet still hears it, and is heard.  What comes twice by that is handed over once, if its sender
has the same address on both (live it has not: there the inbox is what makes it one).

*Self-healing.*  Who has changed says so on all its transports (``TransportMark``): at once, every second of the grace period, and every
now and then afterwards, for those who come by later and listen elsewhere.  Of two hosts with different plans the one with the newer
one has been told of some plan, so it speaks; and it speaks where the other one listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from nearcast.dissemination.transport.messages import PORT, TransportMark
from nearcast.dissemination.transport.registry import Transport, transport_of
from nearcast.dissemination.transport.twins import Twins
from nearcast.errors import InvalidInput
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable, Endpoint, Link, Receive, Repeated, Sending
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.engine import HostEngine
from nearcast.transition.goal import Goal
from nearcast.transition.healing import HealingStatistics, SelfHealing
from nearcast.transition.mechanism import Mechanism
from nearcast.transition.plan import PlanId
from nearcast.transition.proxy import Proxy
from nearcast.transition.specification import NULL, MechanismSpec

TRANSPORT: Final = "transport"
"""The proxy: plans call it by that."""

REPEAT: Final = 1.0
"""Seconds between announcements during the grace period."""

HESITATION: Final = 0.05
"""Seconds: who hears an announcement gets it at one instant, and would answer at that instant (RFC 5148)."""


class Use(Mechanism):
    """The API: one of the links is used as long as it runs.  What is sent goes through ``LocalLink``."""


class UseOf(Use):
    """Of a link that there is."""

    def __init__(self, transport: Transport, link: LocalLink) -> None:
        self._transport: Final = transport
        self._link: Final = link

    def start_mechanism(self) -> None:
        self._link.use(self._transport)

    def stop_mechanism(self) -> None:
        self._link.release(self._transport.interface)


@dataclass(frozen=True, slots=True)
class TransportStatistics:
    transport: str
    overlapping: tuple[str, ...]
    """Interfaces that are still used beside it."""

    announced: int
    twins: int
    """Messages that came over two of them, and were handed over once."""

    healing: HealingStatistics


class SwitchedPort(Endpoint):
    """A port that is open on whatever links are in use."""

    def __init__(self, board: LocalLink, port: int, receive: Receive, kinds: tuple[type[Message], ...]) -> None:
        self._board: Final = board
        self._port: Final = port
        self._receive: Final = receive
        self._kinds: Final = kinds
        self._open: Final[dict[str, tuple[Endpoint, Repeated]]] = {}
        self._unread = 0
        self._closed = False
        self._twins: Final = Twins()
        self.twins = 0

    def attach(self, link: Link) -> None:
        if link.interface not in self._open and not self._closed:
            endpoint = link.open(self._port, partial(self._arrived, link.interface), *self._kinds)
            self._open[link.interface] = endpoint, endpoint.repeater()

    def detach(self, interface: str) -> None:
        endpoint, _ = self._open.pop(interface, (None, None))
        if endpoint is not None:
            self._unread += endpoint.unread
            endpoint.close()
        if len(self._open) < 2:
            self._twins.clear()

    def send(self, to: Address, message: Message) -> Sending:
        return self._over_all(lambda endpoint: endpoint.send(to, message))

    def broadcast(self, message: Message) -> Sending:
        return self._over_all(lambda endpoint: endpoint.broadcast(message))

    def repeater(self) -> Repeated:
        return self._repeated

    def attend(self) -> None:
        for endpoint, _ in self._open.values():
            endpoint.attend()

    @property
    def unread(self) -> int:
        return self._unread + sum(endpoint.unread for endpoint, _ in self._open.values())

    def close(self) -> None:
        self._closed = True
        for interface in list(self._open):
            self.detach(interface)
        self._board.closed(self._port)

    def _over_all(self, say: Callable[[Endpoint], Sending]) -> Sending:
        """The answer is that of the transport that stays."""
        sent = Sending.DROPPED
        for interface, (endpoint, _) in list(self._open.items()):
            outcome = say(endpoint)
            if interface == self._board.interface:
                sent = outcome
        return sent

    def _repeated(self, name: Any) -> None:
        # While there are two of them, copies are told apart here: all are needed.
        if len(self._open) == 1:
            ((_, repeated),) = self._open.values()
            repeated(name)

    def _arrived(self, interface: str, sender: Address, message: Message) -> None:
        if len(self._open) > 1 and self._twins.second(interface, sender, message, self._board.now()):
            self.twins += 1
        else:
            self._receive(sender, message)


class LocalLink(Link):
    """The links in use, as one."""

    local = True

    def __init__(self, host: Host) -> None:
        self.interface = ""
        """Of the transport that is used, not of one that only goes on for a while; so is ``address``."""

        self.address = host.name
        self._host: Final = host
        self._in_use: Final[dict[str, Link]] = {}
        self._ending: Final[dict[str, Cancellable]] = {}
        self._ports: Final[dict[int, SwitchedPort]] = {}
        self._grace = 0.0

    @property
    def overlapping(self) -> tuple[str, ...]:
        return tuple(self._ending)

    @property
    def twins(self) -> int:
        return sum(port.twins for port in self._ports.values())

    def open(self, port: int, receive: Receive, *kinds: type[Message]) -> Endpoint:
        if port in self._ports:
            raise InvalidInput(f"port {port} of the local link is open already on host {self._host.name!r}")
        opened = self._ports[port] = SwitchedPort(self, port, receive, kinds)
        for link in self._in_use.values():
            opened.attach(link)
        return opened

    def now(self) -> Instant:
        return self._host.now()

    def uses(self, interface: str) -> bool:
        return interface in self._in_use

    def closed(self, port: int) -> None:
        self._ports.pop(port, None)

    def use(self, transport: Transport) -> None:
        link = self._host.link(transport.interface)
        if not link.local:
            raise InvalidInput(f"{link.interface} reaches hosts by address only; it is no local transport")
        try:
            for port in self._ports.values():
                port.attach(link)
        except InvalidInput:  # somebody else has such a port there; then everything stays as it was
            if link.interface not in self._in_use:
                for port in self._ports.values():
                    port.detach(link.interface)
            raise
        pending = self._ending.pop(link.interface, None)
        if pending is not None:  # back before its grace period was over
            pending.cancel()
        self._in_use[link.interface] = link
        self.interface, self.address, self._grace = link.interface, link.address, transport.grace

    def release(self, interface: str) -> None:
        """It is not used any more, after the grace period that its successor asks for; one over the same link goes on."""
        if interface != self.interface and interface in self._in_use and interface not in self._ending:
            self._ending[interface] = self._host.timers.after(self._grace, partial(self._end, interface))

    def end(self) -> None:
        """Use nothing."""
        self.interface = ""
        for interface in list(self._in_use):
            self._end(interface)

    def _end(self, interface: str) -> None:
        timer = self._ending.pop(interface, None)
        if timer is not None:
            timer.cancel()
        del self._in_use[interface]
        for port in self._ports.values():
            port.detach(interface)


class LocalTransport(Component):
    """After ``HostEngine`` and the ``TransitionAgent`` if there is one, before whatever uses the link (``local_link``)."""

    def __init__(
        self,
        transport: MechanismSpec,
        interfaces: tuple[str, ...] = ("wifi", "bluetooth"),
        *,
        self_healing: bool = True,
    ) -> None:
        """``interfaces`` are the local links of the host: on all of them it tells those who come by of a newer plan."""
        self._first: Final = transport
        self._interfaces: Final = interfaces
        self._heals: Final = self_healing
        self._announced = 0
        self._until = 0
        self._timer: Cancellable | None = None
        self.link: LocalLink
        self._host: Host
        self._random: Random
        self._endpoint: Endpoint
        self._goal: Goal
        self._healing: SelfHealing
        self._proxy: Proxy[Use]

    def start(self, host: Host) -> None:
        self._host = host
        self._random = host.random("transport")
        for interface in self._interfaces:
            host.link(interface)  # whoever has no such link hears of it now, not when there is something to announce
        self.link = LocalLink(host)
        engine = host.component(HostEngine).engine
        agents = [component for component in host.components if isinstance(component, TransitionAgent)]
        self._goal = agents[0].goal if agents else Goal()
        for agent in agents:
            agent.after(TRANSPORT, self._announce_soon)
        self._proxy = engine.create_proxy(TRANSPORT, Use, self._made, self._first)
        self._proxy.changed = self._changed
        self._healing = SelfHealing(engine, TRANSPORT, self._goal)
        self._endpoint = self.link.open(PORT, self._receive, TransportMark)

    @property
    def running(self) -> MechanismSpec:
        return self._proxy.spec

    def initiate(self, transport: MechanismSpec) -> PlanId:
        """Change to that transport, and have it spread from here."""
        plan = self._healing.initiate(transport, self._host.name)
        self._announce_soon()
        return plan

    def statistics(self) -> TransportStatistics:
        return TransportStatistics(
            transport=str(self._proxy.spec),
            overlapping=self.link.overlapping,
            announced=self._announced,
            twins=self.link.twins,
            healing=self._healing.statistics(),
        )

    def _made(self, spec: MechanismSpec) -> Use:
        transport = transport_of(spec)
        self._host.link(transport.interface)  # whoever does not have it does not change
        return UseOf(transport, self.link)

    def _changed(self) -> None:
        if self._proxy.spec == NULL:
            self.link.end()

    def _receive(self, _sender: Address, message: TransportMark) -> None:
        if not self._heals or message.transport == NULL:  # who uses nothing says nothing
            return
        before = self._goal.newest(TRANSPORT)
        self._healing.incoming(message.transport, message.clock, message.initiator)
        if self._goal.newest(TRANSPORT) != before:
            # Also if it is the transport that is used already: others must hear of the newer plan.
            self._announce_soon()

    def _announce_soon(self) -> None:
        """There is a newer plan."""
        if self._timer is not None:
            self._timer.cancel()
        if self._heals and self._proxy.spec != NULL:
            self._until = self._host.now() + round(transport_of(self._proxy.spec).grace * MICROSECONDS)
            self._timer = self._host.timers.after(self._random.uniform(0.0, HESITATION), self._announce)

    def _announce(self) -> None:
        spec, clock, initiator = self._healing.outgoing()
        if spec == NULL:
            return
        mark = TransportMark(spec, clock, initiator)
        self._endpoint.broadcast(mark)
        self._announced += 1
        for interface in self._interfaces:
            if not self.link.uses(interface):
                # Nobody listens there: the radio is switched on for this one message.
                there = self._host.link(interface).open(PORT, self._receive, TransportMark)
                there.broadcast(mark)
                there.close()
        pause = REPEAT if self._host.now() < self._until else transport_of(spec).reminder
        self._timer = self._host.timers.after(pause * self._random.uniform(0.9, 1.1), self._announce)


def local_link(host: Host, interface: str) -> Link:
    """What a mechanism of this host uses to speak to those nearby: the link of that name, or what stands for it."""
    found = [component for component in host.components if isinstance(component, LocalTransport)]
    return found[0].link if found else host.link(interface)
