"""``nearcast serve``: the broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.printing import tell
from nearcast.errors import InvalidSettings

if TYPE_CHECKING:
    from nearcast.broker.http.app import More
    from nearcast.broker.settings import BrokerSettings, Port


def serve(
    port: Annotated[str | None, typer.Option(help="Port for MQTT (default 1883; any or 0: a free one; off).")] = None,
    http_port: Annotated[
        str | None, typer.Option(help="Port for HTTP (default 8080; any or 0: a free one; off).")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder for all that the broker keeps.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings file (TOML), see docs/broker.md.")] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT", help="A broker of the federation to join (repeatable), see docs/federation.md."
        ),
    ] = None,
    federate: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where to listen for other brokers (port 0: a free one).")
    ] = None,
    federation_secret_file: Annotated[
        Path | None, typer.Option(help="What all brokers of the federation know: openssl rand -hex 32.")
    ] = None,
    broker_name: Annotated[str | None, typer.Option("--name", help="Of this broker, in its federation.")] = None,
    dashboard: Annotated[
        bool | None,
        typer.Option("--dashboard/--no-dashboard", help="The live map on the HTTP port, see docs/dashboard.md."),
    ] = None,
    map_file: Annotated[
        Path | None,
        typer.Option("--map", metavar="FILE", help="Streets for the live map: OpenStreetMap file or scenario."),
    ] = None,
) -> None:
    """Run the broker until it is told to stop (Ctrl-C, SIGTERM). SIGHUP has it read its settings anew."""
    import resource

    import uvloop

    from nearcast.broker.logs import set_up
    from nearcast.broker.server import Server
    from nearcast.broker.server import serve as run
    from nearcast.broker.settings import BrokerSettings, load
    from nearcast.matching.compilation import compile_kernels, is_compiled

    said = {"port": port_option("--port", port), "http_port": port_option("--http-port", http_port)}

    def read() -> BrokerSettings:
        """Also when they are read anew: what the command line says holds against the file."""
        settings = (BrokerSettings() if config is None else load(config)).changed(
            data=data,
            port=said["port"],
            http_port=said["http_port"],
            federation={
                "join": tuple(join or ()),
                "listen": federate,
                "secret_file": federation_secret_file,
                "name": broker_name,
            },
            dashboard={"enabled": dashboard, "map": map_file},
        )
        for check in (settings.schemes.initial, settings.schemes.ground, settings.schemes.transition_rules):
            check()  # before any port is open
        return settings

    settings = read()
    set_up(settings.log)
    if not is_compiled():
        tell("compiling, once on this machine: half a minute")
        compile_kernels()
    # Every connection is an open file; the usual limit is there for programs of another kind.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

    def ready(server: Server) -> None:
        for name, (host, number) in server.addresses.items():
            tell(f"{name} on {host}:{number}")
        shown = next((each for each in ("https", "http") if each in server.addresses), None)
        if settings.dashboard.enabled and shown is not None:
            host, number = server.addresses[shown]
            tell(f"dashboard on {shown}://{f'[{host}]' if ':' in host else host}:{number}/dashboard/")
        tell(f"data in {settings.data}")
        tell("ready")

    uvloop.run(run(settings, ready, _dashboard(settings), read))


def _dashboard(settings: BrokerSettings) -> More | None:
    """What the dashboard adds to the HTTP listener; its map is read before any port is open."""
    if not settings.dashboard.enabled or settings.listen.http_port == "off":
        return None
    from nearcast.dashboard.application import dashboard

    return dashboard(settings.dashboard)


def port_option(option: str, asked: str | None) -> Port | None:
    """A port as an option gives it."""
    from nearcast.broker.settings import port_in

    try:
        return None if asked is None else port_in(asked)
    except InvalidSettings as error:
        raise typer.BadParameter(str(error), param_hint=option) from None
