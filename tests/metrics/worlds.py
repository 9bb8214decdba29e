"""Small recordings, random and by hand, as Arrow tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from nearcast.records import arrow_schema, table
from nearcast.records.arrow import plain_schema

CLIENTS = ("ada", "bob", "cäcilie", "dan")
PLACE = {"lat": None, "lon": None, "reach": None}
Row = dict[str, Any]


def as_table(name: str, rows: list[Row], *, pieces: int = 1, plain: bool = False) -> Any:
    """A record table of these rows; in pieces, each numbers its names anew; plain ones have no numbers (as from Spark)."""
    schema = (plain_schema if plain else arrow_schema)(table(name))
    size = max(1, -(-len(rows) // pieces))
    parts = [rows[start : start + size] for start in range(0, len(rows), size)] or [[]]
    return pa.concat_tables([pa.Table.from_pylist(part, schema) for part in parts])


def event(name: str, time: int, publisher: str | None, receivers: list[str] | None, **more: Any) -> Row:
    row = {"event": name, "time": time, "publisher": publisher, "receivers": receivers, "topic": "t", "bytes": 1}
    return {**row, **PLACE, "workload": None, **more}


def notification(name: str, client: str, *, outcome: str = "delivered", delay: int = 7, time: int = 0) -> Row:
    row = {"event": name, "client": client, "outcome": outcome, "delay": delay, "time": time}
    return {**row, "path": "cloud", "hops": 2}


@dataclass(frozen=True)
class World:
    events: list[Row]
    notifications: list[Row]
    pieces: int = 1
    plain: bool = False

    def tables(self) -> tuple[Any, Any]:
        return (
            as_table("events", self.events, pieces=self.pieces, plain=self.plain),
            as_table("notifications", self.notifications, pieces=self.pieces, plain=self.plain),
        )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    clients = st.sampled_from(CLIENTS)
    number = draw(st.integers(0, 6))
    events = [
        event(
            f"e{place}",
            draw(st.integers(0, 40)),
            draw(st.none() | clients),
            # With repetitions, and at times with the publisher among them.
            draw(st.none() | st.lists(clients, max_size=5)),
            workload=draw(st.sampled_from([None, "AR", "LBS"])),
            lat=draw(st.none() | st.sampled_from([49.87, 49.88])),
            lon=8.65,
        )
        for place in range(number)
    ]
    ids = st.sampled_from([f"e{place}" for place in range(number)] + ["nobody knows"])
    notifications = draw(
        st.lists(
            st.builds(
                notification,
                ids,
                clients,
                outcome=st.sampled_from(["delivered", "duplicate", "unwanted"]),
                delay=st.integers(0, 20),
            ),
            max_size=25,
        )
    )
    return World(events, notifications, draw(st.integers(1, 3)), draw(st.booleans()))
