"""How commands print: their result on stdout, all else on stderr, so that a result can be read by another program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH: Final = 180
"""Columns of what is no terminal: Rich would take 80, which breaks the rows of tables."""


def say_json(document: Any, *, one_line: bool = False) -> None:
    """Print one JSON document; with ``one_line``, as one of many."""
    import msgspec

    encoded = msgspec.json.encode(document)
    # As bytes: JSON is UTF-8, whatever the terminal's language is.
    typer.echo(encoded if one_line else msgspec.json.format(encoded, indent=2))


def tell(text: str) -> None:
    """Print on stderr: what somebody who looks wants to know, and no program reads."""
    typer.echo(text, err=True)


def console(*, stderr: bool = False) -> Console:
    """For tables, colours and bars."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else PLAIN_WIDTH)
