"""Events from mouth to mouth, one hop: whoever is in radio range hears it and checks for itself (BYPASS.KOM 4.3.1, BROADCAST).

Subscriptions stay where they are; nothing but events is ever sent.
"""

from __future__ import annotations

from typing import Final

from nearcast.dissemination.carrier import Carrier
from nearcast.dissemination.wire import EventMessage, event_in, message_of
from nearcast.model.event import Event
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address, Endpoint

PORT: Final = 2
HOPS: Final = 1


class Broadcast(Carrier):
    """All there is: every host is alike."""

    def __init__(self, interface: str = "wifi") -> None:
        self._interface: Final = interface
        self._endpoint: Endpoint

    def start(self, host: Host) -> None:
        self._endpoint = host.link(self._interface).open(PORT, self._receive, EventMessage)

    def carry(self, event: Event, *, local: bool) -> None:
        self._endpoint.broadcast(message_of(event, local=local))

    def _receive(self, _sender: Address, message: EventMessage) -> None:
        self.inbox.receive(event_in(message), self._interface, HOPS)
