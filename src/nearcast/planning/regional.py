"""Regions with filter schemes of their own, which come and go while a broker runs.

What holds for a client: a plan that names it, until a later plan names it again or is for everybody; else the region that it is in; else
the scheme of newcomers, which rules may change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

from nearcast.dissemination.handed_broker import HandedBroker
from nearcast.errors import TransitionFailed
from nearcast.filtering.attraction import Zone, Zones
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.planning.at_points import SchemesByPlace
from nearcast.runtime.host import Host
from nearcast.runtime.ports import Address
from nearcast.transition.specification import MechanismSpec

log: Final = logging.getLogger(__name__)
MARGIN: Final = 0.1
"""Of its radius: so far from a region a client must be to have left it.  Else whoever stands at the border would change with every fix."""


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

    @classmethod
    def of(cls, regions: Iterable[Region]) -> Self:
        by_name = {region.zone.name: region for region in regions}
        zones = Zones(region.zone for region in by_name.values())
        around = Zones(zone.extended(MARGIN * zone.radius) for zone in zones)
        return cls(by_name, zones, around)

    def changed(self, regions: Iterable[Region]) -> Self:
        """With these; those of other names as before."""
        return self.of([*self.by_name.values(), *regions])


_NOWHERE: Final = _Regions.of(())


@dataclass(frozen=True, slots=True)
class _Known:
    """What was known of a client before something changed."""

    position: Point | None
    running: MechanismSpec


class RegionalSchemes(SchemesByPlace):
    """Who comes to a region and who leaves it; elsewhere the scheme is that of newcomers.

    After ``HandedBroker`` among the components of its host.  Where regions overlap, the first by name decides.
    """

    def __init__(self, regions: Iterable[Region] = ()) -> None:
        super().__init__()
        self.named: frozenset[Address] = frozenset()
        """Those whom a plan has brought to their scheme by name: it holds wherever they are."""

        self._held = _Regions.of(regions)
        self._handed: HandedBroker
        self._moves: list[Moved] = []
        self._warned: set[str] = set()
        """Of what failed; it fails with every report from the same region."""

    def start(self, host: Host) -> None:
        super().start(host)
        self._handed = host.component(HandedBroker)
        self._handed.aside = self._aside

    @property
    def regions(self) -> list[Region]:
        return list(self._held.by_name.values())

    def moves(self) -> list[Moved]:
        """Those since this was last asked for."""
        moves, self._moves = self._moves, []
        return moves

    def name(self, clients: Iterable[Address]) -> None:
        """A plan names these: from now on neither regions nor rules change their scheme."""
        self.named |= frozenset(clients)

    def forget(self, client: Address) -> None:
        """It is gone."""
        if client in self.named:
            self.named -= {client}

    def plan(self, regions: Iterable[Region], elsewhere: MechanismSpec | None = None) -> None:
        """From now on these, and those of other names as before; whoever is known to be in one changes at once.

        With a scheme for everybody elsewhere, these are all there are.  Raises ``TransitionFailed`` if the broker cannot change; then
        everything is as before.
        """
        before, named, default, noted = self._held, self.named, self._broker.scheme, len(self._moves)
        held = before.changed(regions) if elsewhere is None else _Regions.of(regions)
        known = self._all_known()  # now: the scheme elsewhere may forget where people are
        try:
            if elsewhere is not None:
                with self.ended():
                    self._broker.transition(elsewhere)
            self._held = held
            scheme_of = self._broker.scheme_of
            placed = {
                client: each.position
                for client, each in known.items()
                if each.position is not None and client not in self.named
            }
            self._bring({client: self._right(at, scheme_of(client)) for client, at in placed.items()}, known)
        except Exception:
            self._held, self.named = _NOWHERE, frozenset()  # on the way back nobody is kept aside
            self._return(known, default)
            self._held, self.named = before, named
            del self._moves[noted:]
            raise
        self._warned.clear()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """What is done now is for everybody: there are no regions any more, and nobody is named, unless it fails.

        Who was in a region is left in its scheme.
        """
        before = self._held, self.named
        self._held, self.named = _NOWHERE, frozenset()
        try:
            yield
        except Exception:
            self._held, self.named = before
            raise

    def _aside(self) -> Callable[[], None]:
        """Everybody is about to change: by a rule, which is for those elsewhere whom no plan names."""
        known, default = self._all_known() if self._held.by_name or self.named else {}, self._broker.scheme

        def kept(client: Address, each: _Known) -> MechanismSpec | None:
            if client in self.named:
                return each.running
            if each.position is not None:
                return self._here(each.position, each.running)
            # Where positions are forgotten: who is not in the scheme of everybody was seen in a region.
            return each.running if self._held.by_name and each.running != default else None

        def back() -> None:
            right = {client: scheme for client, each in known.items() if (scheme := kept(client, each)) is not None}
            try:
                self._bring(right, known)
            except TransitionFailed as error:
                log.warning("not everybody in a region could be left in its scheme: %s", error)

        return back

    def _all_known(self) -> dict[Address, _Known]:
        schemes = self._broker.schemes
        return {
            client: _Known(schemes.context_of(client).position, self._broker.scheme_of(client))
            for client in self._broker.clients
        }

    def _bring(self, right: Mapping[Address, MechanismSpec], known: Mapping[Address, _Known]) -> None:
        """One transition for all that come to the same scheme."""
        exchange, changing = self._broker.exchange, dict[MechanismSpec, dict[Address, MechanismSpec]]()
        for client, scheme in right.items():
            running = self._broker.scheme_of(client)
            if scheme != running and exchange.follows(client):
                changing.setdefault(scheme, {})[client] = running
        for scheme, clients in changing.items():
            self._handed.transition(scheme, clients, region=self._region(scheme, clients, known))
            for client, running in clients.items():
                self._moved(client, known[client].position, running, scheme)

    def _region(self, scheme: MechanismSpec, clients: Iterable[Address], known: Mapping[Address, _Known]) -> str | None:
        """Because of which region, or regions, these come to that scheme; none: they have come out of one."""
        held, found = self._held, set[str]()
        for client in clients:
            position = known[client].position
            inside = () if position is None else held.zones.at(position)[:1]
            found.update(name for name in inside if held.by_name[name].scheme == scheme)
        return ", ".join(sorted(found)) or None

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
        if (
            not self._held.by_name or client in self.named
        ):  # else every report of everybody would be looked at for nothing
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
        return self._broker.scheme if here is None else here

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
