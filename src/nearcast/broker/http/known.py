"""Who asks for what strangers never get is looked at first: before the framework has found out what is asked for, and understood it.

This only ever refuses.  Every route looks at who asks by itself, too, and finds here what was found out already.
"""

from __future__ import annotations

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.enums import HttpMethod, ScopeType
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, HTTPScope, Receive, Scope, Send

from nearcast.broker.core import Broker
from nearcast.broker.http.authentication import keep, principal_of
from nearcast.broker.http.description import OPEN
from nearcast.broker.http.refusing import refuse
from nearcast.errors import Refused

_ELSEWHERE = ("/dashboard", "/schema")
"""Below these it is decided for each answer who gets it, and how a refusal looks."""


def known_only(broker: Broker, app: Litestar) -> ASGIApp:
    closed = _closed(app)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP and scope["method"] in closed.get(scope["path"], ()):
            try:
                keep(broker.access, scope, await principal_of(broker.access, ASGIConnection(scope)))
            except Refused as error:
                broker.services.refusals.add_error(str(scope["scheme"]), error)
                await refuse(scope, error, send, last=_is_whole(scope))
                return
        await app(scope, receive, send)

    return answer


def _closed(app: Litestar) -> dict[str, frozenset[str]]:
    """The methods of paths that are for nobody unknown; all that is not among them is the framework's to answer."""
    return {
        route.path: frozenset(route.methods) - {HttpMethod.OPTIONS}
        for route in app.routes
        if isinstance(route, HTTPRoute)
        and not route.path_parameters
        and route.path not in OPEN
        and route.path != "/"
        and not route.path.startswith(_ELSEWHERE)
    }


def _is_whole(scope: HTTPScope) -> bool:
    """Whether nothing of it is still to come: who is hung up on in the middle of a body may never see the answer."""
    return not any(
        name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
        for name, value in scope["headers"]
    )
