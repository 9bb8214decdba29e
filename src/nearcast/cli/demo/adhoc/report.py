"""What came of it, as a table."""

from __future__ import annotations

from rich.table import Table

from nearcast.cli.demo.adhoc.street import Outcome
from nearcast.cli.printing import console

_COLUMNS = ("process", "sent", "heard", "delivered", "forwarded", "duplicates suppressed", "mechanism now")


def show(outcome: Outcome) -> None:
    table = Table(box=None)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name in ("process", "mechanism now") else "right")
    for row in outcome.rows:
        numbers = (row.sent, row.heard, row.delivered, row.forwarded, row.suppressed)
        table.add_row(f"{row.process} ({row.pid})", *map(str, numbers), row.mechanism)
    screen = console()
    screen.print(table)
    switched = sum(row.mechanism == outcome.then for row in outcome.rows)
    doubled = sum(row.doubled for row in outcome.rows)
    screen.print(f"{switched} of {len(outcome.rows)} processes have changed from {outcome.first} to {outcome.then}")
    screen.print(
        f"{outcome.events} events, {outcome.due} copies due by the definition of delivery, {outcome.arrived} arrived"
        f" (recall {outcome.recall:.3f}), {outcome.stray} to somebody too far away, {doubled} doubled"
    )
