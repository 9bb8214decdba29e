"""A broker of which planners exchange the filter schemes, whatever brings its messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from nearcast.dissemination.broker_settings import BrokerSettings, Memory
from nearcast.dissemination.scheme_broker import SchemeBroker
from nearcast.dissemination.scheme_exchange import SchemeExchange
from nearcast.filtering.messages import ToClient
from nearcast.filtering.scheme import Territory
from nearcast.model.event import Event
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address, Endpoint
from nearcast.transition.specification import MechanismSpec


class PlannedBroker(Component):
    """After ``HostEngine`` and ``TransitionCoordinator`` among the components of its host, before planners, who ask for this class."""

    schemes_type: ClassVar[type[SchemeBroker]] = SchemeBroker

    def __init__(self, territory: Territory, settings: BrokerSettings, memory: Memory, interface: str) -> None:
        self.recovered: Final = bool(memory.plans)
        """Whether it goes on with what it was told in an earlier life."""

        self._memory: Final = memory
        self._territory: Final = territory
        self._settings: Final = settings
        self._interface: Final = interface
        self._host: Host
        self._endpoint: Endpoint
        self.schemes: SchemeBroker

    def start(self, host: Host) -> None:
        self._host = host
        self._endpoint = self._listen(host)
        self.schemes = self.schemes_type(host, self._territory, self._settings, self._memory, self._say, self._deliver)
        host.timers.every(max(self._settings.grace / 4, 0.001), self.schemes.expire)

    # Not abstract, though to be implemented: planners ask their host for this very class.

    def _listen(self, host: Host) -> Endpoint:
        """Take up the link; by this endpoint clients are spoken to."""
        raise NotImplementedError

    def _deliver(self, client: Address, event: Event) -> None:
        """An event has waited for the client, of which too little was known."""
        raise NotImplementedError

    def _say(self, client: Address, message: ToClient) -> None:
        self._endpoint.send(client, message)

    @property
    def exchange(self) -> SchemeExchange:
        """Which schemes there are, and for whom."""
        return self.schemes.exchange

    @property
    def clients(self) -> list[Address]:
        """All that are known, in the order in which they came."""
        return self.exchange.members

    @property
    def scheme(self) -> MechanismSpec:
        """That of newcomers."""
        return self.exchange.scheme

    def scheme_of(self, client: Address) -> MechanismSpec:
        return self.exchange.scheme_of(client)

    def transition(self, scheme: MechanismSpec, clients: Iterable[Address] | None = None) -> None:
        """Bring all clients, or these, to that scheme; raises ``TransitionFailed`` if the broker cannot change."""
        self.exchange.transition(scheme, clients)
