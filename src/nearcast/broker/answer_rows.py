"""Answers as they come, an Arrow stream of rows (``records.answers``), and as they are delivered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from nearcast.errors import InvalidInput, InvalidRecord
from nearcast.model.area_text import area_in
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import Instant
from nearcast.model.value_text import value_of_tree
from nearcast.mqtt import names
from nearcast.mqtt.publication import delivery_properties
from nearcast.records.answers import ANSWERS
from nearcast.records.conversion import from_columns
from nearcast.records.strange import strange_table_in


@dataclass(frozen=True, slots=True)
class Answer:
    """An event of the past for one client."""

    key: str
    client: str
    event: str
    offset: int
    published: Instant
    topic: str
    payload: bytes
    lifetime: int | None
    subscription: str | None
    properties: tuple[tuple[str, str], ...]
    """All that the client is told beside topic and payload."""


def answers_in(data: bytes) -> list[Answer]:
    """The answers of an Arrow stream, or ``InvalidInput``; for a worker thread."""
    import pyarrow as pa

    table = strange_table_in(data)
    arrays = from_columns(ANSWERS, dict(zip(table.column_names, table.columns, strict=True)))
    columns = dict(zip(ANSWERS.column_names, arrays, strict=True))
    columns["time"] = columns["time"].cast(pa.int64())
    rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
    return [_answer(number, dict(zip(columns, row, strict=True))) for number, row in enumerate(rows)]


def _answer(number: int, row: dict[str, Any]) -> Answer:
    try:
        properties = delivery_properties(_event(row))
    except (InvalidInput, msgspec.DecodeError) as error:
        raise InvalidRecord(f"row {number} (from 0) of the answers cannot be delivered: {error}") from None
    if row["number"] is not None and row["total"] is not None:
        properties = [*properties, (names.PAST, f"{row['number']} of {row['total']}")]
    return Answer(
        row["key"],
        row["client"],
        row["event"],
        row["offset"],
        row["time"],
        row["topic"],
        row["payload"] or b"",
        row["lifetime"],
        row["subscription"],
        tuple(properties),
    )


def _event(row: dict[str, Any]) -> Event:
    trees = {} if row["attributes"] is None else msgspec.json.decode(row["attributes"], type=dict[str, Any])
    return Event(
        row["event"],
        row["topic"],
        row["time"],
        {name: value_of_tree(tree) for name, tree in trees.items()},
        row["tags"] or (),
        row["payload"] or b"",
        None,
        None if row["lat"] is None or row["lon"] is None else Point(row["lat"], row["lon"]),
        None if row["reach_area"] is None else area_in(row["reach_area"]),
        lifetime=row["lifetime"],
    )
