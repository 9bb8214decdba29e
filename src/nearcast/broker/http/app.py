"""All routes; OpenAPI is made from them, at /schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from litestar import Litestar
from litestar.di import Provide
from litestar.enums import HttpMethod, ScopeType
from litestar.exceptions import ClientException, HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.routes import HTTPRoute
from litestar.types import (
    ASGIApp,
    ControllerRouterHandler,
    HTTPReceiveMessage,
    Receive,
    Scope,
    Send,
    WebSocketReceiveMessage,
)

from nearcast.broker.core import Broker
from nearcast.broker.http import jobs, operations
from nearcast.broker.http.description import describe
from nearcast.broker.http.events import Events
from nearcast.broker.http.known import known_only
from nearcast.broker.http.pace import paced
from nearcast.broker.http.problems import failed, told, told_by_framework, told_of_depth
from nearcast.broker.http.scans import Scans
from nearcast.errors import NearcastError

More = Callable[[Broker], Sequence[ControllerRouterHandler]]
"""Further routes, of a room above this one; they may ask for the same dependencies."""


def application(broker: Broker, more: More | None = None) -> ASGIApp:
    return paced(broker, known_only(broker, routes(broker, more)))


def routes(broker: Broker, more: More | None = None) -> Litestar:
    """All that is answered, and its description."""
    from importlib.metadata import version

    scans = Scans()
    app = Litestar(
        route_handlers=[
            Events,
            operations.status,
            operations.Transitions,
            operations.explain,
            operations.forget,
            operations.reload,
            jobs.notifications,
            jobs.plans,
            operations.journal,
            operations.extent,
            operations.stretches_of,
            operations.healthz,
            operations.readyz,
            operations.metrics,
            *(() if more is None else more(broker)),
        ],
        dependencies={
            "broker": Provide(lambda: broker, sync_to_thread=False),
            "scans": Provide(lambda: scans, sync_to_thread=False),
        },
        exception_handlers={
            NearcastError: lambda request, error: told(broker, request, error),
            HTTPException: told_by_framework,
            RecursionError: told_of_depth,
            Exception: failed,
        },
        openapi_config=OpenAPIConfig(title="nearcast", version=version("nearcast"), path="/schema"),
        request_max_body_size=int(broker.settings.limits.packet),
        middleware=[_allowing, _hearing_out],
        logging_config=None,
    )
    describe(app)
    return app


def _allowing(app: ASGIApp) -> ASGIApp:
    """Who asks for the methods of a path is told all of them: the framework's own answer names those of one of its handlers."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP or scope["method"] != HttpMethod.OPTIONS:
            await app(scope, receive, send)
            return
        path = scope["path_template"]
        methods = {
            method
            for route in scope["litestar_app"].routes
            if isinstance(route, HTTPRoute) and route.path == path
            for method in route.methods
        }
        headers = [(b"allow", ", ".join(sorted(methods)).encode())]
        await send({"type": "http.response.start", "status": 204, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    return answer


def _hearing_out(app: ASGIApp) -> ASGIApp:
    """Who hangs up before all of a request has come has made a mistake; to the framework it is one of ours, which would be told at length in the log."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        awaited = scope["type"] == ScopeType.HTTP

        async def heard() -> HTTPReceiveMessage | WebSocketReceiveMessage:
            nonlocal awaited
            message = await receive()
            if message["type"] == "http.request":
                awaited = message["more_body"]
            elif awaited and message["type"] == "http.disconnect":
                raise ClientException("the connection ended before the request did")
            return message

        await app(scope, heard, send)

    return answer
