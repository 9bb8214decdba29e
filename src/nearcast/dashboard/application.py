"""All routes below ``/dashboard``, for the broker's HTTP listener."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Any, Final
from urllib.parse import unquote

import msgspec
from litestar import Controller, Request, Response, Router, get, post, put
from litestar.di import NamedDependency, Provide
from litestar.exceptions import HTTPException
from litestar.params import FromQuery, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from nearcast.broker.core import Broker
from nearcast.broker.explained import Explained
from nearcast.broker.explaining import explained, names_of
from nearcast.broker.http.app import More
from nearcast.broker.http.problems import counted, failed, retry_after, status_of
from nearcast.broker.http.scans import Scans
from nearcast.broker.settings import DashboardSettings
from nearcast.dashboard import pages
from nearcast.dashboard.cell_watch import CellWatch
from nearcast.dashboard.commands import Commands
from nearcast.dashboard.contract import (
    LARGEST_PAGE,
    LONGEST_NAME,
    PAGE,
    ClientShown,
    Extent,
    Heat,
    Login,
    Me,
    Past,
    PlansShown,
    Rules,
    RulesAsked,
    SessionsTable,
    SubscriptionsTable,
    TransitionAsked,
    World,
)
from nearcast.dashboard.crowd import role_of
from nearcast.dashboard.doors import Doors
from nearcast.dashboard.feed import Feed
from nearcast.dashboard.headers import guarded
from nearcast.dashboard.heat import Kind, density, measured
from nearcast.dashboard.live import live
from nearcast.dashboard.one_client import RecentEvents, client_shown
from nearcast.dashboard.past import LONGEST_WINDOW, Pasts
from nearcast.dashboard.tables import sessions_of, subscriptions_of
from nearcast.dashboard.turns import Turns
from nearcast.dashboard.world import Ground, ground_in, middle_of, world_of
from nearcast.errors import HistoryNeeded, InvalidInput, NearcastError
from nearcast.model.time import instant

LARGEST_BODY: Final = 256 * 1024
MOST_ASKED: Final = 10_000
"""Clients whose roles are gathered for the legend; later ones come with the live feed."""


def dashboard(settings: DashboardSettings) -> More:
    """Routes for a broker; the map is read now, so that a wrong one is told of before anything runs."""
    ground = ground_in(settings.map)
    return lambda broker: routes(broker, settings, ground)


def routes(broker: Broker, settings: DashboardSettings, ground: Ground) -> Sequence[ControllerRouterHandler]:
    doors = Doors(broker, settings)
    feed = Feed(broker, settings, lambda: middle_of(ground, broker))
    commands, recent, pasts = Commands(broker), RecentEvents(broker), Pasts(broker)
    feed.by = commands.by
    feed.layers.append(CellWatch(broker))
    feed.watching = partial(client_shown, broker, recent)
    broker.erasing.purging += [commands.purge, lambda _plan: recent.purge(), lambda _plan: pasts.purge()]

    async def check(request: Request[Any, Any, Any]) -> None:  # the framework copies what it is given, but no functions
        await doors.check_request(request)

    data = Router(
        "/api",
        route_handlers=[
            world,
            sessions,
            subscriptions,
            plans,
            client,
            client_named,
            explain,
            transition,
            RulesOnPage,
            extent,
            past,
            heat,
        ],
        before_request=check,
        tags=["dashboard"],
    )
    everything = Router(
        "/dashboard",
        route_handlers=[pages.index, pages.page, log_in, log_out, me, live, data],
        dependencies={
            "doors": Provide(lambda: doors, sync_to_thread=False),
            "feed": Provide(lambda: feed, sync_to_thread=False),
            "ground": Provide(lambda: ground, sync_to_thread=False),
            "commands": Provide(lambda: commands, sync_to_thread=False),
            "recent": Provide(lambda: recent, sync_to_thread=False),
            "pasts": Provide(lambda: pasts, sync_to_thread=False),
        },
        middleware=[guarded],
        exception_handlers={
            NearcastError: lambda request, error: _told(broker, request, error),
            HTTPException: _told_by_framework,
            Exception: failed,
        },
        request_max_body_size=LARGEST_BODY,
        tags=["dashboard"],
    )
    return [pages.home, everything]


# Logging in


@post("/login", summary="Log in", status_code=204)
async def log_in(
    request: Request[Any, Any, Any], doors: NamedDependency[Doors], data: JSONBody[Login]
) -> Response[None]:
    cookie = await doors.log_in(request, data.user, data.password)
    return Response(None, status_code=204, cookies=[cookie])


@post("/logout", summary="Log out", status_code=204)
async def log_out(request: Request[Any, Any, Any], doors: NamedDependency[Doors]) -> Response[None]:
    return Response(None, status_code=204, cookies=[doors.log_out(request)])


@get("/api/me", summary="Who is looking")
async def me(request: Request[Any, Any, Any], doors: NamedDependency[Doors]) -> Me:
    viewer = await doors.viewer(request)
    return Me(viewer.user, viewer.may, viewer.may)


# What there is


@get("/world", summary="The ground")
async def world(broker: NamedDependency[Broker], ground: NamedDependency[Ground]) -> World:
    roles: set[str] = set()
    async for some in Turns().over(list(islice(broker.sessions, MOST_ASKED))):
        roles.update(role_of(broker.presence.contexts(session.client)) for session in some)
    return world_of(broker, ground, sorted(roles - {""}))


class PageAsked(msgspec.Struct, frozen=True):
    """Which rows of a table, in which order."""

    search: str = ""
    sort: str = ""
    offset: int = 0
    limit: int = PAGE


def page_asked(
    search: Annotated[str, QueryParameter(max_length=200)] = "",
    sort: Annotated[str, QueryParameter(max_length=40)] = "",
    offset: Annotated[int, QueryParameter(ge=0)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=LARGEST_PAGE)] = PAGE,
) -> PageAsked:
    return PageAsked(search, sort, offset, limit)


ROWS: Final = {"rows": Provide(page_asked, sync_to_thread=False)}
Name = Annotated[str, QueryParameter(max_length=LONGEST_NAME)]


@get("/sessions", summary="Sessions", dependencies=ROWS)
async def sessions(
    broker: NamedDependency[Broker], scans: NamedDependency[Scans], rows: NamedDependency[PageAsked]
) -> SessionsTable:
    async with scans.turn():
        return await sessions_of(broker, rows.search, rows.sort, rows.offset, rows.limit)


@get("/subscriptions", summary="Subscriptions", dependencies=ROWS)
async def subscriptions(
    broker: NamedDependency[Broker], scans: NamedDependency[Scans], rows: NamedDependency[PageAsked]
) -> SubscriptionsTable:
    async with scans.turn():
        return await subscriptions_of(broker, rows.search, rows.sort, rows.offset, rows.limit)


@get("/clients/{name:path}", summary="One client")
async def client(
    request: Request[Any, Any, Any], broker: NamedDependency[Broker], recent: NamedDependency[RecentEvents]
) -> ClientShown:
    # As it was asked for: the framework's own has lost slashes at its ends, and of two that follow one another.
    asked: bytes = request.scope["raw_path"]
    return await client_shown(broker, recent, unquote(asked.partition(b"/api/clients/")[2].decode("latin-1")))


@get("/client", summary="A client by its name, whatever that is")
async def client_named(
    broker: NamedDependency[Broker], recent: NamedDependency[RecentEvents], name: Name
) -> ClientShown:
    """The same for any name: in a path, `.` and `..` are not what they say."""
    return await client_shown(broker, recent, name)


@get("/explain", summary="Why a client got an event, or did not")
async def explain(
    broker: NamedDependency[Broker], scans: NamedDependency[Scans], event: Name, client: Name
) -> Explained:
    """Why ``client`` got ``event``, or did not: with what was known when it was published."""
    async with scans.turn():
        return await explained(broker, event, client)


@get("/heat", summary="How much of something there is where")
async def heat(
    broker: NamedDependency[Broker], scans: NamedDependency[Scans], kind: FromQuery[Kind] = "density"
) -> Heat:
    async with scans.turn():
        if kind == "density":
            lat, lon = (each.copy() for each in broker.presence.matcher.positions)
            return await asyncio.to_thread(density, lat, lon, broker.clock.now())
        return await asyncio.to_thread(measured, broker, kind)


# The past


@get("/past/extent", summary="Which past there is")
async def extent(pasts: NamedDependency[Pasts], scans: NamedDependency[Scans]) -> Extent:
    async with scans.turn():
        return await asyncio.to_thread(pasts.extent)


@get("/past", summary="Who was where, and what happened")
async def past(
    broker: NamedDependency[Broker],
    pasts: NamedDependency[Pasts],
    scans: NamedDependency[Scans],
    at: Annotated[str, QueryParameter(max_length=40)],
    window: Annotated[float, QueryParameter(gt=0, le=LONGEST_WINDOW)] = 60.0,
) -> Past:
    when = instant(at)
    async with scans.turn():
        return await asyncio.to_thread(pasts.past, when, window, names_of(broker))


# Commands


@get("/plans", summary="What holds, and what was done")
async def plans(commands: NamedDependency[Commands]) -> PlansShown:
    return commands.shown()


@post("/transitions", summary="Exchange a filter scheme", status_code=200)
async def transition(
    request: Request[Any, Any, Any], commands: NamedDependency[Commands], data: JSONBody[TransitionAsked]
) -> PlansShown:
    return await commands.transition(data.scheme, data.clients, request.state.viewer.user)


class RulesOnPage(Controller):
    """By which the broker exchanges mechanisms by itself."""

    path = "/rules"

    @get("/", summary="Rules, as they hold")
    async def rules(self, commands: NamedDependency[Commands]) -> Rules:
        return commands.rules()

    @put("/", summary="Let other rules hold")
    async def change_rules(
        self, request: Request[Any, Any, Any], commands: NamedDependency[Commands], data: JSONBody[RulesAsked]
    ) -> Rules:
        """All at once, or none of them.  409: others than ``version`` hold by now; read them again."""
        return commands.change_rules(data.text, request.state.viewer.user, data.version)


# What went wrong


def _told(broker: Broker, request: Request[Any, Any, Any], error: NearcastError) -> Response[dict[str, Any]]:
    """Without ``WWW-Authenticate``: the page has a form of its own, and no browser is to ask on top of it."""
    counted(broker, request, error)
    status = 422 if isinstance(error, (InvalidInput, HistoryNeeded)) else status_of(error)
    return _problem(status, type(error).__name__, str(error), retry_after(error))


def _told_by_framework(_request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    return _problem(error.status_code, type(error).__name__, error.detail)


def _problem(status: int, title: str, detail: str, headers: dict[str, str] | None = None) -> Response[dict[str, Any]]:
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Response(problem, status_code=status, media_type="application/problem+json", headers=headers)
