"""Plans from outside: what a job found best, carried out once however often it is handed in."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from nearcast.broker.on_disk import on_disk
from nearcast.broker.schemes.planners import Planners
from nearcast.broker.schemes.scheming import Scheming
from nearcast.broker.schemes.text import scheme_in
from nearcast.broker.sessions.sessions import Sessions
from nearcast.errors import Denied, InvalidInput, InvalidPlan
from nearcast.filtering.attraction import Zone, Zones
from nearcast.filtering.parameters import Grid
from nearcast.filtering.registry import scheme_of
from nearcast.journal import Journal, Put
from nearcast.model.geometry import HALF_CIRCUMFERENCE, Point
from nearcast.model.time import Instant
from nearcast.planning.regional import Region
from nearcast.planning.signed import PlanSignature
from nearcast.transition.specification import MechanismSpec

log: Final = logging.getLogger(__name__)
CARRIED_OUT: Final = "plans carried out"
"""The table of plans, by their ids, with the instant."""

GATEWAYS: Final = "gateways by region"
MOST_REGIONS: Final = 256
"""Every report of a position is compared with each of them."""


class PlannedRegion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A place and what is around it, such as an attraction point."""

    name: str
    lat: float
    lon: float
    radius: float
    """Metres."""

    def zone(self) -> Zone:
        return Zone(self.name, Point(self.lat, self.lon), self.radius)


