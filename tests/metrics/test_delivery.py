"""Recall, precision, loss and delay are what their definitions say, counted one by one."""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.worlds import CLIENTS, Row, World, as_table, event, notification, worlds

from nearcast.errors import InvalidRecord
from nearcast.metrics import (
    Windows,
    application_totals,
    delay_per_client,
    delay_per_event,
    delay_totals,
    delays,
    pairs,
    per_client,
    per_client_and_window,
    per_event,
    totals,
)
from nearcast.model.time import EVER, MICROSECONDS, TimeFrame

Pair = tuple[str, str]


class ByHand:
    """The definitions, as sets of pairs (event, client)."""

    def __init__(self, world: World, frame: TimeFrame = EVER, workload: str | None = None) -> None:
        self.events = [
            row
            for row in world.events
            if frame.contains(row["time"]) and (workload is None or row["workload"] == workload)
        ]
        judged = {row["event"]: row for row in self.events if row["receivers"] is not None}
        chosen = {row["event"]: row for row in self.events}
        self.judged = judged
        self.due = {
            (name, client) for name, row in judged.items() for client in row["receivers"] if client != row["publisher"]
        }
        arrived = [row for row in world.notifications if row["event"] in chosen]
        self.handed: dict[Pair, int] = {}
        self.delays: dict[Pair, int] = {}
        for row in arrived:
            pair = (row["event"], row["client"])
            self.handed[pair] = self.handed.get(pair, 0) + (row["outcome"] == "delivered")
            self.delays[pair] = min(self.delays.get(pair, row["delay"]), row["delay"])
        self.own = {pair for pair in self.handed if chosen[pair[0]]["publisher"] == pair[1]}
        self.notified = {pair for pair in self.handed if pair[0] in judged} - self.own
        self.correct = self.due & self.notified
        self.strays = sum(row["event"] not in {each["event"] for each in world.events} for row in world.notifications)

    def counts(self, place: int, value: str) -> tuple[int, int, int]:
        """Due, notified and correct of an event (0) or of a client (1)."""
        due, notified, correct = (
            sum(pair[place] == value for pair in some) for some in (self.due, self.notified, self.correct)
        )
        return due, notified, correct

    def ratios(self, place: int, value: str) -> tuple[float | None, float | None]:
        due, notified, correct = self.counts(place, value)
        return correct / due if due else None, correct / notified if notified else None

    def means(self, place: int, values: list[str]) -> list[float | None]:
        both = [self.ratios(place, value) for value in values]
        known = [[pair[which] for pair in both if pair[which] is not None] for which in (0, 1)]
        return [mean(some) if some else None for some in known]  # type: ignore[type-var]


def columns_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("due", "notified", "correct", "recall", "precision"))


frames = st.sampled_from([EVER, TimeFrame(10, 30), TimeFrame(None, 20), TimeFrame(20, None)])
workloads = st.sampled_from([None, "AR", "LBS", "RND"])


@given(worlds(), frames, workloads)
def test_totals_are_those_counted_by_hand(world: World, frame: TimeFrame, workload: str | None) -> None:
    found, expected = pairs(*world.tables(), frame=frame, workload=workload), ByHand(world, frame, workload)
    result = totals(found)
    assert (result.due, result.notified, result.correct) == (
        len(expected.due),
        len(expected.notified),
        len(expected.correct),
    )
    assert result.events == len(expected.judged)
    assert result.events_without_truth == len(expected.events) - len(expected.judged)
    assert result.strays == expected.strays
    assert result.recall == (len(expected.correct) / len(expected.due) if expected.due else None)
    assert result.precision == (len(expected.correct) / len(expected.notified) if expected.notified else None)
    for place, values, recall, precision in (
        (0, [row["event"] for row in expected.events], result.mean_event_recall, result.mean_event_precision),
        (1, list(CLIENTS), result.mean_client_recall, result.mean_client_precision),
    ):
        for measured, by_hand in zip((recall, precision), expected.means(place, values), strict=True):
            assert measured == (None if by_hand is None else pytest.approx(by_hand))


@given(worlds(), frames)
def test_every_event_and_every_client_has_the_recall_and_precision_of_its_pairs(world: World, frame: TimeFrame) -> None:
    found, expected = pairs(*world.tables(), frame=frame), ByHand(world, frame)
    events = per_event(found).to_pylist()
    assert [row["event"] for row in events] == [row["event"] for row in expected.events]
    for row in events:
        assert columns_of(row) == (*expected.counts(0, row["event"]), *expected.ratios(0, row["event"]))
    clients = per_client(found).to_pylist()
    concerned = {pair[1] for pair in expected.due | set(expected.handed)}
    assert {row["client"] for row in clients} >= concerned
    assert [row["client"] for row in clients] == sorted(row["client"] for row in clients)
    for row in clients:
        assert columns_of(row) == (*expected.counts(1, row["client"]), *expected.ratios(1, row["client"]))


