"""``nearcast demo crowd``: a crowd in a stadium keeps what its members publish, without any infrastructure.

``fan`` is one process: somebody in the stand who takes orders.  ``stand`` starts them, gives the orders and waits for what must
come of them; ``story`` is what happens, ``board`` shows it.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def crowd(
    processes: Annotated[int, typer.Option(min=6, max=40, help="How many people come, one process each.")] = 10,
    address: Annotated[
        str, typer.Option(help="Of the network interface, IPv4; it must be able to multicast.")
    ] = "127.0.0.1",
    headless: Annotated[
        bool, typer.Option("--headless", help="Print what happens instead of drawing the stand.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Ten processes in a stadium: what they publish is kept by the crowd, which changes its mechanism when it grows."""
    from dataclasses import asdict

    from nearcast.cli.demo.running import run
    from nearcast.cli.demo.stadium.board import Board, Log, Silent, summarize
    from nearcast.cli.demo.stadium.stand import StandSettings
    from nearcast.cli.demo.stadium.story import tell_story
    from nearcast.cli.printing import say_json

    drawable = sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf")
    board = Silent() if as_json else Board() if drawable and not headless else Log()
    outcome = run(tell_story(StandSettings(processes=processes, address=address), board))
    if as_json:
        say_json(asdict(outcome))
    else:
        summarize(outcome)
