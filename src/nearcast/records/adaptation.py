"""Mechanisms that were exchanged while the system ran."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import RecordTable, instant, name, offset, place

# `source` and `target` rather than from and to: FROM is a reserved word in SQL.
TRANSITIONS: Final = RecordTable(
    "transitions",
    "A host exchanged a mechanism, or changed its parameters.",
    (
        instant("time", "when the new mechanism took over"),
        name("host", "where"),
        name("proxy", "whose mechanism was exchanged: `filter scheme`, `direct dissemination`"),
        name("source", "the mechanism before, with its parameters; null: none was running", nullable=True),
        name("target", "the mechanism from now on, with its parameters; null: none", nullable=True),
        *place("the host; null: it has none, as the broker", nullable=True),
        name("plan", "id of the execution plan that asked for it; null: self-healing", nullable=True),
        offset(),
    ),
    optional=1,
)
