"""Partial transitions by place: whoever comes to an attraction point changes its scheme, whoever leaves it changes back (BYPASS.KOM 6.2.4).

Entering is seen at the broker, from the positions that a client in the open reports; leaving is noticed by the client, whose request
for another channel says so (5.3.2).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.context import ClientContext
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec

MARGIN: Final = 0.1
"""Of its radius: so far from a region a client must be to have left it.  Else whoever stands at the border would change with every fix."""


class SchemesByPlace(Component):
    """After ``CloudBroker`` among the components of the broker's host."""

    def __init__(self) -> None:
        self._host: Host
        self._broker: CloudBroker

    def start(self, host: Host) -> None:
        self._host = host
        self._broker = host.component(CloudBroker)
        self._broker.watch = self._changed

    def _right(self, position: Point, running: MechanismSpec) -> MechanismSpec:
        """The scheme for a client in that place, which is in that scheme now."""
        raise NotImplementedError

    def _changed(self, client: Address, context: ClientContext) -> None:
        if context.position is None:
            return
        schemes = self._broker.schemes
        running = schemes.scheme_of(client)
        right = self._right(context.position, running)
        if running != right and schemes.follows(client):
            # Not by the broker itself: it would count the step of one client as one of its transitions.
            schemes.transition(right, [client])
            self._moved(client, running, right)

    def _moved(self, client: Address, before: MechanismSpec, after: MechanismSpec) -> None:
        """It has come, or gone."""


class TransitionsAtPoints(SchemesByPlace):
    """One scheme at all points, another outside."""

    def __init__(self, zones: Zones, inside: MechanismSpec, outside: MechanismSpec) -> None:
        super().__init__()
        self._zones: Final = zones
        self._inside: Final = inside
        self._outside: Final = outside

    def _right(self, position: Point, _running: MechanismSpec) -> MechanismSpec:
        return self._inside if self._zones.at(position) else self._outside


@dataclass(frozen=True, slots=True)
class Region:
    """A scheme for whoever is there."""

    zone: Zone
    scheme: MechanismSpec
    plan: str
    """Whose idea it was."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A client that has changed its scheme because of where it is."""

    time: Instant
    client: Address
    before: MechanismSpec
    after: MechanismSpec
    plan: str | None
    """Of the region; none for who came out of one."""


class RegionalSchemes(SchemesByPlace):
    """Regions that come and go while the broker runs, each with its scheme; elsewhere it is that of newcomers.

    Where regions overlap, the first by name decides.  Outside of them only those change who are in the scheme of a region: others may have
    been brought to a scheme of their own.
    """

    def __init__(self, regions: Iterable[Region] = ()) -> None:
        super().__init__()
        self._regions: dict[str, Region] = {}
        self._zones = self._around = Zones(())
        self._schemes: set[MechanismSpec] = set()
        """Those that regions have, or had until they got another one."""

        self._moves: list[Moved] = []
        self._keep(regions)

    @property
    def regions(self) -> list[Region]:
        return list(self._regions.values())

    def moves(self) -> list[Moved]:
        """Those since this was last asked for."""
        moves, self._moves = self._moves, []
        return moves

    def plan(self, regions: Iterable[Region]) -> None:
        """From now on these, and those of other names as before; whoever is known to be in one changes at once.

        Raises ``TransitionFailed`` if the broker cannot change; then everything is as before.
        """
        before = self.regions
        self._keep([*before, *regions])
        try:
            self._change_all()
        except Exception:
            self._keep(before)
            raise

    def end(self) -> None:
        """There are no regions any more; who was in one is left in its scheme."""
        self._keep(())
        self._schemes = set()

    def _keep(self, regions: Iterable[Region]) -> None:
        self._regions = {region.zone.name: region for region in regions}
        self._schemes |= {region.scheme for region in self._regions.values()}
        self._zones = Zones(region.zone for region in self._regions.values())
        self._around = Zones(zone.extended(MARGIN * zone.radius) for zone in self._zones)

    def _change_all(self) -> None:
        """One transition for all that come to the same scheme."""
        schemes, changing = self._broker.schemes, dict[MechanismSpec, dict[Address, MechanismSpec]]()
        for client in self._broker.clients:
            position, running = schemes.context_of(client).position, schemes.scheme_of(client)
            right = running if position is None else self._right(position, running)
            if right != running and schemes.follows(client):
                changing.setdefault(right, {})[client] = running
        for scheme, clients in changing.items():
            self._broker.transition(scheme, clients)
            for client, running in clients.items():
                self._moved(client, running, scheme)

    def _changed(self, client: Address, context: ClientContext) -> None:
        if self._regions:  # else every report of everybody would be looked at for nothing
            super()._changed(client, context)

    def _right(self, position: Point, running: MechanismSpec) -> MechanismSpec:
        inside = self._zones.at(position)
        if inside:
            return self._regions[inside[0]].scheme
        near = any(self._regions[name].scheme == running for name in self._around.at(position))
        return self._broker.scheme if running in self._schemes and not near else running

    def _moved(self, client: Address, before: MechanismSpec, after: MechanismSpec) -> None:
        position = self._broker.schemes.context_of(client).position
        inside = self._zones.at(position) if position is not None else ()
        plan = self._regions[inside[0]].plan if inside else None
        self._moves.append(Moved(self._host.now(), client, before, after, plan))
