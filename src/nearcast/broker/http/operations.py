"""For operators: status, transitions, health, the tail of the journal."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, cast

import msgspec
from litestar import Controller, Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from nearcast.broker.core import Broker
from nearcast.broker.explained import Explained
from nearcast.broker.explaining import explained
from nearcast.broker.http.authentication import CLIENT, principal_of
from nearcast.broker.http.metrics import metrics_text
from nearcast.broker.http.scans import Scans
from nearcast.broker.upkeep.reload import Reloaded
from nearcast.errors import InvalidProperty, UnknownName
from nearcast.journal.entries import NAMES, Record
from nearcast.journal.tail import stretches, tail
from nearcast.model.time import LARGEST
from nearcast.planning.regional import Region

ARROW = "application/vnd.apache.arrow.stream"
MOST_RECORDS = 100_000


class TransitionOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bring everybody, or these clients, to a filter scheme."""

    scheme: str
    """As in ``EGRID(factor=10)``."""

    clients: list[str] | None = None


class JournalExtent(msgspec.Struct, frozen=True):
    oldest: int
    """What is below was deleted."""

    exported: int
    """What is below is in the lake."""

    stored: int
    """What is below is on disk."""


class RegionShown(msgspec.Struct, frozen=True):
    name: str
    lat: float
    lon: float
    radius: float
    scheme: str
    plan: str


class SchemesShown(msgspec.Struct, frozen=True):
    scheme: str
    groups: dict[str, int]
    waiting: int
    overlaps: int
    transitions: int
    regions: list[RegionShown]
    """With schemes of their own."""

    gateways: dict[str, bool]
    """On or off, by region, as planned; nothing here runs them."""


def shown(broker: Broker) -> SchemesShown:
    status = broker.scheming.live.status()
    return SchemesShown(
        str(status.scheme),
        {str(spec): count for spec, count in status.groups.items()},
        status.waiting,
        status.overlaps,
        status.transitions,
        [_region_shown(region) for region in status.regions],
        {name: switch.on for name, switch in broker.plans.gateways.items()},
    )


def _region_shown(region: Region) -> RegionShown:
    zone = region.zone
    return RegionShown(zone.name, zone.center.lat, zone.center.lon, zone.radius, str(region.scheme), region.plan)


