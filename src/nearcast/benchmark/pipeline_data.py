"""Tables for ``nearcast bench pipeline``: the city of ``workload`` as record tables in Parquet.

**Snapshot**: everybody has reported and subscribed before the first event.  **As-of**: everybody walks to and fro (50 m
around home, at walking speed) and reports every five seconds, each at a moment of its own; events happen where somebody
stands at that moment.  Density, and so the number of receivers per event, is that of the match benchmark: about 30.
Clients and events are whole numbers, the form in which every system is quickest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from nearcast.benchmark.plane import Floats, to_degrees, to_plane
from nearcast.benchmark.workload import JITTER, RADIUS, city
from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEGINNING: Final = 1_767_225_600 * MICROSECONDS
PERIOD: Final = 5 * MICROSECONDS
"""Between two reports of a client."""
_AMPLITUDE: Final = 50.0
_ANGULAR: Final = 1.4 / _AMPLITUDE
_FILE_ROWS: Final = 1_000_000
_FILES: Final = 8


@dataclass(frozen=True, slots=True)
class Tables:
    """A folder of Parquet tables, and how much is in it."""

    folder: Path
    clients: int
    events: int
    seconds: int
    """How long; 0 is a snapshot."""

    def frame(self, spark: SparkSession, name: str) -> DataFrame:
        return spark.read.parquet(str(self.folder / name))

    def frames(self, spark: SparkSession) -> tuple[DataFrame, DataFrame, DataFrame]:
        """What ``match`` takes."""
        return self.frame(spark, "events"), self.frame(spark, "reports"), self.frame(spark, "subscriptions")


def snapshot(folder: Path, clients: int, events: int, *, crowded: bool = False) -> Tables:
    """Everybody stands still; if ``crowded``, three in ten stand on a hundredth of the city, where as many events happen."""
    folder.mkdir(parents=True)
    world = city(clients, events)
    lat, lon, event_lat, event_lon = world.lat, world.lon, world.events.lat, world.events.lon
    if crowded:
        random = np.random.default_rng(7)
        side = world.side / 10
        for lats, lons in ((lat, lon), (event_lat, event_lon)):
            there = random.random(len(lats)) < 0.3
            x, y = random.uniform(-side / 2, side / 2, (2, int(there.sum())))
            lats[there], lons[there] = to_degrees(x, y)
    before = np.full(clients, BEGINNING - MICROSECONDS)
    _write(folder / "reports", _reports(np.arange(clients), before, lat, lon))
    _write(folder / "subscriptions", _subscriptions(clients))
    times = BEGINNING + np.sort(np.random.default_rng(3).integers(0, 3600 * MICROSECONDS, events))
    _write(folder / "events", _events(0, times, event_lat, event_lon))
    return Tables(folder, clients, events, 0)


def as_of(folder: Path, clients: int, events: int, seconds: int) -> Tables:
    """Everybody moves; one file of reports for each minute."""
    folder.mkdir(parents=True)
    world = city(clients, 1024)
    walkers = _Walkers(*to_plane(world.lat, world.lon), np.random.default_rng(5).integers(0, PERIOD, clients))
    _write(folder / "subscriptions", _subscriptions(clients))
    (folder / "reports").mkdir()
    steps = seconds * MICROSECONDS // PERIOD
    for first in range(-1, steps, 12):
        times = np.concatenate([walkers.phase + step * PERIOD for step in range(first, min(first + 12, steps))])
        who = np.tile(np.arange(clients), len(times) // clients)
        order = np.argsort(times, kind="stable")
        times, who = times[order], who[order]
        table = _reports(who, BEGINNING + times, *walkers.places(who, times))
        _write_file(folder / "reports" / f"{first + 1:06}.parquet", table)
    random = np.random.default_rng(6)
    times = np.sort(random.integers(0, seconds * MICROSECONDS, events))
    lat, lon = walkers.places(random.integers(0, clients, events), times, JITTER)
    _write(folder / "events", _events(0, BEGINNING + times, lat, lon))
    return Tables(folder, clients, events, seconds)


def part(tables: Tables, folder: Path, spark: SparkSession, share: float) -> Tables:
    """A part of the tables, for systems that would take too long: the first events, and what was reported up to them."""
    from pyspark.sql import functions as F

    events, reports = tables.frame(spark, "events"), tables.frame(spark, "reports")
    seconds = round(tables.seconds * share)
    if tables.seconds:
        until = F.timestamp_micros(F.lit(BEGINNING + seconds * MICROSECONDS))
        events, reports = events.where(F.col("time") < until), reports.where(F.col("time") < until)
    else:
        events = events.where(F.col("event") < int(tables.events * share))
    for name, frame in (
        ("events", events),
        ("reports", reports),
        ("subscriptions", tables.frame(spark, "subscriptions")),
    ):
        frame.write.parquet(str(folder / name))
    return Tables(folder, tables.clients, Tables(folder, 0, 0, 0).frame(spark, "events").count(), seconds)


@dataclass(frozen=True, eq=False, slots=True)
class _Walkers:
    x: Floats
    y: Floats
    phase: NDArray[np.int64]

    def places(self, who: NDArray[Any], times: NDArray[np.int64], jitter: float = 0.0) -> tuple[Floats, Floats]:
        angle = _ANGULAR * times / MICROSECONDS + self.phase[who]
        x, y = self.x[who] + _AMPLITUDE * np.sin(angle), self.y[who] + _AMPLITUDE * np.cos(0.7 * angle)
        if jitter:
            random = np.random.default_rng(8)
            x, y = x + random.normal(0, jitter, len(x)), y + random.normal(0, jitter, len(y))
        return to_degrees(x, y)


def _reports(client: NDArray[Any], time: NDArray[Any], lat: Floats, lon: Floats) -> Any:
    import pyarrow as pa

    return pa.table({"time": _instants(time), "client": client.astype(np.int64), "lat": lat, "lon": lon})


def _subscriptions(clients: int) -> Any:
    import pyarrow as pa

    return pa.table(
        {
            "time": _instants(np.full(clients, BEGINNING - MICROSECONDS)),
            "client": np.arange(clients),
            "subscription": pa.array(["nearby"] * clients),
            "action": pa.array(["subscribed"] * clients),
            "topic_filter": pa.array(["city/#"] * clients),
            "radius": np.full(clients, RADIUS),
        }
    )


def _events(first: int, time: NDArray[Any], lat: Floats, lon: Floats) -> Any:
    import pyarrow as pa

    topic = pa.DictionaryArray.from_arrays(np.zeros(len(time), np.int32), ["city/report"])
    return pa.table(
        {"event": np.arange(first, first + len(time)), "time": _instants(time), "topic": topic, "lat": lat, "lon": lon}
    )


def _instants(micros: NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.array(micros, pa.timestamp("us", tz="UTC"))


def _write(folder: Path, table: Any) -> None:
    """Several files, so that all cores read."""
    folder.mkdir()
    rows = max(1, -(-table.num_rows // max(_FILES, -(-table.num_rows // _FILE_ROWS))))
    for number, first in enumerate(range(0, table.num_rows, rows)):
        _write_file(folder / f"{number:06}.parquet", table.slice(first, rows))


def _write_file(path: Path, table: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")
