"""Who is there, and where: physical truth beside what the broker knows of it."""

from __future__ import annotations

from typing import Final

from nearcast.records.column import Column, Kind, RecordTable, instant, measure, name, offset, place

POSITIONS: Final = RecordTable(
    "positions",
    "A client's true position, sampled by the simulator, whether it is up or not. Physical truth: for recall, precision and maps, never for delivery.",
    (
        instant("time", "when the sample was taken"),
        name("client", "whose position it is"),
        *place("the true position"),
        measure("speed", "metres per second"),
        Column(
            "heading",
            Kind.REAL,
            "direction of movement in degrees, clockwise from north; null for who stands still",
            nullable=True,
            minimum=0.0,
            maximum=360.0,
        ),
    ),
)

REPORTS: Final = RecordTable(
    "reports",
    "A position report that the broker accepted. This is what delivery speaks of: it counts until the client's next report.",
    (
        instant("time", "when the broker accepted the report"),
        name("client", "who reported"),
        *place("the reported position; null: the position is no longer known", nullable=True),
        offset(),
    ),
    optional=1,
)

LATE_REPORTS: Final = RecordTable(
    "late_reports",
    "A position report that came after a newer one: recorded, but it did not move its client. Simulations have none.",
    (
        instant("time", "when the broker got the report"),
        name("client", "who reported"),
        *place("the reported position"),
        instant("fixed", "when the client was there, as it said"),
        measure("accuracy", "metres, as it said; null: it did not", nullable=True),
        offset(),
    ),
)

CLIENTS: Final = RecordTable(
    "clients",
    "A client comes or goes, or says whether it takes what is addressed to it without a subscription.",
    (
        instant("time", "when the state began"),
        name("client", "who"),
        name(
            "state",
            "`joined` and `left` are on purpose; a client that `failed` said nothing, and may have `returned` later; `accepting` and `declining` hold until the client says otherwise or its session ends",
            *("joined", "left", "failed", "returned", "accepting", "declining"),
        ),
        offset(),
    ),
    optional=1,
)

CONTEXTS: Final = RecordTable(
    "contexts",
    "A client registered a context under a name, in place of an earlier one of that name, or deregistered it. Simulations have none.",
    (
        instant("time", "when it takes effect"),
        name("client", "whose context it is"),
        name("name", "its name among the client's own"),
        Column("attributes", Kind.TEXT, "JSON object of its attributes; null: it was deregistered", nullable=True),
        offset(),
    ),
)
