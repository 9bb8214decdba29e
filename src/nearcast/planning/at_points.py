"""Partial transitions by place: whoever comes to an attraction point changes its scheme, whoever leaves it changes back (BYPASS.KOM 6.2.4).

Entering is seen at the broker, from the positions that a client in the open reports; leaving is noticed by the client, whose request
for another channel says so (5.3.2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.filtering.attraction import Zones
from nearcast.model.geometry import Point
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address
from nearcast.transition.plan import Action
from nearcast.transition.specification import MechanismSpec


class SchemesByPlace(Component):
    """After ``PlannedBroker`` among the components of the broker's host."""

    def __init__(self) -> None:
        self._host: Host
        self._broker: PlannedBroker

    def start(self, host: Host) -> None:
        self._host = host
        self._broker = host.component(PlannedBroker)
        self._broker.schemes.placed = self._changed

    @abstractmethod
    def _right(self, position: Point, running: MechanismSpec) -> MechanismSpec:
        """The scheme for a client in that place, which is in that scheme now."""

    def _changed(self, client: Address, position: Point) -> None:
        """It says that it is there."""
        exchange = self._broker.exchange
        running = self._broker.scheme_of(client)
        right = self._right(position, running)
        if running != right and exchange.follows(client):
            # Not by the broker itself: it would count the step of one client as one of its transitions.
            exchange.transition(right, [client], self._also(client, right), self._place(client))
            self._moved(client, position, running, right)

    def _also(self, _client: Address, _right: MechanismSpec) -> Sequence[Action]:
        """What else the client is to do when it comes to that scheme."""
        return ()

    def _place(self, _client: Address) -> str:
        """Where its plan is for; nowhere in particular, unless others there are to hear of it."""
        return ""

    def _moved(self, client: Address, position: Point | None, before: MechanismSpec, after: MechanismSpec) -> None:
        """It has come, or gone; none: it is not known where it is."""


class TransitionsAtPoints(SchemesByPlace):
    """One scheme at all points, another outside."""

    def __init__(self, zones: Zones, inside: MechanismSpec, outside: MechanismSpec) -> None:
        super().__init__()
        self._zones: Final = zones
        self._inside: Final = inside
        self._outside: Final = outside

    def _right(self, position: Point, _running: MechanismSpec) -> MechanismSpec:
        return self._inside if self._zones.at(position) else self._outside
