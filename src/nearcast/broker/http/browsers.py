"""What a browser was made to ask for by a page of somebody else.

Whoever is let in without a password because the connection comes from this machine may be a browser here, in which any page runs.  What pages
cannot change gives them away: the Origin that a browser sends along, and the name by which the broker was called, which is the page's own if its
owner had it resolved to this machine.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection

from nearcast.broker.settings import is_loopback
from nearcast.errors import Denied, NotAuthenticated

Asking = ASGIConnection[Any, Any, Any, Any]


def check_nameless(asking: Asking) -> None:
    """``NotAuthenticated`` or ``Denied`` if somebody who shows nothing but where it comes from may be a page of another site."""
    if asking.client is None or not is_loopback(asking.client.host):
        return
    if not is_called_by_address(asking):
        raise NotAuthenticated(
            "a user name and password are needed by whoever calls the broker by a name that is not this machine's"
        )
    check_origin(asking)


def check_origin(asking: Asking) -> None:
    """``Denied`` for a page of another site; who sends no Origin is no browser."""
    origin = asking.headers.get("origin")
    if origin is None:
        return
    host = asking.headers.get("host", "")
    secure = asking.scope["scheme"] in {"https", "wss"}
    if origin.lower() != f"{'https' if secure else 'http'}://{host.lower()}":
        raise Denied(f"this is not for pages of {origin!r:.60}")


def is_called_by_address(asking: Asking) -> bool:
    """Whether the broker was called by a name that nobody else can give to their own page."""
    try:
        name = urlsplit(f"//{asking.headers.get('host', '')}").hostname or ""
    except ValueError:
        return False
    client = asking.client
    return client is None or not is_loopback(client.host) or is_loopback(name)
