"""How fast requests may come: looked at before anything else is done for them, which would be most of what they cost."""

from __future__ import annotations

import msgspec
from litestar.enums import ScopeType
from litestar.types import (
    ASGIApp,
    HTTPResponseBodyEvent,
    HTTPResponseStartEvent,
    Receive,
    Scope,
    Send,
    WebSocketCloseEvent,
)

from nearcast.broker.core import Broker
from nearcast.broker.http.authentication import credentials_in
from nearcast.broker.http.problems import problem_of, retry_after
from nearcast.errors import NotAuthenticated, QuotaExceeded

_TRY_AGAIN_LATER = 1013
"""Close code of WebSockets (IANA); a connection that was not accepted yet is answered with 403 instead."""


def paced(broker: Broker, app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check(broker, scope)
        except QuotaExceeded as error:
            broker.services.refusals.add_error(str(scope["scheme"]), error)
            await _refuse(scope, error, send)
        else:
            await app(scope, receive, send)

    return answer


def _check(broker: Broker, scope: Scope) -> None:
    client = scope["client"]
    address = client[0] if client else ""
    broker.services.callers.check_request(_known_user(broker, scope), address, broker.clock.now())


def _known_user(broker: Broker, scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            try:
                return broker.access.recognised(*credentials_in(value.decode("latin-1")))
            except NotAuthenticated:
                return None
    return None


async def _refuse(scope: Scope, error: QuotaExceeded, send: Send) -> None:
    """And end the connection: how often it can be opened again is limited as well, and what it has sent already need not be looked at."""
    if scope["type"] == ScopeType.WEBSOCKET:
        closing: WebSocketCloseEvent = {"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": str(error)}
        await send(closing)
        return
    body = msgspec.json.encode(problem_of(error))
    headers = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        "connection": "close",
        **retry_after(error),
    }
    start: HTTPResponseStartEvent = {
        "type": "http.response.start",
        "status": 429,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    rest: HTTPResponseBodyEvent = {"type": "http.response.body", "body": body, "more_body": False}
    await send(start)
    await send(rest)
