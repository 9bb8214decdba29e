"""``nearcast watch``: a live map of events in the terminal."""

from contextlib import suppress
from typing import Annotated

import typer

from nearcast.cli.client_options import DEFAULT_URL, Authority, Password, Url, User, client_of, point_option, run


def watch(
    topic: Annotated[str, typer.Argument(metavar="FILTER", help="Topic filter.")] = "#",
    url: Url = DEFAULT_URL,
    at: Annotated[
        str | None,
        typer.Option(metavar="LAT,LON", help="Where I am: the middle of the map (otherwise the first event)."),
    ] = None,
    within: Annotated[float, typer.Option(min=1, help="Metres from the middle of the map to its edge.")] = 1000.0,
    where: Annotated[str | None, typer.Option(metavar="CQL2", help="A filter on the event's attributes.")] = None,
    since: Annotated[str | None, typer.Option(help="Begin in the past: -2h, .. or RFC 3339.")] = None,
    headless: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Print a picture each second, and end after so many.")
    ] = None,
    user: User = None,
    password: Password = None,
    tls: Authority = None,
) -> None:
    """Show events on a map as they come, with a list of the newest and how many there are."""
    from nearcast.cli.watch_picture import Picture
    from nearcast.cli.watching import watching

    centre = point_option(at, "--at")
    picture = Picture(topic, within, centre, me=centre is not None)
    client = client_of(url, user, password, tls)
    area = None if centre is None else within
    events = client.subscribe(topic, within=area, at=centre, where=where, since=since, qos=0)
    with suppress(KeyboardInterrupt):
        run(watching(client, events, picture, headless))
