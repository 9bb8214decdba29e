"""Receivers are told by way of gateways (BYPASS.KOM 4.3.4): the broker's part.

Of an event's receivers those are candidates that have registered and are known to be somewhere.  The algorithm in the proxy ``gateways``
says who of them serves whom.  A gateway gets a relay, everybody else nothing; whoever is no candidate gets the event directly.

Where acknowledgements are wanted, members acknowledge to the broker, over the cellular link and many events at a time, and who has not by
a deadline is told directly.  Not to the gateway, which would report who is missing: then it would have to keep state, could fail
with it, and members more than a hop away would need a way back; and the local link, which is the scarce one, would carry a frame for
each copy.  Over the cellular link an acknowledgement costs a few bytes where the event would have cost two hundred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from nearcast.dissemination.gateways.batteries import Batteries
from nearcast.dissemination.gateways.candidate import Candidate, groups
from nearcast.dissemination.gateways.expectations import Expectations
from nearcast.dissemination.gateways.messages import FROM_CLIENT, PORT, Acknowledgement, Registered, Registration, Relay
from nearcast.dissemination.gateways.registry import PROXY, selections
from nearcast.dissemination.gateways.selection import GatewaySelection
from nearcast.dissemination.gateways.settings import GatewaySettings, GatewayStatistics
from nearcast.dissemination.handing_over import HandingOver
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.dissemination.wire import EventMessage
from nearcast.model.geometry import Point, distance
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Host
from nearcast.runtime.observers import Analyzer
from nearcast.runtime.ports import Address, Endpoint
from nearcast.transition.engine import HostEngine
from nearcast.transition.proxy import Proxy


class ByGateways(HandingOver):
    def __init__(self, settings: GatewaySettings | None = None, interface: str = "cellular") -> None:
        self.settings = settings or GatewaySettings()
        """To be replaced, but for what acknowledgements are like, by whoever changes how events spread locally (BYPASS.KOM 5.3.2)."""

        self.addressed: Callable[[Address], bool] = lambda _gateway: self.settings.addressed
        """Whether that gateway sends to each member; to be replaced by whoever changes that in some places and not in others."""

        self._interface: Final = interface
        self._local: Final[dict[Address, Address]] = {}
        """Local addresses of those who have registered."""

        self._renewed: Final[dict[Address, Instant]] = {}
        """When they last did."""

        self._events = self._chosen = self._members = self._told_directly = 0
        self._choices: Analyzer
        self._host: Host
        self._broker: PlannedBroker
        self._directly: Endpoint
        self._endpoint: Endpoint
        self._proxy: Proxy[GatewaySelection]
        self._expected: Expectations
        self._batteries: Batteries

    def start(self, host: Host, broker: PlannedBroker, endpoint: Endpoint) -> None:
        self._host, self._broker, self._directly = host, broker, endpoint
        self._endpoint = host.link(self._interface).open(PORT, self._receive, *FROM_CLIENT)
        self._choices = host.observers.emitter("gateways")
        self._batteries = Batteries(host)
        settings = self.settings
        self._expected = Expectations(host.clock, host.timers, settings.deadline, settings.doubt, self._tell_missed)
        self._proxy = host.component(HostEngine).engine.create_proxy(
            PROXY, GatewaySelection, selections(host.random("gateways")), settings.selection
        )
        host.timers.every(settings.renewed / 3, self._forget_registrations)

    def statistics(self) -> GatewayStatistics:
        return GatewayStatistics(
            registered=len(self._local),
            events=self._events,
            gateways=self._chosen,
            members=self._members,
            directly=self._told_directly,
            acknowledged=self._expected.acknowledged,
            missed=self._expected.missed,
            waiting=len(self._expected),
            doubtful=self._expected.doubts,
        )

    # Clients

    def _receive(self, client: Address, message: Registration | Acknowledgement) -> None:
        if isinstance(message, Acknowledgement):
            self._expected.acknowledge(client, message.events)
            return
        self._local[client], self._renewed[client] = message.local, self._host.now()
        if message.anew:
            self._expected.forget(client)
        settings = self.settings
        window = settings.window if settings.acknowledged else None
        self._endpoint.send(client, Registered(window, settings.unwanted_too))

    def forget(self, client: Address) -> None:
        self._unregister(client)
        self._expected.forget(client)
        self._batteries.forget(client)
        self._proxy.active.forget(client)

    def _unregister(self, client: Address) -> None:
        self._local.pop(client, None)
        self._renewed.pop(client, None)

    def _forget_registrations(self) -> None:
        """Only that: whoever is to acknowledge something, and has not gone, is still to be told if it does not."""
        oldest = self._host.now() - round(self.settings.renewed * MICROSECONDS)
        for client in [client for client, renewed in self._renewed.items() if renewed < oldest]:
            self._unregister(client)

    # Events

    def tell(self, receivers: Sequence[Address], message: EventMessage) -> None:
        served = self._served(receivers, message)
        relayed = {gateway: members for gateway, members in served.items() if members}
        reached = {member for members in relayed.values() for member in members}
        directly = [each for each in receivers if each not in reached and each not in relayed]
        self._told_directly += len(directly)
        self._directly.send_all(directly, message)
        if not relayed:
            return
        self._events += 1
        self._members += len(reached)
        self._pack(message, relayed)
        if self.settings.acknowledged:
            self._expected.expect(message, relayed)

    def _pack(self, message: EventMessage, relayed: dict[Address, tuple[Address, ...]]) -> None:
        alike = []
        for gateway, members in relayed.items():
            if self.addressed(gateway):
                self._endpoint.send(gateway, Relay(message, tuple(self._local[member] for member in members)))
            else:
                alike.append(gateway)
        self._endpoint.send_all(alike, Relay(message))

    def _served(self, receivers: Sequence[Address], message: EventMessage) -> dict[Address, tuple[Address, ...]]:
        """Gateways, and whom each of them is to reach."""
        if message.id in self._expected:
            return {}  # once more, though an answer to the first is still to come: which one it is for could not be told
        served: dict[Address, tuple[Address, ...]] = {}
        candidates = self._candidates(receivers)
        if len(candidates) < 2:
            return served
        for group in groups(candidates, self.settings.most):
            places = {each.address: each.position for each in group}
            for gateway, members in self._proxy.active.select(group, self.settings.count(group)).items():
                served[gateway] = self._in_reach(gateway, members, places)
                self._chosen += 1
                self._choices(
                    self._host.now(), message.id, gateway, len(served[gateway]), len(group), str(self._proxy.spec)
                )
        return served

    def _candidates(self, receivers: Sequence[Address]) -> list[Candidate]:
        settings = self.settings
        oldest = self._host.now() - round(settings.oldest * MICROSECONDS)
        weighs = self._proxy.active.weighs_batteries
        found = []
        for client in receivers:
            if client not in self._local or self._expected.doubtful(client):
                continue
            if settings.schemes is not None and self._broker.scheme_of(client).name not in settings.schemes:
                continue
            known = self._broker.schemes.context_of(client)
            if known.position is not None and known.measured >= oldest:
                battery = self._batteries.of(client) if weighs else None
                found.append(Candidate(client, known.position, known.speed, battery))
        return found

    def _in_reach(
        self, gateway: Address, members: tuple[Address, ...], places: dict[Address, Point]
    ) -> tuple[Address, ...]:
        """Those of them whom it should reach; it is no use to wait for others to be missed."""
        reach = self.settings.reach
        if reach is None:
            return members
        return tuple(member for member in members if distance(places[gateway], places[member]) <= reach)

    def _tell_missed(self, message: EventMessage, missed: Sequence[Address]) -> None:
        self._directly.send_all(missed, message)
