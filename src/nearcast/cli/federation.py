"""``nearcast federation``: whom a running broker is linked with, what waits for whom, and whom nobody should wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from nearcast.cli.asking import ADDRESS, asked
from nearcast.cli.printing import say_json
from nearcast.errors import SetupError

app = typer.Typer(invoke_without_command=True)


@app.callback()
def federation(
    context: typer.Context,
    url: ADDRESS = "http://127.0.0.1:8080",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show the federation as a running broker sees it: neighbours, tree, and what it keeps for others."""
    if context.invoked_subcommand is not None:
        return
    status = asked(url, "/status")["federation"]
    if status is None:
        raise SetupError("this broker is alone; let it join others: nearcast serve --join HOST:PORT")
    if as_json:
        say_json(status, one_line=True)
        return
    for line in _lines(status):
        typer.echo(line)


@app.command()
def forget(
    name: Annotated[str, typer.Argument(help="Of a broker that is out of reach and will not come back.")],
    url: ADDRESS = "http://127.0.0.1:8080",
) -> None:
    """Have all brokers give up what they keep for one that will not come back; should it come all the same, it is welcome."""
    answer = asked(url, "/federation/forgotten", {"name": name})
    typer.echo(f"{name} is forgotten; {answer['parcels']} parcels that waited for it here are given up")


def _lines(status: dict[str, Any]) -> Iterator[str]:
    yield f"{status['address']}: {sum(status['brokers'].values())} other brokers in reach"
    for broker, reachable in status["brokers"].items():
        waiting = status["custody"]["stranded"].get(broker, 0)
        owed = f", {waiting} parcels wait for it" if waiting else ""
        yield f"  {broker}: {'in reach' if reachable else 'out of reach'}{owed}"
    edges = ", ".join(" - ".join(end.partition("@")[0] for end in edge) for edge in status["edges"])
    yield f"tree: {edges or 'nobody else'}"
    custody, events, roaming = status["custody"], status["events"], status["roaming"]
    yield f"kept for others: {custody['parcels']} parcels, {custody['bytes']} bytes; given up: {custody['expired']}"
    yield f"events: {events['sent']} sent, {events['arrived']} arrived, {events['repeated']} of them again"
    yield (
        f"clients: {roaming['arrived']} came from other brokers, {roaming['departed']} went to one, "
        f"{roaming['relayed']} messages followed them"
    )
