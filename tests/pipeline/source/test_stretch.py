"""Any offsets come once, whether they are in the lake, in the journal, or on their way from one to the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.clocks import START
from tests.pipeline.source.live_broker import LiveBroker, live_broker

from nearcast.errors import ConnectionFailed, Denied, InvalidSettings, OffsetTrimmed
from nearcast.journal import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    LateReportEntry,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.journal.entries import Record
from nearcast.journal.rows import ROWS
from nearcast.pipeline.source import link, options, stretch
from nearcast.pipeline.source.lake import TimeBounds
from nearcast.pipeline.source.stretch import JournalTable
from nearcast.records import table as table_of
from nearcast.records.arrow import plain_schema

DAY = 86_400_000_000
ALWAYS = TimeBounds()


def opened(broker: LiveBroker | None, name: str = "events", lake: Path | None = None, **more: str) -> JournalTable:
    given = {"table": name, **more}
    if broker is not None:
        given["broker"] = broker.url
    if lake is not None:
        given["lake"] = str(lake)
    return JournalTable(options.reading(given))


def rows(table: JournalTable, name: str, first: int, last: int, bounds: TimeBounds = ALWAYS) -> list[tuple[Any, ...]]:
    schema = plain_schema(table_of(name))
    found = pa.Table.from_batches(table.batches(schema, first, last, bounds), schema)
    found = found.set_column(0, "time", found["time"].cast(pa.int64()))
    return [tuple(row.values()) for row in found.to_pylist()]


def offsets(table: JournalTable, first: int, last: int, name: str = "events", bounds: TimeBounds = ALWAYS) -> list[int]:
    return [row[-1] for row in rows(table, name, first, last, bounds)]


def event(number: int, at: int = 0) -> EventEntry:
    return EventEntry(f"e{number}", "city/jam", START + at + number, b"x")


def every_kind(at: int) -> list[Record]:
    full = EventEntry(
        *("e1", "city/jam", at, b"\x00\xff", "p", 1, ("r1", "r2"), 49.5, 8.5, "500", "kind = 'car'", "WAS_HERE", 9),
        attributes=(("speed", "3.5"), ("über", "ja")),
        tags=("a", "b"),
    )
    return [
        full,
        EventEntry("e2", "plain", at),
        ReportEntry(at, "p", 49.5, 8.5),
        ReportEntry(at, "p"),
        LateReportEntry(at, "p", 49.5, 8.5, at - 9, 12.0),
        ContextEntry(at, "p", "car", b'{"speed": 3}'),
        ContextEntry(at, "p", "car"),
        SubscriptionEntry(at, "p", "s1", "subscribed", "city/#", "150", "speed > 3", at, at + 9),
        SubscriptionEntry(at, "p", "s1", "unsubscribed", "city/#"),
        ClientEntry(at, "p", "joined"),
        TransitionEntry(at, "broker", "filter scheme", None, "GRID"),
        UnpublishEntry(at, "e0", 77),
        DeliveryEntry(at, 0, full),
    ]


@pytest.mark.parametrize("name", [name for name, _ in ROWS.values()])
def test_a_row_says_the_same_in_the_lake_and_in_the_journal(broker: LiveBroker, name: str) -> None:
    records = every_kind(START)
    broker.written(*records)
    in_the_journal = rows(opened(broker, name), name, 0, len(records))
    assert in_the_journal
    broker.export()
    in_the_lake = rows(opened(None, name, broker.lake), name, 0, len(records))
    assert in_the_lake == in_the_journal
    [row_of] = [row for table, row in ROWS.values() if table == name]
    expected = [row_of(at, record) for at, record in enumerate(records) if ROWS[type(record)][0] == name]
    times = {"frame_since", "frame_until", "fixed"}
    plain = [position for position, column in enumerate(table_of(name).column_names) if column not in times]
    assert [[_lists(row[place]) for place in plain] for row in in_the_lake] == [
        [_lists(row[place]) for place in plain] for row in expected
    ]


def _lists(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


steps = st.lists(st.sampled_from(["write", "export", "trim", "read"]), min_size=1, max_size=12)


@given(steps, st.data())
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_whatever_happens_between_planning_and_reading_each_offset_comes_once(
    tmp_path_factory: pytest.TempPathFactory, story: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("broker")
    with live_broker(folder) as broker:
        table = opened(broker, lake=broker.lake, offsetsPerPartition="3")
        written: list[int] = []

        def do(step: str) -> None:
            if step == "write":
                number = broker.server.broker.journal.head
                broker.written(ReportEntry(START, "p", 1.0, 1.0), event(number + 1), event(number + 2))
                written.extend((number + 1, number + 2))
            elif step == "export":
                broker.export()
            elif step == "trim":
                broker.trim()

        for step in [*story, "read"]:
            if step != "read":
                do(step)
                continue
            extent = table.extent()
            first = data.draw(st.integers(0, extent.last))
            last = data.draw(st.integers(first, extent.last))
            pieces = table.cut(first, last, ALWAYS)
            expected = [offset for offset in written if first <= offset < last]
            do(data.draw(st.sampled_from(["write", "export", "trim"])))
            found = []
            for piece in pieces:
                found += offsets(table, *piece)
                do(data.draw(st.sampled_from(["nothing", "export", "trim"])))
            assert found == expected
    shutil.rmtree(folder)


def test_an_export_and_a_trim_in_the_middle_of_a_piece_change_nothing(
    broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 40, 4):
        broker.written(*(event(number) for number in range(start, start + 4)))
    table = opened(broker, lake=broker.lake)
    asked: list[int] = []
    ask = link.BrokerLink.stretches

    def export_in_between(self: link.BrokerLink, first: int, last: int, *rest: Any) -> bytes:
        asked.append(first)
        if first >= 12:
            broker.export()
            broker.trim()
        return ask(self, first, min(last, first + 4), *rest)

    monkeypatch.setattr(link.BrokerLink, "stretches", export_in_between)
    assert offsets(table, 2, 38) == list(range(2, 38))
    assert asked == [2, 6, 10, 14]


def test_what_has_just_left_the_journal_is_waited_for_in_the_lake(
    broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark of the lake is written a moment after retention may delete."""
    broker.written(event(0), event(1))
    broker.export()
    broker.trim()
    marker = broker.lake / "_exported"
    said = marker.read_text()
    marker.write_text("0\n")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            marker.write_text(said)

    monkeypatch.setattr("nearcast.pipeline.source.stretch.time.sleep", pause)
    assert offsets(opened(broker, lake=broker.lake), 0, 2) == [0, 1]
    assert len(pauses) == 3


