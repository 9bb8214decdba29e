"""What was measured now and then while the system ran."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import Column, Kind, RecordTable, instant, name

METRICS: Final = RecordTable(
    "metrics",
    "A metric was sampled.",
    (
        instant("time", "when"),
        name("metric", "which, such as `clients up`, `cellular messages in flight`"),
        Column("value", Kind.REAL, "its value at that instant"),
    ),
)
