"""Plans from outside: what a job found best, carried out once however often it is handed in."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec

from nearcast.broker.scheme_text import scheme_in
from nearcast.broker.scheming import Scheming
from nearcast.broker.sessions import Sessions
from nearcast.errors import InvalidPlan, JournalFailed
from nearcast.filtering.attraction import Zone, Zones
from nearcast.journal import Journal, Put
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.planning.at_points import Region
from nearcast.transition.specification import MechanismSpec

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
    gateways: dict[str, GatewaySwitch] = field(init=False)
    """By the names of regions.  Kept for whoever runs gateways: the broker itself has none."""

    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        kept = self.journal.load(GATEWAYS)
        self.gateways = {name: msgspec.msgpack.decode(data, type=GatewaySwitch) for name, data in kept.items()}

    async def carry_out(self, plans: Sequence[Planned]) -> Counter[str]:
        """Those that were not carried out yet, in their order, up to one that cannot be."""
        for each in plans:
            check(each)
        async with self._turn:
            known = await asyncio.to_thread(self.journal.known, CARRIED_OUT, [each.plan for each in plans])
            done: dict[str, str] = {}
            try:
                for each in plans:
                    if each.plan not in known | set(done):
                        done[each.plan] = self._carry_out(each)
            finally:
                await self._settled(list(done))
            repeated = len(plans) - len(done)
            return Counter(done.values()) + Counter({"repeated": repeated})

    def _carry_out(self, planned: Planned) -> str:
        """What it changes is on its way to the disk when this returns."""
        if planned.gateways is not None:
            self._switch(planned)
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

    def _switch(self, planned: Planned) -> None:
        switched = {each.name: GatewaySwitch(each, planned.gateways == "on") for each in planned.regions or ()}
        _check_number(self.gateways.keys() | switched)
        self.gateways |= switched
        self.journal.write(puts=[Put(GATEWAYS, name, msgspec.msgpack.encode(each)) for name, each in switched.items()])

    async def _settled(self, plans: Sequence[str]) -> None:
        """That they are done is on disk, behind what they did."""
        written: asyncio.Future[JournalFailed | None] = asyncio.get_running_loop().create_future()

        def then(failed: JournalFailed | None) -> None:
            if not written.done():
                written.set_result(failed)

        at = self.now().to_bytes(8, "big")
        self.journal.write(puts=[Put(CARRIED_OUT, plan, at) for plan in plans], then=then)
        failed = await asyncio.shield(written)
        if failed is not None:
            raise failed


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
            scheme_in(scheme)
    if planned.regions is not None:
        if not planned.regions:
            raise InvalidPlan(f"{name} is for no region; leave regions out for everybody")
        Zones(each.zone() for each in planned.regions)  # refuses what cannot be, and names that come twice
        _check_number({each.name for each in planned.regions})


def _check_number(names: Collection[str]) -> None:
    if len(names) > MOST_REGIONS:
        raise InvalidPlan(f"{len(names)} regions are too many; there may be {MOST_REGIONS} at a time")
