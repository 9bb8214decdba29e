"""``nearcast pub``: publish one event."""

import sys
from typing import Annotated

import typer

from nearcast.cli.client_options import (
    DEFAULT_URL,
    Authority,
    Password,
    Url,
    User,
    area_option,
    client_of,
    point_option,
    run,
)
from nearcast.cli.printing import say_json


def pub(
    topic: Annotated[str, typer.Argument(help="Topic, such as traffic/jam.")],
    payload: Annotated[str, typer.Argument(help="What to say; - reads it from the standard input.")] = "",
    url: Url = DEFAULT_URL,
    place: Annotated[str | None, typer.Option(metavar="LAT,LON", help="Where it happens.")] = None,
    reach: Annotated[
        str | None, typer.Option(help="Where it matters: metres around the place, or an area as JSON.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="CQL2", help="Whom it concerns: a filter on contexts.")] = None,
    when: Annotated[
        str | None, typer.Option(metavar="CQL2", help="When: a predicate such as overlaps(time, '-10m', 'now').")
    ] = None,
    attribute: Annotated[
        list[str] | None, typer.Option("--attribute", "-a", metavar="NAME=VALUE", help="May be repeated.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="May be repeated.")] = None,
    lifetime: Annotated[str | None, typer.Option(help="How long it exists, such as 5m.")] = None,
    event_id: Annotated[
        str | None, typer.Option("--id", help="Its id; one that is published twice counts once.")
    ] = None,
    qos: Annotated[int, typer.Option(min=0, max=2, help="Quality of service.")] = 1,
    retain: Annotated[bool, typer.Option("--retain", help="Keep it for whoever subscribes later.")] = False,
    user: User = None,
    password: Password = None,
    tls: Authority = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for the broker.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Publish an event and print its id."""
    at = point_option(place, "--place")
    area = area_option(reach, at, "--reach")
    attributes = _attributes(attribute or [])
    content = sys.stdin.buffer.read() if payload == "-" else payload.encode()
    client = client_of(url, user, password, tls, timeout)

    async def publish() -> str:
        async with client:
            return await client.publish(
                topic,
                content,
                place=at,
                reach=area,
                to=to,
                when=when,
                tags=tag or (),
                lifetime=lifetime,
                qos=qos,
                retain=retain,
                id=event_id,
                attributes=attributes,
            )

    published = run(publish())
    if as_json:
        say_json({"id": published, "topic": topic}, one_line=True)
    else:
        typer.echo(published)


def _attributes(texts: list[str]) -> dict[str, object]:
    """``NAME=VALUE`` as the wire contract reads values: numbers, true and false are that; a text that begins with / is a path."""
    from nearcast.client.attributes import attributes_of
    from nearcast.model.value_text import value_in

    named: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise typer.BadParameter(f"--attribute {text}: write NAME=VALUE, such as severity=4")
        named[name] = value_in(value)
    return attributes_of(named, None)