class Planned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter scheme for everybody, for some clients or in regions; gateways on or off in regions."""

    plan: str
    """Its id: one plan is carried out once."""

    scheme: str | None = None
    """As in ``EGRID(factor=10)``."""

    clients: list[str] | None = None
    """Virtual identities; none: everybody."""

    regions: list[PlannedRegion] | None = None
    """The scheme is for whoever is there, and as long as it is."""

    elsewhere: str | None = None
    """The scheme outside of these regions, which then are all there are; none: as it is."""

    gateways: Literal["on", "off"] | None = None
    """In these regions."""

    signature: PlanSignature | None = None
    """By a planner; needed where the settings name planners."""


class GatewaySwitch(msgspec.Struct, frozen=True):
    """What was last planned for the gateways of a region."""

    region: PlannedRegion
    on: bool


@dataclass(slots=True, eq=False, repr=False)
class Plans:
    journal: Journal
    sessions: Sessions
    scheming: Scheming
    now: Callable[[], Instant]
    planners: Planners
    gateways: dict[str, GatewaySwitch] = field(init=False)
    """By the names of regions.  Kept for whoever runs gateways: the broker itself has none."""

    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.gateways = dict(_readable(self.journal.load(GATEWAYS)))

    async def carry_out(self, plans: Sequence[Planned]) -> Counter[str]:
        """Those that were not carried out yet, in their order, up to one that cannot be."""
        for each in plans:
            check(each)
        for each in plans:  # nothing of what came together is carried out if one of them is not to be believed
            try:
                self.planners.check(each)
            except Denied as error:
                log.warning("a plan was refused: %s", error)
                raise
        async with self._turn:
            known = await asyncio.to_thread(self.journal.known, CARRIED_OUT, [each.plan for each in plans])
            for each in plans:
                if each.plan not in known:
                    self._check_here(each)
            done: dict[str, str] = {}
            try:
                for each in plans:
                    if each.plan not in known | set(done):
                        done[each.plan] = self._carry_out(each)
            finally:
                # That they are done is on disk, behind what they did.
                at = self.now().to_bytes(8, "big")
                await on_disk(self.journal, puts=[Put(CARRIED_OUT, plan, at) for plan in done])
            repeated = len(plans) - len(done)
            if repeated:
                log.info("%d plans were carried out before, and nothing was done for them", repeated)
            return Counter(done.values()) + Counter({"repeated": repeated})

    def _check_here(self, planned: Planned) -> None:
        """Raises ``InvalidPlan`` for one that this broker cannot carry out on its ground."""
        for scheme in (planned.scheme, planned.elsewhere):
            if scheme is not None:
                try:
                    self.scheming.live.check(scheme)
                except InvalidInput as error:
                    raise InvalidPlan(f"plan {planned.plan!r:.60}: {scheme} cannot run here: {error}") from None

    def _carry_out(self, planned: Planned) -> str:
        """What it changes is on its way to the disk when this returns."""
        # What may be wrong with one part is found out before the other is done.
        switched = self._switched(planned) if planned.gateways is not None else {}
        outcome = self._exchange(planned)
        if switched:
            self._switch(switched)
        return outcome

    def _exchange(self, planned: Planned) -> str:
        if planned.scheme is None:
            return "kept"
        if planned.regions is not None:
            self._in_regions(planned, scheme_in(planned.scheme))
            return "carried out"
        clients: list[str] | None = None
        if planned.clients is not None:
            by_identity = self.sessions.by_identity()
            there = [by_identity[each].client for each in planned.clients if each in by_identity]
            # The plan was made of what was known a while ago: who has left since is not its business any more.
            clients = [client for client in there if self.scheming.live.follows(client)]
            if not clients:
                return "nobody"
        self.scheming.carry_out(planned.plan, planned.scheme, clients)
        return "carried out"

    def _in_regions(self, planned: Planned, scheme: MechanismSpec) -> None:
        regions = [Region(each.zone(), scheme, planned.plan) for each in planned.regions or ()]
        others = [] if planned.elsewhere is not None else self.scheming.live.status().regions
        _check_number({region.zone.name for region in (*regions, *others)})
        self.scheming.carry_out_in(planned.plan, regions, planned.elsewhere)

    def _switched(self, planned: Planned) -> dict[str, GatewaySwitch | None]:
        """What is to be kept of the plan, and what has to go to make room for it: the oldest of those that are off."""
        switched = {each.name: GatewaySwitch(each, planned.gateways == "on") for each in planned.regions or ()}
        others = {name: each for name, each in self.gateways.items() if name not in switched}
        off = [name for name, each in others.items() if not each.on]
        gone = off[: max(0, len(others) + len(switched) - MOST_REGIONS)]
        _check_number((others.keys() | switched) - set(gone))
        return {**dict.fromkeys(gone), **switched}

    def _switch(self, switched: Mapping[str, GatewaySwitch | None]) -> None:
        puts = []
        for name, each in switched.items():
            self.gateways.pop(name, None)  # also if it comes again: the order is that of the plans
            if each is not None:
                self.gateways[name] = each
            puts.append(Put(GATEWAYS, name, None if each is None else msgspec.msgpack.encode(each)))
        self.journal.write(puts=puts)


def check(planned: Planned) -> None:
    """Raises ``InvalidInput`` for a plan that cannot be."""
    name = f"plan {planned.plan!r:.60}"
    if planned.scheme is None and planned.gateways is None:
        raise InvalidPlan(f"{name} changes nothing: it needs a scheme, or gateways on or off")
    if planned.gateways is not None and planned.regions is None:
        raise InvalidPlan(f"{name}: gateways are switched in regions; name some")
    if planned.clients is not None and (planned.scheme is None or planned.regions is not None):
        raise InvalidPlan(f"{name}: clients are brought to a scheme, wherever they are; leave out regions and gateways")
    if planned.elsewhere is not None and (planned.scheme is None or planned.regions is None):
        raise InvalidPlan(f"{name}: elsewhere is where no region is; give regions and their scheme")
    for scheme in (planned.scheme, planned.elsewhere):
        if scheme is not None:
            parameters = scheme_of(scheme_in(scheme))
            if planned.regions is not None and isinstance(parameters, Grid) and parameters.private:
                raise InvalidPlan(
                    f"{name}: whoever runs {scheme} does not say where it is, so that nobody is seen to come to a region or to leave it;"
                    " give a scheme that is not private"
                )
    if planned.regions is not None:
        if not planned.regions:
            raise InvalidPlan(f"{name} is for no region; leave regions out for everybody")
        for each in planned.regions:
            if each.radius > HALF_CIRCUMFERENCE:
                raise InvalidPlan(
                    f"{name}: region {each.name!r:.60} is larger than the world, with a radius of {each.radius:g} m;"
                    f" {HALF_CIRCUMFERENCE:.0f} m reach everywhere"
                )
        Zones(each.zone() for each in planned.regions)  # refuses what cannot be, and names that come twice
        _check_number({each.name for each in planned.regions})


def _check_number(names: Collection[str]) -> None:
    if len(names) > MOST_REGIONS:
        raise InvalidPlan(
            f"{len(names)} regions are too many; there may be {MOST_REGIONS} at a time."
            " A plan with a scheme elsewhere, or for everybody, ends all others; gateways that are off make room for others"
        )


def _readable(kept: Mapping[str, bytes]) -> Iterator[tuple[str, GatewaySwitch]]:
    for name, data in kept.items():
        try:
            yield name, msgspec.msgpack.decode(data, type=GatewaySwitch)
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
        ) as error:  # of another version: the next plan for this region says it anew
            log.warning(
                "what was planned for the gateways of region %r cannot be read, and is left out: %s", name, error
            )
