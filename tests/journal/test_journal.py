"""What was acknowledged is there, in order, whole, and only once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clocks import START
from tests.journal.journal_calls import Calls, event, opened
from tests.waiting import PATIENCE

from nearcast.errors import InvalidRecord, InvalidValue, JournalFailed
from nearcast.journal import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    Journal,
    JournalSettings,
    Put,
    Record,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.journal.database import FILE
from nearcast.journal.entries import time_of
from nearcast.journal.store import Store
from nearcast.runtime.live.clock import LiveClock

_texts = st.text(max_size=8)
_times = st.integers(min_value=START - 1_000_000, max_value=START + 1_000_000)
_pairs = st.lists(st.tuples(_texts, _texts), max_size=3).map(tuple)
_names = st.lists(_texts, max_size=3).map(tuple)
_maybe = {
    "lat": st.none() | st.floats(-90, 90),
    "lon": st.none() | st.floats(-180, 180),
}
records_of_all_kinds = st.one_of(
    st.builds(
        EventEntry, _texts, _texts, _times, st.binary(max_size=40), st.none() | _texts, st.integers(0, 2), _names,
        **_maybe, reach=st.none() | _texts, to=st.none() | _texts, when=st.none() | _texts,
        lifetime=st.none() | st.integers(0, 10**15), attributes=_pairs, tags=_names, content_type=st.none() | _texts,
        response_topic=st.none() | _texts, correlation_data=st.none() | st.binary(max_size=4),
        payload_format=st.sampled_from([None, 0, 1]), user_properties=_pairs,
        owed=st.lists(st.tuples(_texts, st.integers(0, 2), st.booleans(), st.just((1, 2))), max_size=2).map(tuple),
    ),
    st.builds(ReportEntry, _times, _texts, **_maybe),
    st.builds(ContextEntry, _times, _texts, _texts, st.none() | st.binary(max_size=20)),
    st.builds(
        SubscriptionEntry, _times, _texts, _texts, st.sampled_from(["subscribed", "unsubscribed"]), _texts,
        st.none() | _texts, st.none() | _texts, st.none() | _times, st.none() | _times,
    ),
    st.builds(UnpublishEntry, _times, _texts),
    st.builds(DeliveryEntry, _times, st.integers(0, 10**6), st.builds(EventEntry, _texts, _texts, _times)),
    st.builds(ClientEntry, _times, _texts, st.sampled_from(["joined", "left", "failed", "returned"])),
    st.builds(TransitionEntry, _times, _texts, _texts, st.none() | _texts, st.none() | _texts, **_maybe, plan=_texts),
)  # fmt: skip
_puts = st.builds(
    Put, st.sampled_from(["session", "retained"]), st.sampled_from("abcd"), st.none() | st.binary(max_size=20)
)
_write = st.tuples(st.lists(records_of_all_kinds, max_size=4), st.lists(_puts, max_size=4))
_steps = st.lists(st.lists(_write, max_size=5), max_size=2)


@given(_steps)
def test_after_every_reopening_it_holds_what_a_list_and_a_dict_hold(
    tmp_path_factory: pytest.TempPathFactory, steps: list[list[tuple[list[Record], list[Put]]]]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    model: list[Record] = []
    state: dict[str, dict[str, bytes]] = {"session": {}, "retained": {}}
    for writes in [*steps, []]:
        with opened(folder) as it:
            assert it.journal.head == it.journal.durable == len(model)
            assert it.all() == list(enumerate(model))
            assert {table: it.journal.load(table) for table in state} == state
            for records, puts in writes:
                assert it.write(*records, puts=tuple(puts)) == len(model)
                model += records
                for put in puts:
                    state[put.table].pop(put.key, None)
                    if put.value is not None:
                        state[put.table][put.key] = put.value
            it.settle()
            assert [failed for _, failed in it.outcomes] == [None] * len(writes)


@given(
    st.lists(st.lists(records_of_all_kinds, min_size=1, max_size=6), max_size=4),
    st.integers(0, 12), st.none() | st.integers(0, 30), st.none() | _times, st.none() | _times,
    st.none() | st.sets(st.sampled_from([EventEntry, ReportEntry, UnpublishEntry])), st.none() | st.integers(0, 8),
)  # fmt: skip
def test_reading_gives_exactly_the_records_of_those_offsets_times_and_kinds(
    tmp_path_factory: pytest.TempPathFactory, stretches: list[list[Record]], first: int, last: int | None,
    since: int | None, until: int | None, kinds: set[type[Record]] | None, limit: int | None,
) -> None:  # fmt: skip
    with opened(tmp_path_factory.mktemp("journal")) as it:
        for stretch in stretches:
            it.written(*stretch)
        wanted = [
            (offset, record)
            for offset, record in enumerate(chain.from_iterable(stretches))
            if first <= offset
            and (last is None or offset < last)
            and (since is None or time_of(record) >= since)
            and (until is None or time_of(record) < until)
            and (kinds is None or type(record) in kinds)
        ]
        found = it.all(first, last, since=since, until=until, kinds=kinds, limit=limit)
        assert found == (wanted if limit is None else wanted[:limit])


def test_stretches_of_another_time_or_kind_are_not_even_looked_at(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.written(event(0))
        it.written(event(10))
        it.written(ReportEntry(START + 11, "ada"))
        it.written(event(5))  # out of order: still found
        it.written(event(20))
    with sqlite3.connect(tmp_path / FILE) as other:
        other.execute("UPDATE stretch SET body = x'00' WHERE first IN (0, 2, 4)")  # who reads these would notice
    other.close()
    with opened(tmp_path) as it:
        found = it.all(since=START + 1, until=START + 20, kinds=(EventEntry,))
        assert found == [(1, event(10)), (3, event(5))]
        with pytest.raises(JournalFailed, match="records 2 to 2"):
            it.all(1)


def test_outcomes_are_told_in_the_order_of_the_writes_whatever_shares_a_commit(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        for number in range(3_000):
            it.write(event(number), name=number)
            if number % 700 == 0:
                it.settle()
        it.settle()
        assert it.outcomes == [(number, None) for number in range(3_000)]
        assert it.journal.statistics().commits < 3_000


def test_an_empty_write_is_told_after_all_that_was_written_before_it(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.write(event(0), name="first")
        it.write(name="barrier")
        it.settle()
        assert [name for name, _ in it.outcomes] == ["first", "barrier"]
        assert it.journal.head == it.journal.durable == 1


def test_outcomes_come_on_the_thread_of_the_loop(tmp_path: Path) -> None:
    async def run() -> list[int]:
        loop = asyncio.get_running_loop()
        journal = Journal.open(tmp_path, JournalSettings(), loop.call_soon_threadsafe, LiveClock().now)
        threads: list[int] = []
        told = asyncio.Event()

        def then(failed: JournalFailed | None) -> None:
            assert failed is None
            threads.append(threading.get_ident())
            told.set()

        journal.write([event(1)], then=then)
        await asyncio.wait_for(told.wait(), PATIENCE)
        journal.close()
        return threads

    assert asyncio.run(run()) == [threading.get_ident()]


def test_writing_does_not_wait_for_a_disk_that_is_busy(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.settle()
        # Another connection holds the database: nothing can be committed until it lets go.
        other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for number in range(100):
            it.write(event(number))
        assert it.journal.head == 100
        assert it.journal.durable == 0
        assert it.outcomes == []
        other.execute("ROLLBACK")
        other.close()
        it.settle()
        assert len(it.outcomes) == 100
        assert len(it.all()) == 100


def test_one_outcome_that_raises_does_not_keep_the_others_from_being_told(tmp_path: Path) -> None:
    told: list[str] = []

    def fails(_: JournalFailed | None) -> None:
        raise LookupError("the session is gone")

    with opened(tmp_path) as it:
        gate = threading.Event()

        def wait(_: Store) -> None:
            gate.wait(PATIENCE)

        hold = it.journal._writer.ask(wait)
        it.journal.write([event(1)], then=fails)
        it.journal.write([event(2)], then=lambda _: told.append("second"))
        gate.set()
        hold.result(PATIENCE)
        with pytest.raises(LookupError, match="the session is gone"):
            it.settle()
        assert told == ["second"]


def test_closing_commits_what_is_waiting_and_refuses_what_comes_later(tmp_path: Path) -> None:
    calls = Calls()
    outcomes: list[JournalFailed | None] = []
    journal = Journal.open(tmp_path, JournalSettings(), calls, LiveClock().now)
    for number in range(50):
        journal.write([event(number)], [Put("session", str(number), b"v")], outcomes.append)
    journal.close()
    journal.close()
    calls.run_waiting()
    assert outcomes == [None] * 50
    with pytest.raises(JournalFailed, match="closed"):
        journal.write([event(1)])
    with opened(tmp_path) as it:
        assert len(it.all()) == len(it.journal.load("session")) == 50


def test_a_loop_that_is_gone_does_not_keep_records_from_being_committed(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    journal = Journal.open(tmp_path, JournalSettings(), loop.call_soon_threadsafe, LiveClock().now)
    loop.close()
    journal.write([event(1)], then=lambda _: None)
    journal.close()
    with opened(tmp_path) as it:
        assert it.all() == [(0, event(1))]


_NO_BYTES: Any = object()


@pytest.mark.parametrize(
    "bad", ["text", EventEntry("e", "t", START, _NO_BYTES), ReportEntry(2**70, "ada"), ReportEntry(2**63, "ada")]
)
def test_a_record_that_cannot_be_kept_is_refused_with_its_whole_write_and_nothing_else(
    tmp_path: Path, bad: Any
) -> None:
    with opened(tmp_path) as it:
        it.write(event(1))
        with pytest.raises(InvalidRecord, match="cannot keep"):
            it.write(event(2), bad, puts=(Put("session", "a", b"x"),))
        it.write(event(3))
        it.settle()
        assert it.all() == [(0, event(1)), (1, event(3))]
        assert it.journal.load("session") == {}


def test_a_key_that_cannot_be_stored_is_refused_with_its_whole_write_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.write(event(1), puts=(Put("session", "schön", b"x"),))
        with pytest.raises(InvalidRecord, match="no Unicode text"):
            it.write(event(2), puts=(Put("session", "a", b"x"), Put("session", "\ud800", b"x")))
        it.settle()
        assert it.outcomes == [(None, None)]
        assert it.all() == [(0, event(1))]
        assert it.journal.load("session") == {"schön": b"x"}


def test_large_writes_are_cut_into_several_commits_but_each_stays_whole(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        for number in range(12):
            it.write(*(event(number, size=1_000_000) for _ in range(2)))
        it.settle()
        statistics = it.journal.statistics()
        assert statistics.commits >= 4
        assert statistics.bytes > 24_000_000
        with sqlite3.connect(tmp_path / FILE) as other:
            counts = [row[0] for row in other.execute("SELECT count FROM stretch")]
        other.close()
        assert all(count % 2 == 0 for count in counts)
        chunks = list(it.journal.read(0))
        assert len(chunks) > 4  # a chunk holds a few megabytes
        assert sum(map(len, chunks)) == 24


def test_a_reading_may_go_on_in_another_thread(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        for number in range(6):
            it.written(event(number, size=3_000_000))
        reading = it.journal.read(0)
        found = [*next(reading)]
        thread = threading.Thread(target=lambda: found.extend(chain.from_iterable(reading)))
        thread.start()
        thread.join(PATIENCE)
        assert [offset for offset, _ in found] == list(range(6))


def test_statistics_say_what_is_kept_and_what_was_done(tmp_path: Path) -> None:
    with opened(tmp_path) as it:
        it.written(event(1), event(2))
        it.written(event(3))
        statistics = it.journal.statistics()
        assert (statistics.head, statistics.durable, statistics.oldest) == (3, 3, 0)
        assert (statistics.stretches, statistics.commits, statistics.largest_group) == (2, 2, 2)
        assert (statistics.waiting_writes, statistics.waiting_bytes, statistics.failed_writes) == (0, 0, 0)
        assert statistics.problem is None


@pytest.mark.parametrize(
    "setting", [{"keep_for": 0}, {"keep_bytes": -1}, {"retry_every": 0.0}, {"export_every": 0.0}, {"checkpoint_bytes": 1}]
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(setting))):
        JournalSettings(**setting)
