"""Partial transitions by place: whoever comes to an attraction point changes its scheme, whoever leaves it changes back (BYPASS.KOM 6.2.4).

Entering is seen at the broker, from the positions that a client in the open reports; leaving is noticed by the client, whose request
for another channel says so (5.3.2).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.dissemination.handed_broker import HandedBroker
from nearcast.errors import TransitionFailed
from nearcast.filtering.attraction import Zone, Zones
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.runtime.host import Component, Host
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec

log: Final = logging.getLogger("nearcast.broker")
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
        self._broker.schemes.placed = self._changed

    def _right(self, position: Point, running: MechanismSpec) -> MechanismSpec:
        """The scheme for a client in that place, which is in that scheme now."""
        raise NotImplementedError

    def _changed(self, client: Address, position: Point) -> None:
        """It says that it is there."""
        schemes = self._broker.schemes
        running = schemes.scheme_of(client)
        right = self._right(position, running)
        if running != right and schemes.follows(client):
            # Not by the broker itself: it would count the step of one client as one of its transitions.
            schemes.transition(right, [client])
            self._moved(client, position, running, right)

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


@dataclass(frozen=True, slots=True)
class _Regions:
    """Those of one time, with what follows from them: all of it is made before anything changes."""

    by_name: Mapping[str, Region]
    zones: Zones
    around: Zones
    schemes: frozenset[MechanismSpec]
    """Those that regions have, or had until they got another one."""

    @classmethod
    def of(cls, regions: Iterable[Region], schemes: frozenset[MechanismSpec] = frozenset()) -> Self:
        by_name = {region.zone.name: region for region in regions}
        zones = Zones(region.zone for region in by_name.values())
        around = Zones(zone.extended(MARGIN * zone.radius) for zone in zones)
        return cls(by_name, zones, around, schemes | {region.scheme for region in by_name.values()})

    def changed(self, regions: Iterable[Region]) -> Self:
        """With these; those of other names as before."""
        return self.of([*self.by_name.values(), *regions], self.schemes)


_NOWHERE: Final = _Regions.of(())


@dataclass(frozen=True, slots=True)
class _Known:
    """What was known of a client before something changed."""

    position: Point | None
    running: MechanismSpec


class RegionalSchemes(SchemesByPlace):
    """Regions that come and go while the broker runs, each with its scheme; elsewhere it is that of newcomers.

    After ``HandedBroker`` among the components of its host.  Where regions overlap, the first by name decides.  Outside of them only those
    change who are in the scheme of a region: others may have been brought to a scheme of their own.
    """

    def __init__(self, regions: Iterable[Region] = ()) -> None:
        super().__init__()
        self._held = _Regions.of(regions)
        self._moves: list[Moved] = []
        self._warned: set[str] = set()
        """Of what failed; it fails with every report from the same region."""

    def start(self, host: Host) -> None:
        super().start(host)
        host.component(HandedBroker).aside = self._aside

    @property
    def regions(self) -> list[Region]:
        return list(self._held.by_name.values())

    def moves(self) -> list[Moved]:
        """Those since this was last asked for."""
        moves, self._moves = self._moves, []
        return moves

    def plan(self, regions: Iterable[Region], elsewhere: MechanismSpec | None = None) -> None:
        """From now on these, and those of other names as before; whoever is known to be in one changes at once.

        With a scheme for everybody elsewhere, these are all there are.  Raises ``TransitionFailed`` if the broker cannot change; then
        everything is as before.
        """
        before, default, noted = self._held, self._broker.scheme, len(self._moves)
        held = before.changed(regions) if elsewhere is None else _Regions.of(regions)
        known = self._all_known()  # now: the scheme elsewhere may forget where people are
        try:
            if elsewhere is not None:
                with self.ended():
                    self._broker.transition(elsewhere)
            self._held = held
            scheme_of = self._broker.schemes.scheme_of
            placed = {client: each.position for client, each in known.items() if each.position is not None}
            self._bring({client: self._right(at, scheme_of(client)) for client, at in placed.items()}, known)
        except Exception:
            self._held = _NOWHERE  # on the way back nobody is kept aside
            self._return(known, default)
            self._held = before
            del self._moves[noted:]
            raise
        self._warned.clear()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """There are no regions any more, unless what is done then fails; who was in one is left in its scheme."""
        before, self._held = self._held, _NOWHERE
        try:
            yield
        except Exception:
            self._held = before
            raise

    def _aside(self) -> Callable[[], None]:
        """Everybody is about to change: by a rule, which is for those elsewhere."""
        known, default, held = self._all_known() if self._held.by_name else {}, self._broker.scheme, self._held

        def kept(each: _Known) -> MechanismSpec | None:
            if each.position is not None:
                return self._here(each.position, each.running)
            # Where positions are forgotten: who is in the scheme of a region, and not in that of everybody, was seen there.
            return each.running if each.running in held.schemes - {default} else None

        def back() -> None:
            right = {client: scheme for client, each in known.items() if (scheme := kept(each)) is not None}
            try:
                self._bring(right, known)
            except TransitionFailed as error:
                log.warning("not everybody in a region could be left in its scheme: %s", error)

        return back

    def _all_known(self) -> dict[Address, _Known]:
        schemes = self._broker.schemes
        return {
            client: _Known(schemes.context_of(client).position, schemes.scheme_of(client))
            for client in self._broker.clients
        }

    def _bring(self, right: Mapping[Address, MechanismSpec], known: Mapping[Address, _Known]) -> None:
        """One transition for all that come to the same scheme."""
        schemes, changing = self._broker.schemes, dict[MechanismSpec, dict[Address, MechanismSpec]]()
        for client, scheme in right.items():
            running = schemes.scheme_of(client)
            if scheme != running and schemes.follows(client):
                changing.setdefault(scheme, {})[client] = running
        for scheme, clients in changing.items():
            self._broker.transition(scheme, clients)
            for client, running in clients.items():
                self._moved(client, known[client].position, running, scheme)

    def _return(self, known: Mapping[Address, _Known], default: MechanismSpec) -> None:
        """As it was, as far as that can be."""
        groups = dict[MechanismSpec, list[Address]]()
        for client, each in known.items():
            groups.setdefault(each.running, []).append(client)
        if self._broker.scheme != default:
            with suppress(TransitionFailed):
                self._broker.transition(default)
        for scheme, clients in groups.items():
            with suppress(TransitionFailed):
                self._broker.transition(scheme, clients)

    def _changed(self, client: Address, position: Point) -> None:
        if not self._held.by_name:  # else every report of everybody would be looked at for nothing
            return
        try:
            super()._changed(client, position)
        except TransitionFailed as error:
            # It is not the client's fault, whose report was taken: it stays where it is.
            if str(error) not in self._warned:
                self._warned.add(str(error))
                log.warning("a region's scheme cannot be had, and people there keep theirs: %s", error)

    def _right(self, position: Point, running: MechanismSpec) -> MechanismSpec:
        here = self._here(position, running)
        if here is not None:
            return here
        return self._broker.scheme if running in self._held.schemes else running

    def _here(self, position: Point, running: MechanismSpec) -> MechanismSpec | None:
        """The scheme of the region there, also for who has just left it; none outside."""
        held = self._held
        inside = held.zones.at(position)
        if inside:
            return held.by_name[inside[0]].scheme
        near = any(held.by_name[name].scheme == running for name in held.around.at(position))
        return running if near else None

    def _moved(self, client: Address, position: Point | None, before: MechanismSpec, after: MechanismSpec) -> None:
        by_name = self._held.by_name
        names: Iterable[str] = by_name if position is None else self._held.zones.at(position)
        plan = next((by_name[name].plan for name in names if by_name[name].scheme == after), None)
        self._moves.append(Moved(self._host.now(), client, before, after, plan))
