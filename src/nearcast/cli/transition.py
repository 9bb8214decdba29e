"""``nearcast transition``: have a running broker exchange its filter scheme, or show which one it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from nearcast.cli.asking import ADDRESS, asked
from nearcast.cli.printing import say_json


def transition(
    scheme: Annotated[
        str | None, typer.Argument(help="Such as RADIAL or 'EGRID(factor=10)'; without one, show what runs.")
    ] = None,
    url: ADDRESS = "http://127.0.0.1:8080",
    client: Annotated[list[str] | None, typer.Option(help="Only this client (repeat for several).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Exchange the filter scheme of a running broker; nothing is lost or doubled meanwhile."""
    order = None if scheme is None else {"scheme": scheme, "clients": client or None}
    answer = asked(url, "/transitions", order)
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