def test_what_is_nowhere_is_not_passed_over_in_silence(broker: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.written(event(0))
    broker.export()
    broker.trim()
    with pytest.raises(OffsetTrimmed, match="set the option lake to the broker's lake"):
        offsets(opened(broker), 0, 1)
    monkeypatch.setattr(stretch, "PATIENCE", 0.0)
    with pytest.raises(OffsetTrimmed, match="nor is it in the lake"):
        offsets(opened(broker, lake=broker.lake.parent / "other"), 0, 1)
    with pytest.raises(InvalidSettings, match="holds nothing from offset 1 on"):
        offsets(opened(None, lake=broker.lake), 0, 2)


def test_files_of_an_export_that_is_going_on_are_not_relied_on(broker: LiveBroker) -> None:
    broker.written(event(0))
    broker.export()
    (file,) = broker.lake.glob("events/*/*.parquet")
    shutil.copy(file, file.with_name(f"{1:020}-{1:020}.parquet"))
    table = opened(None, lake=broker.lake)
    assert table.extent().last == 1
    (broker.lake / "_exported").unlink()
    assert table.extent().last == 2  # of a lake that says nothing, what is there counts


def test_only_files_of_days_that_matter_are_read(broker: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(4):
        broker.written(event(0, day * DAY), event(1, day * DAY))
        broker.export()
    table = opened(None, lake=broker.lake)
    bounds = TimeBounds(START + DAY + 1, START + 2 * DAY + 1)
    assert offsets(table, 0, 8, bounds=bounds) == [3, 4]
    for file in broker.lake.glob("events/*/*.parquet"):
        if not any(str(pa.scalar(START + day * DAY, pa.timestamp("us")).as_py().date()) in str(file) for day in (1, 2)):
            file.write_bytes(b"")  # would fail if it was opened
    assert offsets(table, 0, 8, bounds=bounds) == [3, 4]
    assert table.cut(0, 8, bounds) == [(2, 6)]


def test_large_files_become_several_pieces_and_small_ones_share_one(
    broker: LiveBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        broker.written(event(number))
        broker.export()
    broker.written(*(event(number) for number in range(6, 11)))
    table = opened(broker, lake=broker.lake, offsetsPerPartition="2")
    assert table.cut(0, 11, ALWAYS) == [(0, 6), (6, 8), (8, 10), (10, 11)]
    monkeypatch.setattr(stretch, "BYTES_PER_PARTITION", 1)
    assert table.cut(1, 8, ALWAYS) == [*((number, number + 1) for number in range(1, 6)), (6, 8)]


def test_rows_of_files_without_offsets_come_once_too(broker: LiveBroker) -> None:
    import pyarrow.parquet as pq

    broker.written(event(0), event(1), event(2))
    broker.export()
    (file,) = broker.lake.glob("events/*/*.parquet")
    pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["offset"]), file)
    table = opened(None, lake=broker.lake)
    assert len(offsets(table, 0, 1)) == 3
    assert offsets(table, 1, 3) == []


def test_a_broker_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nearcast.pipeline.source.link.time.sleep", lambda _: None)
    gone = link.BrokerLink(options.BrokerAddress("http://127.0.0.1:9"), patience=0.05)
    with pytest.raises(ConnectionFailed, match=r"has not answered for 0 s .*is it running, with HTTP on that port"):
        gone.extent()


def test_a_broker_that_is_busy_is_asked_again(broker: LiveBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.written(event(0))
    answers = iter([(429, b'{"detail": "wait"}'), (503, b"")])
    ask: Callable[..., tuple[int, bytes]] = link.BrokerLink._request

    def busy_at_first(self: link.BrokerLink, *rest: Any) -> tuple[int, bytes]:
        return next(answers, None) or ask(self, *rest)

    monkeypatch.setattr(link.BrokerLink, "_request", busy_at_first)
    assert opened(broker).extent().last == 1
    assert next(answers, None) is None


def test_who_may_not_read_the_journal_is_told(tmp_path: Path) -> None:
    closed = {"anonymous": "never"}
    with (
        live_broker(tmp_path, access=closed) as broker,
        pytest.raises(Denied, match="set the options user and password"),
    ):
        opened(broker).extent()
