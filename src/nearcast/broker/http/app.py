"""All routes; OpenAPI is made from them, at /schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from litestar import Litestar
from litestar.di import Provide
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.types import ASGIApp, ControllerRouterHandler

from nearcast.broker.core import Broker
from nearcast.broker.http import jobs, operations
from nearcast.broker.http.events import Events
from nearcast.broker.http.problems import told, told_by_framework
from nearcast.broker.http.scans import Scans
from nearcast.errors import NearcastError

More = Callable[[Broker], Sequence[ControllerRouterHandler]]
"""Further routes, of a room above this one; they may ask for the same dependencies."""


def application(broker: Broker, more: More | None = None) -> ASGIApp:
    from importlib.metadata import version

    scans = Scans()
    return Litestar(
        route_handlers=[
            Events,
            operations.status,
            operations.schemes,
            operations.transition,
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
        },
        openapi_config=OpenAPIConfig(title="nearcast", version=version("nearcast"), path="/schema"),
        request_max_body_size=int(broker.settings.limits.packet),
        logging_config=None,
    )
