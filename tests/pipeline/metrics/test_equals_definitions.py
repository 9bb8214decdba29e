"""Every metric that Spark computes is the one of ``nearcast.metrics``, on random worlds; no plan has Python or a cross join."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.metrics.worlds import CLIENTS, Row, World, as_table, event, notification
from tests.pipeline.frames import assert_same_rows, rows_of, rows_of_arrow

from nearcast import metrics as defined
from nearcast.metrics.columns import nullable, reals
from nearcast.model.geometry import Point
from nearcast.model.time import EVER, TimeFrame
from nearcast.pipeline import metrics as computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GRID = defined.Grid(Point(49.87, 8.65), 40.0)
WINDOWS = defined.Windows(3, 200, 31)
EXTRA = ("false_negatives", "false_positives")
"""``nearcast.metrics`` leaves these to whoever subtracts."""

worlds = pytest.mark.parametrize("seed", [1])
choices = pytest.mark.parametrize(("frame", "workload"), [(EVER, None), (TimeFrame(20, 150), "AR")])


@cache
def world(seed: int) -> World:
    draw = random.Random(seed)
    clients = [*CLIENTS, "eva", "finn"]
    events = [
        event(
            f"e{place}",
            draw.randrange(220),
            draw.choice([None, *clients]),
            None if draw.random() < 0.1 else draw.choices(clients, k=draw.randrange(6)),
            workload=draw.choice([None, "AR", "LBS"]),
            lat=draw.choice([None, 49.87 + draw.uniform(-1e-3, 1e-3)]),
            lon=8.65 + draw.uniform(-1e-3, 1e-3),
        )
        for place in range(60)
    ]
    told = [
        notification(
            draw.choice([*(f"e{place}" for place in range(50)), "nobody knows"]),
            draw.choice(clients),
            outcome=draw.choice(["delivered", "duplicate", "unwanted"]),
            delay=draw.randrange(3_000_000),
        )
        for _ in range(250)
    ]
    return World(events, told, plain=True)


def frames(spark: SparkSession, seed: int) -> tuple[DataFrame, DataFrame]:
    return tuple(spark.createDataFrame(table) for table in world(seed).tables())  # type: ignore[return-value]


def frame_of(spark: SparkSession, name: str, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame(as_table(name, rows, plain=True))


def one(found: DataFrame) -> Row:
    [row] = rows_of(found)
    return row


def fields(found: Any) -> Row:
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def assert_one(found: DataFrame, expected: Any) -> None:
    row = {name: value for name, value in one(found).items() if name not in EXTRA}
    assert_same_rows([row], [fields(expected)])


def without_extra(found: DataFrame) -> list[Row]:
    rows = rows_of(found)
    assert all(row["false_negatives"] == row["due"] - row["correct"] for row in rows)
    assert all(row["false_positives"] == row["notified"] - row["correct"] for row in rows)
    return [{name: value for name, value in row.items() if name not in EXTRA} for row in rows]


@worlds
@choices
def test_delivery_and_delay(spark: SparkSession, seed: int, frame: TimeFrame, workload: str | None) -> None:
    events, notifications = frames(spark, seed)
    found = computed.pairs(events, notifications, frame=frame, workload=workload).cache()
    expected = defined.pairs(*world(seed).tables(), frame=frame, workload=workload)
    wanted = computed.chosen(events, frame=frame, workload=workload)
    strays = computed.strays(events, notifications)
    assert_one(computed.totals(wanted, found, strays), defined.totals(expected))
    assert_one(computed.application_totals(found), defined.application_totals(expected))
    assert_one(computed.delay_totals(found), defined.delay_totals(expected))
    assert_same_rows(without_extra(computed.per_event(wanted, found)), rows_of_arrow(defined.per_event(expected)))
    assert_same_rows(without_extra(computed.per_client(found)), rows_of_arrow(defined.per_client(expected)))
    by_window = without_extra(computed.per_client_and_window(found, WINDOWS))
    assert_same_rows(by_window, rows_of_arrow(defined.per_client_and_window(expected, WINDOWS)))
    names = pa.array(expected.clients)
    for mine, theirs, key, among in (
        (computed.delay_per_event(found), defined.delay_per_event(expected), "event", expected.events["event"]),
        (computed.delay_per_client(found), defined.delay_per_client(expected), "client", names),
    ):
        table = pa.table({key: among, "seconds": nullable(theirs)})
        assert_same_rows(rows_of(mine), [row for row in rows_of_arrow(table) if row["seconds"] is not None])
    found.unpersist()


@worlds
def test_distributions_and_windows(spark: SparkSession, seed: int) -> None:
    events, notifications = frames(spark, seed)
    expected = defined.per_event(defined.pairs(*world(seed).tables()))
    found = computed.per_event(events, computed.pairs(events, notifications)).cache()
    box = defined.box_plot(reals(expected, "recall"))
    assert box is not None
    assert_one(computed.box_plot(found, "recall"), box)
    assert computed.box_plot(found.where("due < 0"), "recall").count() == 0
    index = WINDOWS.index(np.array([row["time"] for row in rows_of_arrow(expected)]))
    mine = computed.bands(found.withColumn("window", computed.window_of(WINDOWS, found["time"])), WINDOWS, "recall")
    theirs = rows_of_arrow(defined.bands(WINDOWS, index, reals(expected, "recall")))
    assert_same_rows(rows_of(mine.drop("window")), theirs)
    means = [0.25, 0.5, 0.9]
    runs = spark.createDataFrame([(value,) for value in means], "mean double")
    assert_one(computed.grand_mean(runs, "mean"), defined.grand_mean(means))
    assert one(computed.grand_mean(runs.limit(1), "mean"))["deviation"] is None
    found.unpersist()


@pytest.mark.parametrize("shares", [[1.0, 1.0, 1.0], [4.0, 0.0, 0.0], [0.1, 7.0, 2.5, 0.0], [0.0, 0.0]])
def test_fairness(spark: SparkSession, shares: list[float]) -> None:
    frame = spark.createDataFrame([(share,) for share in shares], "share double")
    assert_same_rows([one(computed.jain_index(frame, "share"))], [{"jain": defined.jain_index(shares)}])


def test_a_negative_share_is_refused(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="none of them negative or missing"):
        computed.jain_index(spark.createDataFrame([(-1.0,)], "share double"), "share").collect()


@worlds
def test_gaps(spark: SparkSession, seed: int) -> None:
    events, notifications = frames(spark, seed)
    per_event = computed.per_event(events, computed.pairs(events, notifications))
    expected = defined.aligned_recall(
        defined.per_event(defined.pairs(*world(seed).tables())), 100, before=100, after=110, length=5
    )
    found = computed.aligned_recall(per_event, 100, before=100, after=110, length=5).cache()
    table = pa.table(
        {
            "offset": expected.offsets,
            "due": expected.due,
            "correct": expected.correct,
            "recall": nullable(expected.recall),
        }
    )
    assert_same_rows(rows_of(found), rows_of_arrow(table))
    for options in ({"below": 0.1}, {"below": 0.0, "baseline": 0.9}, {"below": 0.9}):
        gap = fields(defined.recall_gap(expected, **options))
        del gap["below"]
        assert_same_rows([one(computed.recall_gap(found, length=5, **options))], [gap])
    found.unpersist()


def message(draw: random.Random) -> Row:
    sender, receiver = draw.choice([*CLIENTS, "broker"]), draw.choice([None, *CLIENTS, "broker"])
    time, arrived = draw.randrange(180), draw.random() < 0.7
    outcome, received = ("received" if arrived else "receiver down"), int(arrived)
    if receiver is None:
        outcome, received = "sent", draw.randrange(4)
    return {
        "time": time,
        "ended": time + draw.choice([0, 1, 40]),
        "interface": draw.choice(["cellular", "wifi"]),
        "kind": draw.choice(["event", "context", "plan", "riddle"]),
        "sender": sender,
        "receiver": receiver,
        "bytes": draw.randrange(300),
        "outcome": outcome,
        "received": received,
    }


@worlds
def test_traffic(spark: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    rows = [message(draw) for _ in range(150)]
    known = CLIENTS[:3]
    clients = spark.createDataFrame([(name,) for name in known], "client string")
    expected = defined.flows(as_table("messages", rows), known)
    found = computed.flows(frame_of(spark, "messages", rows), clients).cache()
    assert_same_rows(rows_of(computed.traffic_totals(found)), rows_of_arrow(expected.totals()))
    for direction in ("upload", "download"):
        mine = found.where(found["direction"] == direction)
        totals = sorted(rows_of(computed.total_rates(mine, WINDOWS)), key=lambda row: row["window"])
        assert [row["kilobits_per_second"] for row in totals] == pytest.approx(
            expected.total_rates(WINDOWS, direction).tolist(), rel=1e-9
        )
        matrix = expected.rates(WINDOWS, direction)
        each = [
            {"window": window, "client": name, "kilobits_per_second": float(matrix[window, place])}
            for window in range(WINDOWS.count)
            for place, name in enumerate(known)
        ]
        assert_same_rows(rows_of(computed.rates(mine, clients, WINDOWS)), each)
    found.unpersist()


@worlds
def test_carried(spark: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        {
            "since": 0,
            "until": 9,
            "interface": draw.choice(["cellular", "wifi"]),
            "direction": draw.choice(["sent", "received"]),
            "kind": draw.choice(["event", "alive", "riddle"]),
            "host": draw.choice(["broker", *CLIENTS]),
            "messages": draw.randrange(9),
            "bytes": draw.randrange(900),
        }
        for _ in range(80)
    ]
    expected = rows_of_arrow(defined.carried(as_table("traffic", rows)))
    assert_same_rows(rows_of(computed.carried(frame_of(spark, "traffic", rows))), expected)


@worlds
def test_spread(spark: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    rows = [
        {
            "time": time,
            "host": draw.choice(["broker", *CLIENTS]),
            "proxy": draw.choice(["filter scheme", "direct dissemination"]),
            "source": None,
            "target": draw.choice([None, "grid", "ste"]),
            "lat": draw.choice([None, 49.0]),
            "lon": 8.0,
            "plan": draw.choice([None, "p1", "p2"]),
        }
        for time in draw.sample(range(300), 60)
    ]
    frame, table = frame_of(spark, "transitions", rows), as_table("transitions", rows)
    assert_same_rows(rows_of(computed.spreads(frame)), rows_of_arrow(defined.spreads(table)))
    wanted: dict[str, Any]
    for wanted in ({}, {"plan": "p1"}, {"target": "grid", "frame": TimeFrame(50, 200)}, {"hosts": frozenset(CLIENTS)}):
        expected = defined.executions(table, **wanted)
        found = computed.executions(frame, **wanted)
        assert {(row["host"], row["time"]) for row in rows_of(found)} == set(
            zip(expected.hosts, expected.times.tolist(), strict=True)
        )
        for of in (None, 9):
            assert_one(computed.spread(found, of), defined.spread(expected, of))


@worlds
def test_maps(spark: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    positions = [
        {
            "time": time,
            "client": name,
            "lat": 49.87 + draw.uniform(-1e-3, 1e-3),
            "lon": 8.65 + draw.uniform(-1e-3, 1e-3),
            "speed": 1.0,
            "heading": None,
        }
        for name in [*CLIENTS, "eva"]  # nobody has seen finn
        for time in draw.sample(range(30, 180), 12)
    ]
    events, notifications = frames(spark, seed)
    pairs = computed.pairs(events, notifications)
    expected = defined.pairs(*world(seed).tables())
    seen, table = frame_of(spark, "positions", positions), as_table("positions", positions)
    cells: list[tuple[DataFrame, Any]] = [
        (computed.visits(seen, GRID), defined.visits(table, GRID)),
        (
            computed.recall_by_place_of_event(computed.per_event(events, pairs), GRID).drop(*EXTRA),
            defined.recall_by_place_of_event(defined.per_event(expected), GRID),
        ),
        (
            computed.recall_by_place_of_client(pairs, seen, GRID).drop(*EXTRA),
            defined.recall_by_place_of_client(expected, table, GRID),
        ),
    ]
    for mine, theirs in cells:
        assert_same_rows(rows_of(mine), rows_of_arrow(theirs.drop_columns(["lat", "lon"])))


@worlds
def test_match_operations(spark: SparkSession, seed: int) -> None:
    draw = random.Random(seed)
    names = (
        "events matched",
        "match operations, as counted in the documents",
        "match operations, as done",
        "clients up",
    )
    rows = [
        {"time": time, "metric": name, "value": float(draw.randrange(50))}
        for name in names
        for time in draw.sample(range(220), 20)
    ]
    frame, table = frame_of(spark, "metrics", rows), as_table("metrics", rows)
    found = computed.match_operations(frame, WINDOWS).drop("window")
    assert_same_rows(rows_of(found), rows_of_arrow(defined.match_operations(table, WINDOWS)))
    grown = sorted(rows_of(computed.increases(frame, names[0], WINDOWS)), key=lambda row: row["window"])
    assert [row["increase"] for row in grown] == defined.increases(table, names[0], WINDOWS).tolist()


def test_plans_have_neither_python_nor_a_cross_join(spark: SparkSession) -> None:
    events, notifications = frames(spark, 1)
    pairs = computed.pairs(events, notifications)
    positions = frame_of(spark, "positions", [])
    made: list[Callable[[], DataFrame]] = [
        lambda: computed.totals(events, pairs, computed.strays(events, notifications)),
        lambda: computed.per_event(events, pairs),
        lambda: computed.per_client_and_window(pairs, WINDOWS),
        lambda: computed.recall_by_place_of_client(pairs, positions, GRID),
        lambda: computed.recall_gap(computed.aligned_recall(computed.per_event(events, pairs), 100), below=0.1),
        lambda: computed.spreads(frame_of(spark, "transitions", [])),
    ]
    for make in made:
        plan = make()._jdf.queryExecution().executedPlan().toString()
        assert [word for word in ("Python", "Cartesian", "NestedLoop") if word in plan] == []
