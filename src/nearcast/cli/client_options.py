"""What the commands that connect to a broker have in common."""

from __future__ import annotations

import base64
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from nearcast.client.client import Client
    from nearcast.model.area import Area
    from nearcast.model.event import Event
    from nearcast.model.geometry import Point

Url = Annotated[
    str, typer.Option(envvar="NEARCAST_URL", help="Where the broker is: mqtt://, mqtts://, ws:// or wss://.")
]
User = Annotated[str | None, typer.Option(envvar="NEARCAST_USER", help="User name, if the broker asks for one.")]
Password = Annotated[
    str | None, typer.Option(envvar="NEARCAST_PASSWORD", help="Password; better given in the environment.")
]
Authority = Annotated[
    str | None,
    typer.Option("--tls", metavar="FILE", help="Certificates (PEM) of who signed the broker's, for mqtts://."),
]
DEFAULT_URL = "mqtt://localhost"

Answer = TypeVar("Answer")


def client_of(url: str, user: str | None, password: str | None, authority: str | None, seconds: float = 30) -> Client:
    from nearcast.client.client import connect

    # What is asked for once, from one place, need not take part in filter schemes.
    return connect(url, user=user, password=password, tls=authority, timeout=seconds, schemes=False)


def run(work: Coroutine[Any, Any, Answer]) -> Answer:
    import asyncio

    return asyncio.run(work)


def point_option(text: str | None, option: str) -> Point | None:
    from nearcast.errors import InvalidInput
    from nearcast.mqtt.positions import point_in

    try:
        return None if text is None else point_in(text)
    except InvalidInput as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def area_option(text: str | None, at: Point | None, option: str) -> Area | None:
    """Metres, or an area as JSON; around ``at`` if it does not say where it lies."""
    from nearcast.errors import InvalidInput
    from nearcast.model.area_text import area_in

    if text is None:
        return None
    try:
        area = area_in(text)
        return area.anchored(at) if at is not None and area.is_relative else area
    except InvalidInput as error:
        raise typer.BadParameter(f"{option}: {error}") from None


def event_tree(event: Event) -> dict[str, Any]:
    """An event as JSON; parts that it does not have are left out."""
    from nearcast.model.area_text import area_tree
    from nearcast.model.predicate_text import to_text as predicate_text
    from nearcast.model.time import to_text
    from nearcast.model.value_text import tree_of_value

    place = event.place
    parts = {
        "id": event.id,
        "topic": event.topic,
        "published": to_text(event.published),
        "place": None if place is None else {"lat": place.lat, "lon": place.lon},
        "reach": None if event.reach is None else area_tree(event.reach),
        "to": None if event.to is None else predicate_text(event.to),
        "attributes": {name: tree_of_value(name, value) for name, value in event.attributes.items()} or None,
        "tags": sorted(event.tags) or None,
        **_payload(event.payload),
    }
    return {name: part for name, part in parts.items() if part is not None}


def _payload(payload: bytes) -> dict[str, str]:
    try:
        return {"payload": payload.decode()}
    except UnicodeDecodeError:
        return {"payload_base64": base64.b64encode(payload).decode()}
