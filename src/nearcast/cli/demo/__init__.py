"""``nearcast demo``: the product at work, in a terminal.

``city`` moves a few thousand people about and publishes what they say, ``tally`` finds the receivers and compares them
with the definition, ``stories`` tells three of them, ``canvas`` and ``view`` draw.
"""

import sys
from typing import Annotated

import typer


def demo(
    headless: Annotated[
        bool, typer.Option("--headless", help="Print a short summary instead of a moving city.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0, help="How long the city moves before the stories are told.")] = 15.0,
    people: Annotated[int, typer.Option(min=100, help="How many people there are.")] = 3_000,
) -> None:
    """Show nearcast working: a living city, its messages, and three stories with explanations."""
    from nearcast.cli.demo.show import show, summarize

    drawable = sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf")
    if headless or not drawable:
        summarize(people)
    else:
        show(people, seconds)
