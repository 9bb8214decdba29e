"""How fast requests may come: looked at before anything else is done for them, which would be most of what they cost."""

from __future__ import annotations

from litestar.types import ASGIApp, Receive, Scope, Send

from nearcast.broker.core import Broker
from nearcast.broker.http.authentication import credentials_in
from nearcast.broker.http.refusing import refuse
from nearcast.errors import NotAuthenticated, QuotaExceeded


def paced(broker: Broker, app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            _check(broker, scope)
        except QuotaExceeded as error:
            broker.services.refusals.add_error(str(scope["scheme"]), error)
            await refuse(scope, error, send, last=True)
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
