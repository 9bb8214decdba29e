"""``nearcast sub``: print events, one line each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from nearcast.cli.client_options import (
    DEFAULT_URL,
    Authority,
    Password,
    Url,
    User,
    area_option,
    client_of,
    event_tree,
    point_option,
    run,
)
from nearcast.cli.printing import say_json

if TYPE_CHECKING:
    from nearcast.client.client import Client
    from nearcast.client.events import Events
    from nearcast.model.event import Event
    from nearcast.model.geometry import Point


def sub(
    topic: Annotated[str, typer.Argument(metavar="FILTER", help="Topic filter, such as traffic/#.")],
    url: Url = DEFAULT_URL,
    within: Annotated[str | None, typer.Option(help="Metres around --at, or an area as JSON.")] = None,
    at: Annotated[str | None, typer.Option(metavar="LAT,LON", help="Where I am.")] = None,
    where: Annotated[str | None, typer.Option(metavar="CQL2", help="A filter on the event's attributes.")] = None,
    since: Annotated[str | None, typer.Option(help="Begin in the past: -2h, .. or RFC 3339.")] = None,
    until: Annotated[str | None, typer.Option(help="End: now, +10m or RFC 3339.")] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after so many events.")] = None,
    wait: Annotated[float | None, typer.Option(help="End after so many seconds without an event.")] = None,
    qos: Annotated[int, typer.Option(min=0, max=2, help="Quality of service.")] = 1,
    user: User = None,
    password: Password = None,
    tls: Authority = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the broker's answers.")] = 10.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document, a list; without an end, one document a line.")
    ] = False,
) -> None:
    """Print events as they come: place, time and content as asked for."""
    position = point_option(at, "--at")
    area = area_option(within, None, "--within")
    if area is not None and area.is_relative and position is None:
        # Nobody else can say where this client is: it would wait for ever.
        raise typer.BadParameter(f"--within {within} lies around you, and nothing says where that is: add --at LAT,LON")
    client = client_of(url, user, password, tls, timeout)
    events = client.subscribe(topic, within=area, where=where, since=since, until=until, qos=qos)
    ends = count is not None or until is not None or wait is not None
    if not as_json:
        run(_follow(client, events, position, count, wait, lambda event: typer.echo(line(event))))
    elif not ends:
        run(_follow(client, events, position, count, wait, lambda event: say_json(event_tree(event), one_line=True)))
    else:
        seen: list[Event] = []
        run(_follow(client, events, position, count, wait, seen.append))
        say_json([event_tree(event) for event in seen])


async def _follow(
    client: "Client",
    events: "Events",
    position: "Point | None",
    count: int | None,
    wait: float | None,
    show: Callable[["Event"], None],
) -> None:
    from nearcast.errors import TimedOut

    async with client:
        if position is not None:
            await client.update(lat=position.lat, lon=position.lon)
        async with events:
            seen = 0
            while count is None or seen < count:
                try:
                    event = await (events.next(wait) if wait is not None else anext(events))
                except (StopAsyncIteration, TimedOut):
                    return
                show(event)
                seen += 1


def line(event: "Event") -> str:
    """Time, topic, place, attributes and payload."""
    from nearcast.model.time import to_text
    from nearcast.model.value_text import value_text
    from nearcast.mqtt.positions import point_text

    parts = [to_text(event.published), event.topic]
    if event.place is not None:
        parts.append(f"at {point_text(event.place)}")
    parts += [f"{name}={value_text(name, value)}" for name, value in event.attributes.items()]
    parts += [f"#{tag}" for tag in sorted(event.tags)]
    parts.append(event.payload.decode(errors="backslashreplace"))
    # One line an event, whatever is in it; nothing in it may steer the terminal.
    return "  ".join(part if part.isprintable() else part.encode("unicode_escape").decode() for part in parts if part)
