"""Refusals without the framework, whose way to an answer is most of what one costs."""

from __future__ import annotations

import msgspec
from litestar.enums import ScopeType
from litestar.types import HTTPResponseBodyEvent, HTTPResponseStartEvent, Scope, Send, WebSocketCloseEvent

from nearcast.broker.http.problems import headers_of, problem_of, status_of
from nearcast.errors import NearcastError

_TRY_AGAIN_LATER = 1013
"""Close code of WebSockets (IANA); a connection that was not accepted yet is answered with 403 instead."""


async def refuse(scope: Scope, error: NearcastError, send: Send, *, last: bool) -> None:
    """``last``: and end the connection; how often it can be opened again is limited as well, and what it has sent already need not be looked at."""
    if scope["type"] == ScopeType.WEBSOCKET:
        closing: WebSocketCloseEvent = {"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": str(error)}
        await send(closing)
        return
    body = msgspec.json.encode(problem_of(error))
    headers = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        **({"connection": "close"} if last else {}),
        **headers_of(error),
    }
    start: HTTPResponseStartEvent = {
        "type": "http.response.start",
        "status": status_of(error),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    rest: HTTPResponseBodyEvent = {"type": "http.response.body", "body": body, "more_body": False}
    await send(start)
    await send(rest)
