"""``nearcast demo adhoc``: events from process to process over UDP multicast, without any infrastructure.

``walker`` is one process: somebody who walks, talks to those around, and takes orders.  ``street`` starts them, lets one of them exchange the
mechanism while they talk, and compares what everybody got with the definition of delivery; ``report`` shows it.
"""

from __future__ import annotations

from typing import Annotated

import typer


def adhoc(
    processes: Annotated[int, typer.Option(min=2, max=100, help="How many people walk there, one process each.")] = 10,
    seconds: Annotated[
        float, typer.Option(min=2, help="How long they talk; half-way the mechanism is exchanged.")
    ] = 10.0,
    first: Annotated[str, typer.Option(help="The mechanism with which they start, such as 'FLOODING'.")] = "FLOODING",
    then: Annotated[str, typer.Option(help="To which one of them changes, and the others after it.")] = "GOSSIP(p=0.7)",
    radius: Annotated[
        float, typer.Option("--range", min=1, help="How far a radio reaches, in metres; emulated.")
    ] = 60.0,
    address: Annotated[
        str, typer.Option(help="Of the network interface, IPv4; it must be able to multicast.")
    ] = "127.0.0.1",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """Ten processes spread events from one to the other, and exchange the mechanism meanwhile."""
    from dataclasses import asdict

    from nearcast.cli.demo.adhoc.report import show
    from nearcast.cli.demo.adhoc.street import Street, StreetSettings
    from nearcast.cli.demo.running import run
    from nearcast.cli.printing import say_json, tell

    settings = StreetSettings(
        processes=processes, seconds=seconds, first=first, then=then, radius=radius, address=address
    )
    outcome = run(Street(settings, (lambda _: None) if as_json else tell).perform())
    if as_json:
        say_json(asdict(outcome))
    else:
        show(outcome)
