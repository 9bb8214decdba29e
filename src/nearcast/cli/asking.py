"""Asking a running broker by HTTP."""

from __future__ import annotations

import base64
import os
from typing import Annotated, Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import typer

from nearcast.errors import SetupError

ADDRESS = Annotated[
    str, typer.Option(help="HTTP address of the broker; user and password may stand in it.", envvar="NEARCAST_HTTP")
]
TIMEOUT: Final = 10.0
LONGEST: Final = 600.0
"""Seconds: an order is answered when it has been carried out."""


def asked(url: str, path: str, order: dict[str, Any] | None = None, query: str = "") -> dict[str, Any]:
    """What a running broker answers there; or why there is no answer."""
    import urllib.error
    import urllib.request

    import msgspec

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SetupError(f"{url!r} is no HTTP address such as http://127.0.0.1:8080")
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    target = urlunsplit((parts.scheme, host, path, query, ""))
    request = urllib.request.Request(target)  # noqa: S310 - the scheme was checked
    if order is not None:
        request.data = msgspec.json.encode(order)
        request.add_header("Content-Type", "application/json")
    password = unquote(parts.password or "") or os.environ.get("NEARCAST_PASSWORD", "")
    if parts.username:
        token = base64.b64encode(f"{unquote(parts.username)}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT if order is None else LONGEST) as response:  # noqa: S310
            answer: dict[str, Any] = msgspec.json.decode(response.read())
            return answer
    except urllib.error.HTTPError as error:
        try:
            detail = msgspec.json.decode(error.read())["detail"]
        except (msgspec.DecodeError, LookupError, TypeError):
            detail = error.reason
        raise SetupError(f"the broker refuses: {detail}") from None
    except (urllib.error.URLError, TimeoutError) as error:
        raise SetupError(
            f"no broker answers at {target}: {getattr(error, 'reason', error)}; is `nearcast serve` running?"
        ) from None
