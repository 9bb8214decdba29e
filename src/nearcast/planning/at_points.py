"""Partial transitions around attraction points: whoever comes to one changes to ATTRACT, whoever leaves it back (BYPASS.KOM 6.2.4).

Entering is seen at the broker, from the positions that a client in the open reports; leaving is noticed by the client, whose request
for another channel says so (5.3.2).
"""

from __future__ import annotations

from typing import Final

from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.filtering.attraction import Zones
from nearcast.filtering.context import ClientContext
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec


class TransitionsAtPoints(Component):
    """After ``CloudBroker`` among the components of the broker's host."""

    def __init__(self, zones: Zones, inside: MechanismSpec, outside: MechanismSpec) -> None:
        self._zones: Final = zones
        self._inside: Final = inside
        self._outside: Final = outside
        self._broker: CloudBroker

    def start(self, host: Host) -> None:
        self._broker = host.component(CloudBroker)
        self._broker.watch = self._changed

    def _changed(self, client: Address, context: ClientContext) -> None:
        if context.position is None:
            return
        right = self._inside if self._zones.at(context.position) else self._outside
        if self._broker.scheme_of(client) != right:
            self._broker.transition(right, [client])