@given(worlds(), st.integers(1, 50))
def test_a_client_in_a_window_has_the_recall_of_the_events_published_in_it(world: World, length: int) -> None:
    windows = Windows(5, 35, length)
    rows = per_client_and_window(pairs(*world.tables()), windows).to_pylist()
    found = {(row["window"], row["client"]): columns_of(row) for row in rows}
    assert len(found) == len(rows)
    for window, start in enumerate(range(5, 35, length)):
        expected = ByHand(world, TimeFrame(start, min(35, start + length)))
        for client in CLIENTS:
            counts = expected.counts(1, client)
            if any(counts[:2]):
                assert found.pop((window, client)) == (*counts, *expected.ratios(1, client))
    assert not found


@given(worlds(), frames)
def test_what_applications_saw_is_what_was_handed_over(world: World, frame: TimeFrame) -> None:
    result, expected = application_totals(pairs(*world.tables(), frame=frame)), ByHand(world, frame)
    handed = {pair for pair, times in expected.handed.items() if times}
    judged = {pair for pair in handed if pair[0] in expected.judged} - expected.own
    assert result.due == len(expected.due)
    assert result.delivered == len(expected.due & handed)
    assert result.lost == len(expected.due - handed)
    assert result.extra == len(judged - expected.due)
    assert result.own == len(expected.own & handed)
    assert result.doubled == sum(times > 1 for times in expected.handed.values())


@given(worlds(), frames)
def test_delay_is_that_of_the_first_copy_to_whom_it_was_due(world: World, frame: TimeFrame) -> None:
    found, expected = pairs(*world.tables(), frame=frame), ByHand(world, frame)
    first = {pair: expected.delays[pair] / MICROSECONDS for pair in expected.correct}
    assert sorted(delays(found)) == sorted(first.values())
    result = delay_totals(found)
    assert result.reached == len(first)
    assert result.mean == (pytest.approx(mean(first.values())) if first else None)
    if first:
        assert (result.p5, result.p95) == tuple(np.percentile(list(first.values()), [5, 95]))
    names = [row["event"] for row in expected.events]
    for place, values, measured in ((0, names, delay_per_event(found)), (1, found.clients, delay_per_client(found))):
        for value, seconds in zip(values, measured, strict=True):
            some = [delay for pair, delay in first.items() if pair[place] == value]
            assert np.isnan(seconds) if not some else seconds == pytest.approx(mean(some))


def test_a_publisher_is_never_among_the_receivers_of_its_own_event() -> None:
    events = as_table("events", [event("e", 0, "ada", ["ada", "bob"])])
    told = as_table("notifications", [notification("e", "ada"), notification("e", "bob")])
    found = pairs(events, told)
    result = totals(found)
    assert (result.due, result.notified, result.correct) == (1, 1, 1)
    assert found.own.any()
    assert not (found.own & found.due).any()


def test_what_the_last_check_refused_counts_for_recall_but_was_not_delivered() -> None:
    events = as_table("events", [event("e", 0, "ada", ["bob"])])
    found = pairs(events, as_table("notifications", [notification("e", "bob", outcome="unwanted")]))
    assert totals(found).recall == 1.0
    assert application_totals(found).lost == 1


def test_an_event_that_nobody_wants_has_no_recall_and_one_of_which_nobody_heard_no_precision() -> None:
    events = as_table("events", [event("unwanted", 0, "ada", []), event("unheard", 0, "ada", ["bob"])])
    rows = per_event(pairs(events, as_table("notifications", [notification("unwanted", "bob")]))).to_pylist()
    assert [(row["recall"], row["precision"]) for row in rows] == [(None, 0.0), (0.0, None)]


def test_ratio_of_sums_and_mean_over_events_differ() -> None:
    events = as_table("events", [event("few", 0, "ada", ["bob"]), event("many", 0, "ada", ["bob", "cid", "dan"])])
    result = totals(pairs(events, as_table("notifications", [notification("few", "bob")])))
    assert (result.recall, result.mean_event_recall) == (0.25, 0.5)
    assert result.mean_client_recall == pytest.approx((0.5 + 0 + 0) / 3)


def test_the_frame_is_that_of_publication_and_late_copies_still_count() -> None:
    events = as_table("events", [event("in", 10, "ada", ["bob"]), event("out", 20, "ada", ["bob"])])
    told = as_table("notifications", [notification("in", "bob", time=99), notification("out", "bob", time=99)])
    result = totals(pairs(events, told, frame=TimeFrame(10, 20)))
    assert (result.events, result.correct, result.strays) == (1, 1, 0)


def test_without_any_row_there_is_nothing_to_divide_by() -> None:
    found = pairs(as_table("events", []), as_table("notifications", []))
    assert totals(found).recall is None
    assert per_event(found).num_rows == per_client(found).num_rows == 0
    assert delay_totals(found).mean is None


def test_two_events_of_one_id_are_refused() -> None:
    events = as_table("events", [event("e", 0, "ada", []), event("e", 5, "bob", [])])
    with pytest.raises(InvalidRecord, match="two rows"):
        pairs(events, as_table("notifications", []))


def test_a_table_that_lacks_a_column_is_refused_by_name() -> None:
    with pytest.raises(InvalidRecord, match="no column 'receivers'"):
        pairs(as_table("events", []).drop_columns(["receivers"]), as_table("notifications", []))
    with pytest.raises(InvalidRecord, match="'delay' lacks 1"):
        pairs(as_table("events", []), as_table("notifications", [{"event": "e", "client": "bob", "delay": None}]))
