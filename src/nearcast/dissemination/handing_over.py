"""How the receivers of an event are told of it, once a broker has found them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.dissemination.wire import EventMessage
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address, Endpoint


class HandingOver(ABC):
    """A part of a broker, made with it and started after its schemes."""

    @abstractmethod
    def start(self, host: Host, broker: PlannedBroker, endpoint: Endpoint) -> None:
        """``endpoint`` is where clients listen for events."""

    @abstractmethod
    def tell(self, receivers: Sequence[Address], message: EventMessage) -> None:
        """All of these are to get the event."""

    def forget(self, client: Address) -> None:
        """The client is gone."""


class Directly(HandingOver):
    """Each of them by a message of its own."""

    def __init__(self) -> None:
        self._endpoint: Endpoint

    def start(self, _host: Host, _broker: PlannedBroker, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def tell(self, receivers: Sequence[Address], message: EventMessage) -> None:
        self._endpoint.send_all(receivers, message)
