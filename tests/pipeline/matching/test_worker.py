"""What a worker answers for a group is the definition of delivery; without Spark, so that many worlds can be tried."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.matching.worlds import Recording, recording, scripts

from nearcast.errors import HistoryNeeded
from nearcast.pipeline.matching.changes import CONTEXT, ENDED, EVENT, REPORT, SUBSCRIPTION
from nearcast.pipeline.matching.packing import EVENTS, OTHERS, REPORTS, sent
from nearcast.pipeline.matching.worker import BroadcastMatching, GroupMatching, Known

SCHEMA = pa.schema(
    {
        "time": pa.int64(), "offset": pa.int64(), "id": pa.string(), "kind": pa.int8(),
        "lat": pa.float64(), "lon": pa.float64(), "detail": pa.string(),
    }
)  # fmt: skip
IN_DETAIL = {
    CONTEXT: ("name", "attributes"),
    SUBSCRIPTION: ("subscription", "topic_filter", "radius", "area", "condition", "frame_since", "frame_until"),
    EVENT: ("topic", "reach", "reach_area", "addressing", "attributes", "tags"),
}
KINDS = {"reports": REPORT, "contexts": CONTEXT, "subscriptions": SUBSCRIPTION, "events": EVENT}


def rows_of(made: Recording) -> list[dict[str, Any]]:
    """The rows that Spark would hand to a worker, all in one group."""
    found = []
    for table, rows in made.tables.items():
        for row in rows:
            kind = ENDED if row.get("name") == "" else KINDS[table]
            said = {name: row.get(name) for name in IN_DETAIL.get(kind, ())}
            if row.get("action") == "unsubscribed":
                said = {"subscription": row["subscription"]}
            kept = {name: value for name, value in said.items() if value is not None}
            detail = msgspec.json.encode(kept).decode() if said else None
            same = {name: row.get(name) for name in ("time", "offset", "lat", "lon")}
            found.append({**same, "id": row["event" if kind == EVENT else "client"], "kind": kind, "detail": detail})
    return found


def split(rows: list[dict[str, Any]]) -> dict[int, pa.Table]:
    """The tables that a worker gets."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    reports, events = (pc.field("kind") == kind for kind in (REPORT, EVENT))
    return {
        EVENTS: table.filter(events).rename_columns({"id": "event"}).drop_columns(["kind", "offset"]),
        REPORTS: table.filter(reports).rename_columns({"id": "client"}).drop_columns(["kind", "detail"]),
        OTHERS: table.filter(~(events | reports)).rename_columns({"id": "client"}).drop_columns(["lat", "lon"]),
    }


def packed(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """The same as a batch of blobs."""
    return next(sent(((0,), content, part) for content, part in split(rows).items() if len(part)))


def answers(batches: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            assert row["event"] not in found, "an event has two rows"
            assert len(set(row["receivers"])) == len(row["receivers"]), "somebody is named twice"
            found[row["event"]] = set(row["receivers"])
    return found


@given(script=scripts, shuffled=st.randoms(use_true_random=False))
@settings(max_examples=150)
def test_a_group_is_matched_as_the_definition_says_in_whatever_order_its_rows_come(
    script: list[Any], shuffled: Any
) -> None:
    made = recording([script])
    rows = rows_of(made)
    shuffled.shuffle(rows)
    cut = len(rows) // 2
    batches = [packed(part) for part in (rows[:cut], rows[cut:])]
    assert answers(GroupMatching(rich=True)(batches)) == made.expected


@given(script=scripts)
@settings(max_examples=60)
def test_events_that_pass_by_a_state_are_matched_as_if_all_came_at_its_end(script: list[Any]) -> None:
    last = max(second for second, *_ in script)
    changes = [operation for operation in script if operation[1] != "publish"]
    made = recording([[*changes, *((last, *rest) for _, *rest in script if rest[0] == "publish")]])
    tables = split(rows_of(made))
    events = tables[EVENTS]
    matching = BroadcastMatching(Known(tables[REPORTS], tables[OTHERS]), f"{script!r}", rich=True)
    batches = [batch for part in (events[:1], events[1:]) for batch in part.to_batches()]
    assert answers(matching(batches)) == made.expected


def test_a_condition_that_asks_for_directions_is_refused() -> None:
    held = {"subscription": "", "topic_filter": "#", "condition": "distance_decreases()"}
    subscription = {
        "group": 0,
        "kind": SUBSCRIPTION,
        "time": 1,
        "id": "ada",
        "detail": msgspec.json.encode(held).decode(),
    }
    event = {"kind": EVENT, "time": 1, "id": "e", "detail": '{"topic": "a"}'}
    with pytest.raises(HistoryNeeded, match="previous event"):
        answers(GroupMatching(rich=True)([packed([subscription, event])]))


def test_an_addressing_that_speaks_of_other_times_is_refused() -> None:
    detail = msgspec.json.encode({"topic": "a", "addressing": "overlaps(time, '-10m', 'now')"}).decode()
    event = {"kind": EVENT, "time": 1, "id": "e", "detail": detail}
    with pytest.raises(HistoryNeeded, match="other times"):
        answers(GroupMatching(rich=True)([packed([event])]))
