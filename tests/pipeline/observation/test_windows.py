"""Density, fan-out, load and the audit by windows of time: in batches and in streams."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F
from tests.metrics.worlds import as_table, event, notification
from tests.pipeline.frames import BEGINNING, at, frame, rows, table_frame

from nearcast.errors import InvalidTime
from nearcast.metrics.delivery import per_event
from nearcast.metrics.maps import Grid, visits
from nearcast.metrics.pairs import pairs
from nearcast.model.geometry import Point
from nearcast.pipeline.observation.audit import audit
from nearcast.pipeline.observation.density import crowd, density
from nearcast.pipeline.observation.load import fan_out, load
from nearcast.runtime.simulation.plane import Plane

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORIGIN = Point(49.8728, 8.6512)
GRID = Grid(ORIGIN, 50.0)
MINUTE = 60.0


def walk(count: int = 2_000) -> Any:
    """Reports of 20 clients within four minutes, on a square of 400 m; some say that they know no place any more."""
    random = np.random.default_rng(7)
    lat, lon = Plane(ORIGIN).degrees(random.uniform(-200, 200, count), random.uniform(-200, 200, count))
    times = np.sort(random.integers(0, 240_000_000, count))
    nowhere = random.random(count) < 0.05
    return pa.table(
        {
            "time": pa.array(BEGINNING + times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "client": [f"c{number}" for number in random.integers(0, 20, count)],
            "lat": pa.array(lat, mask=nowhere),
            "lon": pa.array(lon, mask=nowhere),
        }
    )


def messages(count: int = 300) -> Any:
    random = np.random.default_rng(8)
    sizes = random.integers(0, 30, count)
    receivers = [None if size > 27 else [f"c{number}" for number in range(size)] for size in sizes]
    times = BEGINNING + np.sort(random.integers(0, 180_000_000, count))
    return pa.table(
        {
            "time": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "event": [f"e{number}" for number in range(count)],
            "bytes": pa.array(random.integers(1, 500, count), pa.int64()),
            "receivers": pa.array(receivers, pa.list_(pa.string())),
        }
    )


def test_density_counts_each_client_once_in_every_window_and_cell(spark: SparkSession) -> None:
    reports = walk()
    expected: dict[tuple[int, int, int], list[str]] = defaultdict(list)
    for row in reports.to_pylist():
        if row["lat"] is not None:
            (column,), (line,) = GRID.cells(np.array([row["lat"]]), np.array([row["lon"]]))
            minute = int((row["time"] - at(0)).total_seconds() // 60)
            expected[minute, int(column), int(line)].append(row["client"])
    found = rows(density(frame(spark, reports), GRID, MINUTE), "since")
    assert {
        (int((row["since"].timestamp() * 1e6 - BEGINNING) // 60_000_000), row["column"], row["row"]): (
            row["reports"],
            row["clients"],
        )
        for row in found
    } == {key: (len(clients), len(set(clients))) for key, clients in expected.items()}
    for row in found:
        assert (row["until"] - row["since"]).total_seconds() == MINUTE
        assert row["per_km2"] == row["clients"] * 400
        (lat,), (lon,) = GRID.middles(np.array([row["column"]]), np.array([row["row"]]))
        assert (row["lat"], row["lon"]) == pytest.approx((lat, lon), abs=1e-10)


def test_reports_by_cell_are_the_visits_of_the_metrics(spark: SparkSession) -> None:
    reports = walk()
    seen = reports.filter(pa.compute.is_valid(reports["lat"]))
    day = 86_400.0
    found = rows(density(frame(spark, reports), GRID, day), "row", "column")
    assert [(row["column"], row["row"], row["reports"]) for row in found] == [
        (row["column"], row["row"], row["count"]) for row in visits(seen, GRID).to_pylist()
    ]


def test_the_crowd_counts_everybody_once_a_window(spark: SparkSession) -> None:
    reports = walk(60)
    found = rows(crowd(frame(spark, reports), 240.0), "since")
    placed = [row["client"] for row in reports.to_pylist() if row["lat"] is not None]
    assert [(row["clients"], row["reports"]) for row in found] == [(len(set(placed)), len(placed))]


def test_fan_out_counts_events_whose_receivers_are_known(spark: SparkSession) -> None:
    events = messages()
    by_minute: dict[int, list[int]] = defaultdict(list)
    for row in events.to_pylist():
        if row["receivers"] is not None:
            by_minute[int((row["time"] - at(0)).total_seconds() // 60)].append(len(row["receivers"]))
    found = rows(fan_out(frame(spark, events), MINUTE), "since")
    names = ("events", "deliveries", "mean", "median", "p95", "most")
    assert [tuple(row[name] for name in names) for row in found] == [
        (
            len(n),
            sum(n),
            pytest.approx(np.mean(n)),
            pytest.approx(np.median(n)),
            pytest.approx(np.percentile(n, 95)),
            max(n),
        )
        for _, n in sorted(by_minute.items())
    ]


def test_load_is_what_comes_in_and_what_goes_out(spark: SparkSession) -> None:
    events = pa.table(
        {
            "time": [at(0), at(9), at(10)],
            "bytes": [100, 50, 7],
            "receivers": pa.array([["a", "b"], None, ["a"]], pa.list_(pa.string())),
        }
    )
    reports = pa.table({"time": [at(5), at(25)], "client": ["a", "a"]})
    found = rows(load(frame(spark, events), frame(spark, reports), 10.0), "since")
    shown = ("events", "reports", "deliveries", "bytes_in", "bytes_out")
    assert [tuple(row[name] for name in shown) for row in found] == [
        (2, 1, 2, 150, 200),
        (1, 0, 1, 7, 7),
        (0, 1, 0, 0, 0),
    ]
    rates = ("messages_in_rate", "messages_out_rate", "bytes_in_rate", "bytes_out_rate")
    assert [tuple(row[name] for name in rates) for row in found] == [
        pytest.approx((0.3, 0.2, 15.0, 20.0)),
        pytest.approx((0.1, 0.1, 0.7, 0.7)),
        pytest.approx((0.1, 0.0, 0.0, 0.0)),
    ]


def test_the_audit_agrees_with_the_metrics(spark: SparkSession) -> None:
    random = np.random.default_rng(3)
    clients = ["ada", "bob", "cäcilie", "dan"]

    def some() -> list[str]:
        return [str(name) for name in random.choice(clients, random.integers(0, 6))]

    events = [
        event(
            f"e{n}", BEGINNING + n * 1_000_000, [None, *clients][random.integers(0, 5)], None if n % 7 == 0 else some()
        )
        for n in range(80)
    ]
    told = [
        notification(f"e{random.integers(0, 90)}", client, outcome=["delivered", "duplicate", "unwanted"][n % 3])
        for n in range(60)
        for client in some()
    ]
    tables = as_table("events", events), as_table("notifications", told)
    frames = table_frame(spark, "events", tables[0]), table_frame(spark, "notifications", tables[1])
    expected = [row for row in per_event(pairs(*tables)).to_pylist() if int(row["event"][1:]) % 7]
    windows = rows(audit(*frames, 20.0), "since")
    assert [row["events"] for row in windows] == [17, 17, 17, 17]
    for number, row in enumerate(windows):
        those = [each for each in expected if number == int(each["event"][1:]) // 20]
        sums = {name: sum(each[name] for each in those) for name in ("due", "notified", "correct")}
        assert {name: row[name] for name in sums} == sums
        assert row["recall"] == sums["correct"] / sums["due"]
        assert row["precision"] == sums["correct"] / sums["notified"]


def test_a_window_has_a_length(spark: SparkSession) -> None:
    with pytest.raises(InvalidTime, match="positive length"):
        fan_out(frame(spark, messages(1)), 0.0)


Job = Callable[["DataFrame"], "DataFrame"]


@pytest.mark.parametrize(
    ("table", "job"),
    [
        (walk(), lambda reports: density(reports, GRID, MINUTE)),
        (messages(), lambda events: fan_out(events, MINUTE)),
        (messages(), lambda events: load(events, events, MINUTE)),
    ],
    ids=["density", "fan-out", "load"],
)
def test_a_stream_gives_what_the_batch_gives(spark: SparkSession, tmp_path: Path, table: Any, job: Job) -> None:
    """Once the watermark has passed; the last windows stay open until then."""
    folder = tmp_path / "in"
    folder.mkdir()
    half = len(table) // 2
    for number, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, folder / f"{number}.parquet")
    batch = spark.read.parquet(str(folder))
    stream = spark.readStream.schema(batch.schema).parquet(str(folder)).withWatermark("time", "1 second")
    query = (
        job(stream)
        .writeStream.format("memory")
        .queryName("observed")
        .outputMode("append")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination()
    over = F.col("until") <= F.lit(table["time"][-1].as_py()) - F.expr("interval 1 second")
    expected = job(batch).where(over)
    order = [name for name in expected.columns if name in {"since", "column", "row"}]
    found = rows(spark.table("observed"), *order)
    assert found
    assert found == rows(expected, *order)
