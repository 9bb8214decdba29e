"""``nearcast transition``: have a running broker exchange its filter scheme, or show which one it runs."""

from __future__ import annotations

import base64
import os
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import typer

from nearcast.cli.printing import say_json
from nearcast.errors import SetupError

TIMEOUT = 10.0
LONGEST = 600.0
"""Seconds: an order is answered when everybody has been moved."""


def transition(
    scheme: Annotated[
        str | None, typer.Argument(help="Such as RADIAL or 'EGRID(factor=10)'; without one, show what runs.")
    ] = None,
    url: Annotated[
        str, typer.Option(help="HTTP address of the broker; user and password may stand in it.", envvar="NEARCAST_HTTP")
    ] = "http://127.0.0.1:8080",
    client: Annotated[list[str] | None, typer.Option(help="Only this client (repeat for several).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Exchange the filter scheme of a running broker; nothing is lost or doubled meanwhile."""
    order = None if scheme is None else {"scheme": scheme, "clients": client or None}
    answer = _asked(url, order)
    if as_json:
        say_json(answer, one_line=True)
        return
    groups = ", ".join(f"{count} in {name}" for name, count in answer["groups"].items() if count) or "nobody yet"
    typer.echo(f"{answer['scheme']} (clients: {groups}; transitions so far: {answer['transitions']})")
    for region in answer["regions"]:
        place = f"{region['radius']:.0f} m around {region['lat']:.5f},{region['lon']:.5f}"
        typer.echo(f"{region['scheme']} in {region['name']}, {place} (plan {region['plan']})")
    for region, on in answer["gateways"].items():
        typer.echo(f"gateways {'on' if on else 'off'} in {region}, as planned")


def _asked(url: str, order: dict[str, Any] | None) -> dict[str, Any]:
    import urllib.error
    import urllib.request

    import msgspec

    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SetupError(f"{url!r} is no HTTP address such as http://127.0.0.1:8080")
    host = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    target = urlunsplit((parts.scheme, host, "/transitions", "", ""))
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
