"""``nearcast serve``: the broker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer


def serve(
    port: Annotated[int | None, typer.Option(help="Port for MQTT (default 1883; 0: any free one).")] = None,
    http_port: Annotated[int | None, typer.Option(help="Port for HTTP (default 8080; 0: any free one).")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder for all that the broker keeps.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file (TOML), see docs/broker.md.")] = None,
) -> None:
    """Run the broker until it is told to stop (Ctrl-C, SIGTERM)."""
    import resource

    import uvloop

    from nearcast.broker.logs import set_up
    from nearcast.broker.server import Server
    from nearcast.broker.server import serve as run
    from nearcast.broker.settings import BrokerSettings, load

    settings = BrokerSettings() if config is None else load(config)
    settings = settings.changed(data=data, port=_port(port), http_port=_port(http_port))
    for check in (settings.schemes.initial, settings.schemes.ground, settings.schemes.transition_rules):
        check()  # before any port is open
    set_up(settings.log)
    # Every connection is an open file; the usual limit is there for programs of another kind.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def ready(server: Server) -> None:
        for name, (host, number) in server.addresses.items():
            print(f"{name} on {host}:{number}", file=sys.stderr)
        print("ready", file=sys.stderr, flush=True)

    uvloop.run(run(settings, ready))


def _port(asked: int | None) -> int | Literal["any"] | None:
    return "any" if asked == 0 else asked
