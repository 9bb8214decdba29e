"""``nearcast explain``: why a client of a running broker got an event, or did not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from nearcast.cli.asking import ADDRESS, asked
from nearcast.cli.printing import say_json

if TYPE_CHECKING:
    from nearcast.model.explanation import Explanation


def explain(
    event: Annotated[str, typer.Argument(help="Its id, as `nearcast pub` prints it and nc-id says it.")],
    client: Annotated[str, typer.Argument(help="Its client id.")],
    url: ADDRESS = "http://127.0.0.1:8080",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say term by term why a running broker delivered an event to a client, or did not, by what was known at the time."""
    answer = asked(url, "/explain", query=urlencode({"event": event, "client": client}))
    if as_json:
        say_json(answer, one_line=True)
        return
    for line in _lines(answer):
        typer.echo(line)


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    about = answer["event"]
    place = "" if about["place"] is None else f", at {about['place']['lat']:.5f},{about['place']['lon']:.5f}"
    yield f"{about['event']} on {about['topic']}, published {about['at']}{place}"
    yield f"{'was' if answer['delivered'] else 'was not'} sent to {answer['client']}"
    yield str(_explanation(answer["tree"]))
    if answer["note"] is not None:
        yield f"note: {answer['note']}"


def _explanation(term: dict[str, Any]) -> Explanation:
    from nearcast.model.explanation import Explanation

    return Explanation(term["what"], term["ok"], term["text"], tuple(map(_explanation, term["children"])))
