"""All routes below ``/dashboard``, for the broker's HTTP listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from litestar import Request, Response, Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.params import JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from nearcast.broker.core import Broker
from nearcast.broker.http.app import More
from nearcast.broker.http.problems import status_of
from nearcast.broker.settings import DashboardSettings
from nearcast.dashboard import pages
from nearcast.dashboard.contract import LARGEST_PAGE, PAGE, Login, Me, SessionsTable, World
from nearcast.dashboard.doors import Doors
from nearcast.dashboard.feed import Feed
from nearcast.dashboard.headers import guarded
from nearcast.dashboard.live import live
from nearcast.dashboard.tables import sessions_of
from nearcast.dashboard.world import Ground, ground_in, middle_of, world_of
from nearcast.errors import InvalidInput, NearcastError

LARGEST_BODY = 256 * 1024


def dashboard(settings: DashboardSettings) -> More:
    """Routes for a broker; the map is read now, so that a wrong one is told of before anything runs."""
    ground = ground_in(settings.map)
    return lambda broker: routes(broker, settings, ground)


def routes(broker: Broker, settings: DashboardSettings, ground: Ground) -> Sequence[ControllerRouterHandler]:
    doors = Doors(broker, settings)
    feed = Feed(broker, settings, lambda: middle_of(ground, broker))

    async def check(request: Request[Any, Any, Any]) -> None:  # the framework copies what it is given, but no functions
        await doors.check_request(request)

    data = Router(
        "/api",
        route_handlers=[world, sessions],
        before_request=check,
        tags=["dashboard"],
        include_in_schema=False,
    )
    everything = Router(
        "/dashboard",
        route_handlers=[pages.index, pages.page, log_in, log_out, me, live, data],
        dependencies={
            "doors": Provide(lambda: doors, sync_to_thread=False),
            "feed": Provide(lambda: feed, sync_to_thread=False),
            "ground": Provide(lambda: ground, sync_to_thread=False),
        },
        middleware=[guarded],
        exception_handlers={NearcastError: _told, HTTPException: _told_by_framework},
        request_max_body_size=LARGEST_BODY,
        include_in_schema=False,
    )
    return [pages.home, everything]


# Logging in


@post("/login", status_code=204)
async def log_in(
    request: Request[Any, Any, Any], doors: NamedDependency[Doors], data: JSONBody[Login]
) -> Response[None]:
    cookie = await doors.log_in(request, data.user, data.password)
    return Response(None, status_code=204, cookies=[cookie])


@post("/logout", status_code=204)
async def log_out(request: Request[Any, Any, Any], doors: NamedDependency[Doors]) -> Response[None]:
    return Response(None, status_code=204, cookies=[doors.log_out(request)])


@get("/api/me")
async def me(request: Request[Any, Any, Any], doors: NamedDependency[Doors]) -> Me:
    viewer = await doors.viewer(request)
    return Me(viewer.user, viewer.may, viewer.may)


# What there is


@get("/world")
async def world(broker: NamedDependency[Broker], ground: NamedDependency[Ground]) -> World:
    return world_of(broker, ground, [])


Search = Annotated[str, QueryParameter(max_length=200)]
Offset = Annotated[int, QueryParameter(ge=0)]
Limit = Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)]


@get("/sessions")
async def sessions(
    broker: NamedDependency[Broker], search: Search = "", offset: Offset = 0, limit: Limit = PAGE
) -> SessionsTable:
    return sessions_of(broker, search, offset, limit)


# What went wrong


def _told(_request: Request[Any, Any, Any], error: NearcastError) -> Response[dict[str, Any]]:
    """Without ``WWW-Authenticate``: the page has a form of its own, and no browser is to ask on top of it."""
    return _problem(422 if isinstance(error, InvalidInput) else status_of(error), type(error).__name__, str(error))


def _told_by_framework(_request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    return _problem(error.status_code, type(error).__name__, error.detail)


def _problem(status: int, title: str, detail: str) -> Response[dict[str, Any]]:
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Response(problem, status_code=status, media_type="application/problem+json")