@get("/status", tags=["operations"], summary="What the broker is doing")
async def status(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> dict[str, Any]:
    (await principal_of(broker.access, request)).check_hand_in()
    answer: dict[str, Any] = msgspec.to_builtins(broker.statistics())
    return answer | {"filter_schemes": msgspec.to_builtins(shown(broker))}


class Transitions(Controller):
    """Filter schemes."""

    path = "/transitions"
    tags = ["operations"]  # noqa: RUF012 - as the framework reads it

    @get("/", summary="Which filter schemes run")
    async def schemes(self, request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> SchemesShown:
        (await principal_of(broker.access, request)).check_hand_in()
        return shown(broker)

    @post("/", status_code=200, summary="Exchange a filter scheme")
    async def transition(
        self, request: Request[Any, Any, Any], broker: NamedDependency[Broker], data: JSONBody[TransitionOrder]
    ) -> SchemesShown:
        principal = await principal_of(broker.access, request)
        principal.check_plan()
        live, moved = broker.scheming.live, asyncio.Event()
        with live.ordered("a command"):
            live.transition(data.scheme, data.clients)
        broker.audit.commanded(broker.identity_of(principal.user, CLIENT), f"transition to {data.scheme}")
        live.when_moved(moved.set)
        await moved.wait()  # whoever commands one after the other is not faster than the broker
        return shown(broker)


@get("/explain", tags=["operations"], summary="Why a client got an event, or did not")
async def explain(
    request: Request[Any, Any, Any],
    broker: NamedDependency[Broker],
    scans: NamedDependency[Scans],
    event: Annotated[str, QueryParameter(min_length=1, max_length=1_024, description="Its id.")],
    client: Annotated[str, QueryParameter(max_length=1_024, description="Its client id.")],
) -> Explained:
    """Term by term what the definition of delivery says, with what was known of the client when the event was published."""
    (await principal_of(broker.access, request)).check_plan()
    async with scans.turn():
        return await explained(broker, event, client)


class Forgetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A broker of the federation that will not come back."""

    name: str


class Forgotten(msgspec.Struct, frozen=True):
    parcels: int
    """That waited for it here, and are given up."""


@post("/federation/forgotten", status_code=200, tags=["operations"], summary="Keep nothing for a broker any more")
async def forget(
    request: Request[Any, Any, Any], broker: NamedDependency[Broker], data: JSONBody[Forgetting]
) -> Forgotten:
    principal = await principal_of(broker.access, request)
    principal.check_plan()
    if broker.federation is None:
        raise UnknownName("this broker is alone; it keeps nothing for others")
    broker.audit.commanded(broker.identity_of(principal.user, CLIENT), "a broker of the federation was forgotten")
    return Forgotten(broker.federation.forget(data.name))


@post("/reload", status_code=200, tags=["operations"], summary="Read the settings anew, without disconnecting anybody")
async def reload(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> Reloaded:
    """As SIGHUP does. 400: the settings cannot be, and nothing has changed."""
    principal = await principal_of(broker.access, request)
    principal.check_plan()
    if broker.reload is None:
        raise InvalidProperty("this broker was started by a program, which has its settings; it has no file to read")
    done = await broker.reload()
    broker.audit.commanded(broker.identity_of(principal.user, CLIENT), "reload")
    return done


@get("/journal", tags=["operations"], summary="The journal from an offset on, as an Arrow stream")
async def journal(
    request: Request[Any, Any, Any],
    broker: NamedDependency[Broker],
    scans: NamedDependency[Scans],
    first: Annotated[int, QueryParameter(ge=0, le=LARGEST, description="Offset.")] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_RECORDS)] = 10_000,
) -> Response[bytes]:
    (await principal_of(broker.access, request)).check_hand_in()
    async with scans.turn():
        data = await asyncio.to_thread(tail, broker.journal, first, limit)
    return Response(data, media_type=ARROW)


@get("/journal/extent", tags=["operations"], summary="Which offsets of the journal there are")
async def extent(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> JournalExtent:
    (await principal_of(broker.access, request)).check_hand_in()
    journal = broker.journal
    return JournalExtent(journal.oldest, journal.exported, journal.stored)


@get("/journal/stretches", tags=["operations"], summary="A part of the journal as it is on disk, as an Arrow stream")
async def stretches_of(
    request: Request[Any, Any, Any],
    broker: NamedDependency[Broker],
    scans: NamedDependency[Scans],
    first: Annotated[int, QueryParameter(ge=0, le=LARGEST, description="Offset.")],
    last: Annotated[int, QueryParameter(ge=0, le=LARGEST, description="Offset, which is no longer part of it.")],
    kinds: Annotated[list[str] | None, QueryParameter(description="As in event, report; others may come too.")] = None,
    since: Annotated[
        int | None, QueryParameter(ge=-LARGEST, le=LARGEST, description="Microseconds since 1970.")
    ] = None,
    until: Annotated[int | None, QueryParameter(ge=-LARGEST, le=LARGEST, description="As since.")] = None,
) -> Response[bytes]:
    """At most about 4 MB; the metadata says from where to go on. 410: some of it was deleted, and is in the lake."""
    (await principal_of(broker.access, request)).check_hand_in()
    wanted = None if kinds is None else [_kind(name) for name in kinds]
    async with scans.turn():
        data = await asyncio.to_thread(stretches, broker.journal, first, last, wanted, since, until)
    return Response(data, media_type=ARROW)


def _kind(name: str) -> type[Record]:
    for kind, known in NAMES.items():
        if known == name:
            return cast("type[Record]", kind)
    raise InvalidProperty(f"{name!r:.40} is no kind of record; there are {', '.join(NAMES.values())}")


@get("/healthz", tags=["health"], summary="Whether the process is alive", media_type="text/plain")
async def healthz() -> str:
    return "ok\n"


@get("/readyz", tags=["health"], summary="Whether it can do its work", media_type="text/plain")
async def readyz(broker: NamedDependency[Broker]) -> Response[str]:
    """Ready is who can keep its promises. A lake that cannot be written breaks none, so the answer stays 200 and says so."""
    if (problem := broker.journal.problem) is not None:
        return Response(f"not ready: {problem}\n", status_code=503)
    if (degraded := broker.archive.problem) is not None:
        return Response(f"ready, but degraded: {degraded}\n")
    return Response("ready\n")


@get("/metrics", tags=["health"], summary="Metrics for Prometheus", media_type="text/plain")
async def metrics(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> Response[bytes]:
    await principal_of(broker.access, request)
    body, media_type = metrics_text(broker)
    return Response(body, media_type=media_type)
