"""Silver is bronze without copies, bad rows and what was taken back; and nothing is lost or doubled on the way."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.tables.lakes import DAY, LATEST, NOON, SECOND, Lake, Row, event, report, unpublished, write

from nearcast.errors import InvalidRecord, TableFailed
from nearcast.pipeline.tables import (
    Refinement,
    Warehouse,
    bronze_files,
    read_aside,
    read_silver,
    refine,
    refine_all,
)
from nearcast.pipeline.tables import store as store_module

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, warehouse: Warehouse, lake: Lake, *names: str) -> list[Refinement]:
    return [refine(spark, warehouse, lake.folder, name, LATEST) for name in names]


def ids(spark: SparkSession, warehouse: Warehouse, name: str = "events", column: str = "event") -> list[Any]:
    return sorted(row[column] for row in read_silver(spark, warehouse, name).select(column).collect())


BAD: dict[str, Row] = {
    "event is missing": event(None),
    "event is empty": event(""),
    "time is missing": event("e", None),
    "time is in the future": event("e", LATEST + 1),
    "lat is above 90": event("e", lat=90.5),
    "lon is below -180": event("e", lon=-180.1),
    "lat is not a number": event("e", lat=float("nan")),
    "lon is not a number": event("e", lon=float("-inf")),
    "lat or lon is missing": event("e", lon=None),
    "reach is below 0": event("e", reach=-1.0),
    "bytes is missing": event("e", bytes=None),
    "bytes is below 0; lifetime is below 0": event("e", bytes=-1, lifetime=-5),
}


def test_bad_rows_are_kept_aside_with_the_reason(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    lake.export({"events": [*BAD.values(), event("good"), event("nowhere", lat=None, lon=None)]})
    [found] = run(spark, warehouse, lake, "events")
    assert found == Refinement("events", len(bronze_files(lake.folder, "events")), len(BAD) + 2, 2, len(BAD), 0, 0, 0)
    aside = read_aside(spark, warehouse, "events").collect()
    assert sorted(row["reason"] for row in aside) == sorted(BAD)
    by_reason = {row["reason"]: row for row in aside}
    assert by_reason["lat is above 90"]["lat"] == 90.5, "as it was recorded"
    assert ids(spark, warehouse) == ["good", "nowhere"]


def test_unknown_states_are_bad(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    states = ("joined", "exploded")
    lake.export({"clients": [{"client": "ada", "time": NOON, "state": state} for state in states]})
    frame = {"frame_since": NOON, "frame_until": NOON - 1}
    subscription = {"client": "a", "subscription": "s", "action": "subscribed", "topic_filter": "t", "time": NOON}
    lake.export({"subscriptions": [{**subscription, **frame}]})
    run(spark, warehouse, lake, "clients", "subscriptions")
    assert ids(spark, warehouse, "clients", "state") == ["joined"]
    [client] = read_aside(spark, warehouse, "clients").collect()
    [other] = read_aside(spark, warehouse, "subscriptions").collect()
    assert (client["reason"], other["reason"]) == ("state 'exploded' is not known", "frame_until is before frame_since")


def test_an_event_stands_once_for_each_publisher(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    again = [event("e", NOON + SECOND), event("e", publisher="bob"), event("e", publisher=None)]
    lake.export({"events": [event("e"), *again, event("e", DAY + 1)]})
    [found] = run(spark, warehouse, lake, "events")
    assert (found.silver, found.duplicates) == (3, 2)
    lake.export({"events": [event("e"), event("e", publisher=None), event("f")]})
    [found] = run(spark, warehouse, lake, "events")
    assert (found.silver, found.duplicates, found.bronze) == (4, 4, 8)
    kept = {(row["publisher"], row["offset"]) for row in read_silver(spark, warehouse, "events").collect()}
    assert kept == {("ada", 0), ("bob", 2), (None, 3), ("ada", 7)}, "the first of the journal"


def test_equal_states_are_copies_but_every_message_counts(
    spark: SparkSession, lake: Lake, warehouse: Warehouse
) -> None:
    lake.export({"reports": [report("ada", offset=7), report("ada", offset=7), report("ada", offset=8)]})
    lake.export({"reports": [report("ada", offset=8), report("bob", offset=9)]})
    told = {"time": NOON, "event": "e", "client": "ada", "path": "wifi", "outcome": "duplicate", "delay": 1, "hops": 2}
    lake.export({"notifications": [dict(told), dict(told)]})
    reports, notifications = run(spark, warehouse, lake, "reports", "notifications")
    assert (reports.silver, reports.duplicates) == (3, 2)
    assert (notifications.silver, notifications.duplicates) == (2, 0)


def test_what_is_unpublished_is_not_in_silver(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    """Before its event came, after it, by offset or by id; and who publishes the id anew is heard."""
    lake.export({"events": [event("early"), event("late"), event("anew"), event("by id"), event("bad", lat=99.0)]})
    lake.export({"unpublished": [unpublished("early", 0)]})
    first = run(spark, warehouse, lake, "unpublished", "events")[1]
    assert (first.silver, first.unpublished) == (3, 1)
    back = [unpublished("late", 1), unpublished("anew", 2), unpublished("by id", None), unpublished("bad", 4)]
    lake.export({"unpublished": back})
    lake.export({"events": [event("anew", NOON + 9 * SECOND), event("by id", NOON + 9 * SECOND), event("late", DAY)]})
    second = run(spark, warehouse, lake, "unpublished", "events")[1]
    assert (second.bronze, second.silver, second.aside, second.unpublished) == (8, 3, 0, 5)
    assert {row["offset"] for row in read_silver(spark, warehouse, "events").collect()} == {10, 11, 12}
    assert run(spark, warehouse, lake, "unpublished", "events")[1] == Refinement("events", 0, 8, 3, 0, 0, 5, 0)


def test_only_what_the_broker_has_closed_is_taken(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    lake.export({"events": [event("e")]}, mark=False)
    assert run(spark, warehouse, lake, "events")[0].bronze == 0
    lake.export({"events": [event("f")]})
    assert run(spark, warehouse, lake, "events")[0].bronze == 2
    assert run(spark, warehouse, lake, "events")[0] == Refinement("events", 0, 2, 2, 0, 0, 0, 0)
    assert warehouse.current("events").number == 1, "nothing new, no new version"


def test_files_of_an_older_nearcast_lack_columns(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    lake.export({"events": [event("new", payload=b"hello", tags=["x"])]})
    older = lake.folder / "events" / "date=2026-03-16" / f"{8:020}-{9:020}.parquet"
    gone = ("payload", "tags", "attributes", "reach_area", "addressing", "timing", "lifetime", "offset")
    write(older, "events", [event("old")], without=gone)
    lake.offset = 10
    lake.export({"events": [event("newer")]})
    assert run(spark, warehouse, lake, "events")[0].silver == 3
    rows = {row["event"]: row for row in read_silver(spark, warehouse, "events").collect()}
    assert rows["old"]["payload"] is None
    assert (bytes(rows["new"]["payload"]), rows["new"]["tags"]) == (b"hello", ["x"])


def test_partitions_are_the_day_and_the_coarse_cell(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    lake.export({"events": [event("a"), event("b", DAY - 1, lat=-0.05, lon=-0.05), event("c", lat=None, lon=None)]})
    run(spark, warehouse, lake, "events")
    parts = {
        (file.partition("date"), file.partition("cell")) for file in warehouse.current("events").files("silver/events")
    }
    assert parts == {("2026-03-16", "n49.8e8.6"), ("2026-03-15", "s0.1w0.1"), ("2026-03-16", "none")}
    frame = read_silver(spark, warehouse, "events").where("date = '2026-03-16' and cell = 'n49.8e8.6'")
    assert [row["event"] for row in frame.collect()] == ["a"]
    assert "PartitionFilters: [isnotnull(date" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("seed", [2])
def test_the_result_does_not_depend_on_how_runs_cut_the_exports(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    exports = [
        {
            "events": [
                event(
                    f"e{draw.randrange(8)}",
                    NOON + draw.randrange(4) * 6 * 3600 * SECOND,
                    publisher=draw.choice(["ada", "bob", None]),
                    lat=draw.choice([49.87, 120.0]),
                )
                for _ in range(6)
            ],
            "unpublished": [unpublished(f"e{draw.randrange(8)}", draw.randrange(18)) for _ in range(1)],
        }
        for _ in range(3)
    ]
    results: list[Any] = []
    for pauses in ({0, 1}, set[int]()):
        lake = Lake(tmp_path / f"lake-{len(results)}")
        warehouse = Warehouse(tmp_path / f"warehouse-{len(results)}")
        for number, export in enumerate(exports):
            lake.export({name: [dict(row) for row in rows] for name, rows in export.items()})
            if number in pauses:
                run(spark, warehouse, lake, "unpublished", "events")
        found = run(spark, warehouse, lake, "unpublished", "events")[1]
        silver = Counter(row["offset"] for row in read_silver(spark, warehouse, "events").collect())
        aside = Counter((row["offset"], row["reason"]) for row in read_aside(spark, warehouse, "events").collect())
        results.append((found.bronze, found.silver, found.aside, silver, aside))
    assert results[0] == results[1]


@pytest.mark.parametrize("moment", ["stage", "move", "publish"])
def test_a_run_that_is_killed_neither_loses_nor_doubles(
    spark: SparkSession, lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    lake.export({"events": [event("a"), event("b")]})
    run(spark, warehouse, lake, "events")
    lake.export({"events": [event("b"), event("c")]})
    owner: Any = store_module.Staged if moment == "move" else Warehouse
    with monkeypatch.context() as killed:
        real = getattr(owner, moment)

        def die(*given: Any, **named: Any) -> None:
            if moment != "publish":
                real(*given, **named)
            raise KeyboardInterrupt

        killed.setattr(owner, moment, die)
        with pytest.raises(KeyboardInterrupt):
            run(spark, warehouse, lake, "events")
    assert ids(spark, warehouse) == ["a", "b"], "readers see the version before"
    assert run(spark, warehouse, lake, "events")[0] == Refinement("events", 1, 4, 3, 0, 1, 0, 0)
    assert ids(spark, warehouse) == ["a", "b", "c"]


def test_of_two_runs_at_once_one_fails(
    spark: SparkSession, lake: Lake, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.export({"events": [event("a")]})
    real = Warehouse.publish

    def slow(self: Warehouse, name: str, version: Any) -> Any:
        monkeypatch.setattr(Warehouse, "publish", real)
        run(spark, warehouse, lake, "events")
        return real(self, name, version)

    monkeypatch.setattr(Warehouse, "publish", slow)
    with pytest.raises(TableFailed, match=r"another run has changed the table events .* run this one again"):
        run(spark, warehouse, lake, "events")
    assert ids(spark, warehouse) == ["a"]


def test_a_folder_without_tables_is_refused(spark: SparkSession, tmp_path: Path, warehouse: Warehouse) -> None:
    with pytest.raises(InvalidRecord, match=r"there is no lake at .*nothing"):
        refine_all(spark, warehouse, tmp_path / "nothing", LATEST)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRecord, match="holds no record tables"):
        refine_all(spark, warehouse, tmp_path / "empty", LATEST)
    assert not warehouse.folder.exists()
