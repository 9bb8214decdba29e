"""What clients sent and received, counted message by message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import Row, as_table

from nearcast.errors import UnknownName
from nearcast.metrics import KIND_CLASSES, Windows, carried, flows
from nearcast.model.time import MICROSECONDS

CLIENTS = ("ada", "bob", "cid")
hosts = st.sampled_from([*CLIENTS, "broker"])


def message(sender: str, receiver: str | None, **more: Any) -> Row:
    row: Row = {"time": 0, "ended": 1, "interface": "cellular", "kind": "event", "bytes": 100, "outcome": "received"}
    return {**row, "sender": sender, "receiver": receiver, "received": 1, **more}


@st.composite
def messages(draw: st.DrawFn) -> Row:
    sender, receiver = draw(hosts), draw(st.none() | hosts)
    arrived = draw(st.booleans())
    outcome = "received" if arrived else "receiver down"
    received = int(arrived)
    if receiver is None:
        outcome, received = "sent", draw(st.integers(0, 3))
    time = draw(st.sampled_from([0, 1, 2 * MICROSECONDS - 1, 2 * MICROSECONDS, 5 * MICROSECONDS - 1]))
    return message(
        sender,
        receiver,
        time=time,
        ended=time + draw(st.sampled_from([0, 1, 2 * MICROSECONDS])),
        interface=draw(st.sampled_from(["cellular", "wifi"])),
        kind=draw(st.sampled_from(["event", "context", "plan", "riddle"])),
        bytes=draw(st.integers(0, 300)),
        outcome=outcome,
        received=received,
    )


def by_hand(rows: list[Row]) -> list[tuple[int, str | None, str, str, str, int, int]]:
    """(time, client, interface, direction, class, messages, bytes)"""
    found = []
    for row in rows:
        rest = row["interface"], KIND_CLASSES.get(row["kind"], "other")
        refused = row["outcome"] == "receiver down" and row["ended"] == row["time"]
        if row["sender"] in CLIENTS and not refused:
            found.append((row["time"], row["sender"], rest[0], "upload", rest[1], 1, row["bytes"]))
        if row["receiver"] != "broker" and row["received"]:
            size = row["bytes"] * row["received"]
            found.append((row["ended"], row["receiver"], rest[0], "download", rest[1], row["received"], size))
    return found


@given(st.lists(messages(), max_size=20), st.integers(1, 3))
def test_totals_count_every_copy_once_by_interface_direction_and_class(rows: list[Row], pieces: int) -> None:
    number: Counter[Any] = Counter()
    size: Counter[Any] = Counter()
    together: Counter[Any] = Counter()
    for _, _, interface, direction, kind_class, copies, carried_bytes in by_hand(rows):
        number[interface, direction, kind_class] += copies
        size[interface, direction, kind_class] += carried_bytes
        together[interface, direction] += carried_bytes
    table = flows(as_table("messages", rows, pieces=pieces), CLIENTS).totals().to_pylist()
    assert {(row["interface"], row["direction"], row["class"]): row["messages"] for row in table} == dict(number)
    for row in table:
        key = row["interface"], row["direction"], row["class"]
        assert row["bytes"] == size[key]
        whole = together[key[:2]]
        assert row["share"] == (pytest.approx(size[key] / whole) if whole else None)


@given(
    st.lists(messages(), max_size=20),
    st.sampled_from(["upload", "download"]),
    st.sampled_from([None, "cellular"]),
    st.sampled_from([None, "event", "other"]),
)
def test_rates_are_bits_by_seconds_of_each_client_in_each_window(
    rows: list[Row], direction: str, interface: str | None, kind_class: str | None
) -> None:
    windows = Windows(0, 5 * MICROSECONDS, 2 * MICROSECONDS)
    expected = np.zeros((3, len(CLIENTS)))
    everybody = np.zeros(3)
    for time, client, over, towards, of, _, size in by_hand(rows):
        if time >= windows.until or direction != towards or interface not in (None, over):
            continue
        if kind_class in (None, of):
            window = time // windows.length
            kilobits = size * 8 / 1000 / (1 if window == 2 else 2)
            everybody[window] += kilobits
            if client is not None:
                expected[window, CLIENTS.index(client)] += kilobits
    found = flows(as_table("messages", rows), CLIENTS)
    assert found.rates(windows, direction, interface=interface, kind_class=kind_class) == pytest.approx(expected)
    assert found.total_rates(windows, direction, interface=interface, kind_class=kind_class) == pytest.approx(everybody)


def test_upload_counts_when_it_is_handed_in_and_download_when_it_has_arrived() -> None:
    rows = [message("ada", "broker", time=5, ended=15), message("broker", "ada", time=5, ended=15)]
    found, windows = flows(as_table("messages", rows), CLIENTS), Windows(0, 20, 10)
    assert found.total_rates(windows, "upload").astype(bool).tolist() == [True, False]
    assert found.total_rates(windows, "download").astype(bool).tolist() == [False, True]


def test_a_mapping_may_class_kinds_otherwise() -> None:
    classes: Mapping[str, str] = {"event": "payload"}
    rows = [message("ada", "broker"), message("ada", "broker", kind="context", bytes=300)]
    table = flows(as_table("messages", rows), CLIENTS, classes=classes).totals()
    assert dict(zip(table["class"].to_pylist(), table["share"].to_pylist(), strict=True)) == {
        "payload": 0.25,
        "other": 0.75,
    }


def test_unknown_directions_and_classes_are_refused_but_a_silent_interface_is_silent() -> None:
    found, windows = flows(as_table("messages", [message("ada", "broker")]), CLIENTS), Windows(0, 10, 10)
    assert not found.rates(windows, "upload", interface="wifi").any()
    with pytest.raises(UnknownName, match="download, upload"):
        found.rates(windows, "sent")
    with pytest.raises(UnknownName, match="context, coordination, event"):
        found.rates(windows, "upload", kind_class="contexts")


def test_the_table_of_traffic_gives_the_whole_run_without_the_broker() -> None:
    row: Row = {"since": 0, "until": 9, "interface": "cellular", "kind": "event", "messages": 2, "bytes": 60}
    table = carried(
        as_table(
            "traffic",
            [
                {**row, "direction": "sent", "host": "ada"},
                {**row, "direction": "sent", "host": "bob", "kind": "plan done", "bytes": 20},
                {**row, "direction": "received", "host": "bob"},
                {**row, "direction": "sent", "host": "broker"},
            ],
        )
    )
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("cellular", "download", "event", 2, 60, 1.0),
        ("cellular", "upload", "coordination", 2, 20, 0.25),
        ("cellular", "upload", "event", 2, 60, 0.75),
    ]
