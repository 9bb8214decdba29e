"""For operators: status, transitions, health, the tail of the journal."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Request, Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter

from nearcast.broker.core import Broker
from nearcast.broker.http.doors import principal_of
from nearcast.broker.http.metrics import metrics_text
from nearcast.journal.tail import tail

ARROW = "application/vnd.apache.arrow.stream"
MOST_RECORDS = 100_000


class TransitionOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bring everybody, or these clients, to a filter scheme."""

    scheme: str
    """As in ``EGRID(factor=10)``."""

    clients: list[str] | None = None


class SchemesShown(msgspec.Struct, frozen=True):
    scheme: str
    groups: dict[str, int]
    waiting: int
    overlaps: int
    transitions: int


def shown(broker: Broker) -> SchemesShown:
    status = broker.scheming.live.status()
    return SchemesShown(
        str(status.scheme),
        {str(spec): count for spec, count in status.groups.items()},
        status.waiting,
        status.overlaps,
        status.transitions,
    )


@get("/status", tags=["operations"], summary="What the broker is doing")
async def status(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> dict[str, Any]:
    (await principal_of(broker.access, request)).check_plan()
    answer: dict[str, Any] = msgspec.to_builtins(broker.statistics())
    return answer | {"filter_schemes": msgspec.to_builtins(shown(broker))}


@get("/transitions", tags=["operations"], summary="Which filter schemes run")
async def schemes(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> SchemesShown:
    await principal_of(broker.access, request)
    return shown(broker)


@post("/transitions", status_code=200, tags=["operations"], summary="Exchange a filter scheme")
async def transition(
    request: Request[Any, Any, Any], broker: NamedDependency[Broker], data: JSONBody[TransitionOrder]
) -> SchemesShown:
    (await principal_of(broker.access, request)).check_plan()
    broker.scheming.live.transition(data.scheme, data.clients)
    return shown(broker)


@get("/journal", tags=["operations"], summary="The journal from an offset on, as an Arrow stream")
async def journal(
    request: Request[Any, Any, Any],
    broker: NamedDependency[Broker],
    first: Annotated[int, QueryParameter(ge=0, description="Offset.")] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=MOST_RECORDS)] = 10_000,
) -> Response[bytes]:
    (await principal_of(broker.access, request)).check_plan()
    import asyncio

    data = await asyncio.to_thread(tail, broker.journal, first, limit)
    return Response(data, media_type=ARROW)


@get("/healthz", tags=["health"], summary="Whether the process is alive", media_type="text/plain")
async def healthz() -> str:
    return "ok\n"


@get("/readyz", tags=["health"], summary="Whether it can do its work", media_type="text/plain")
async def readyz(broker: NamedDependency[Broker]) -> Response[str]:
    problem = broker.journal.problem
    return Response(
        "ready\n" if problem is None else f"not ready: {problem}\n", status_code=200 if problem is None else 503
    )


@get("/metrics", tags=["health"], summary="Metrics for Prometheus", media_type="text/plain")
async def metrics(request: Request[Any, Any, Any], broker: NamedDependency[Broker]) -> Response[bytes]:
    await principal_of(broker.access, request)
    body, media_type = metrics_text(broker)
    return Response(body, media_type=media_type)
