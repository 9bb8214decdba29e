"""Gold follows silver day by day; upkeep changes files, never rows, but for those that are too old."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from tests.pipeline.frames import assert_same_rows, rows_of
from tests.pipeline.tables.lakes import DAY, LATEST, NOON, SECOND, Lake, Row, event, unpublished

from nearcast.pipeline.tables import (
    Warehouse,
    clean,
    compact,
    measure_all,
    read_gold,
    read_silver,
    refine,
    refine_all,
    retain,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOUR = 3600 * SECOND
YESTERDAY, TODAY = date(2026, 3, 15), date(2026, 3, 16)


def told(name: str, client: str, published: int, delay: int) -> Row:
    row = {"event": name, "client": client, "time": published + delay, "delay": delay, "path": "cloud"}
    return {**row, "outcome": "delivered", "hops": 2}


def test_gold_is_computed_anew_for_the_days_that_changed(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    late = DAY - HOUR
    lake.export({"events": [event("old", late, workload="AR"), event("new", NOON, receivers=["bob", "cem"])]})
    lake.export({"notifications": [told("old", "bob", late, 2 * HOUR), told("new", "bob", NOON, SECOND)]})
    refine_all(spark, warehouse, lake.folder, LATEST)
    assert measure_all(spark, warehouse) == {"activity": 2, "delivery": 2, "clients": 2, "traffic": 0, "transitions": 0}
    first = {row["date"]: row for row in read_gold(spark, warehouse, "delivery").collect()}
    assert (first[YESTERDAY]["recall"], first[YESTERDAY]["delay"]) == (1.0, 7200.0), "it came on the next day"
    assert (first[TODAY]["recall"], first[TODAY]["false_negatives"], first[TODAY]["workload"]) == (0.5, 1, None)
    assert measure_all(spark, warehouse) == dict.fromkeys(
        ("activity", "delivery", "clients", "traffic", "transitions"), 0
    )
    lake.export({"events": [event("more", NOON + HOUR)], "unpublished": [unpublished("new", 1)]})
    refine_all(spark, warehouse, lake.folder, LATEST)
    assert measure_all(spark, warehouse)["activity"] == 1, "yesterday stays"
    expected = [
        {
            "date": YESTERDAY,
            "cell": "n49.8e8.6",
            "hour": late,
            "events": 1,
            "publishers": 1,
            "bytes": 1,
            "receivers": 1,
        },
        {
            "date": TODAY,
            "cell": "n49.8e8.6",
            "hour": NOON + HOUR,
            "events": 1,
            "publishers": 1,
            "bytes": 1,
            "receivers": 1,
        },
    ]
    assert_same_rows(rows_of(read_gold(spark, warehouse, "activity")), expected)


def test_compaction_keeps_every_row_in_fewer_files(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    for number in range(3):
        lake.export({"events": [event(f"e{number}", NOON + number), event(f"far{number}", DAY - 1, lat=-3.0)]})
        refine(spark, warehouse, lake.folder, "events", LATEST)
    before = rows_of(read_silver(spark, warehouse, "events"))
    reader = read_silver(spark, warehouse, "events")
    done = compact(spark, warehouse, "events", 1 << 20)
    assert (done.files_before, done.files_after) == (6, 2)
    assert_same_rows(rows_of(read_silver(spark, warehouse, "events")), before)
    assert_same_rows(rows_of(reader), before)
    assert compact(spark, warehouse, "events", 1 << 20).files_before == 2, "nothing left to do"
    assert clean(warehouse, 3600 * SECOND) == 0, "others may still read them"
    assert clean(warehouse, 0, now=warehouse.folder.stat().st_mtime + 60) == 6
    assert_same_rows(rows_of(read_silver(spark, warehouse, "events")), before)
    assert len(list((warehouse.folder / "silver").rglob("*.parquet"))) == 2
    assert refine(spark, warehouse, lake.folder, "events", LATEST).files == 0


def test_days_go_when_they_are_too_old(spark: SparkSession, lake: Lake, warehouse: Warehouse) -> None:
    lake.export({"events": [event("old", DAY - 1), event("new"), event("bad", DAY - 1, lat=99.0)]})
    refine(spark, warehouse, lake.folder, "events", LATEST)
    assert retain(warehouse, "events", NOON) == 2
    assert [row["event"] for row in rows_of(read_silver(spark, warehouse, "events"))] == ["new"]
    again = refine(spark, warehouse, lake.folder, "events", LATEST)
    assert (again.files, again.bronze, again.silver, again.expired) == (0, 3, 1, 2), "what went does not come back"
    assert retain(warehouse, "events", NOON) == 0


def test_what_killed_runs_left_is_deleted(lake: Lake, warehouse: Warehouse) -> None:
    left = warehouse.folder / "silver" / "events" / "date=2026-03-16" / "cell=none" / "orphan.parquet"
    staged = warehouse.folder / "_staging" / "run"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"")
    staged.mkdir(parents=True)
    soon = left.stat().st_mtime + 7200
    assert clean(warehouse, 3600 * SECOND, now=soon) == 1
    assert staged.exists(), "that run may still be going on"
    clean(warehouse, 3600 * SECOND, now=soon + 86_400)
    assert not staged.exists()
