"""Clients that walk about in a square and report where they are, and events at random places, as streams.

Both are made by a data source as time passes, so that nobody waits for whoever makes them: a row is there from its instant on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    import pyarrow as pa

LAT: Final = 49.0
LON: Final = 8.0
METRES_PER_DEGREE: Final = 111_195.0
EVENT: Final = 0
REPORT: Final = 1


@dataclass(frozen=True, slots=True)
class StreamWorkload:
    """So many events a second; each has about ``receivers``, because the square is as large as that takes."""

    events_per_second: int = 10_000
    clients: int = 100_000
    seconds_between_reports: float = 10.0
    receivers: float = 30.0
    radius: float = 150.0

    @property
    def side(self) -> float:
        """Metres."""
        return float(np.sqrt(self.clients * np.pi * self.radius**2 / self.receivers))


class Stretch(InputPartition):
    """Microseconds, the end excluded."""

    def __init__(self, kind: int, first: int, last: int) -> None:
        self.kind, self.first, self.last = kind, first, last


class SyntheticReader(DataSourceStreamReader):
    """Row k of a kind is there from its instant on, k steps after the epoch: offsets are instants, and all can be read again."""

    def __init__(self, kind: int, workload: StreamWorkload) -> None:
        self._kind, self._workload = kind, workload

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"us": time.time_ns() // 1000}

    def latestOffset(self, *_: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"us": time.time_ns() // 1000}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [Stretch(self._kind, start["us"], end["us"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        made = _events if partition.kind == EVENT else _reports
        yield made(self._workload, partition.first, partition.last)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept that could be let go."""


class Synthetic(DataSource):
    """``kind`` and the fields of the workload as options."""

    @classmethod
    def name(cls) -> str:
        return "nearcast-synthetic"

    def schema(self) -> str:
        if int(self.options["kind"]) == EVENT:
            return "event bigint, time timestamp, topic string, lat double, lon double"
        return "time timestamp, client bigint, lat double, lon double"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802, ARG002 - Spark's names
        given = {name: self.options[name] for name in asdict(StreamWorkload())}
        numbers = {name: int(value) if value.isdigit() else float(value) for name, value in given.items()}
        return SyntheticReader(int(self.options["kind"]), StreamWorkload(**numbers))  # type: ignore[arg-type]


def steps(per_second: float, first: int, last: int) -> Any:
    """The numbers of the rows between two instants."""
    return np.arange(*(int(np.ceil(instant * per_second / MICROSECONDS)) for instant in (first, last)), dtype=np.int64)


def _instants(numbers: Any, per_second: float) -> pa.Array:
    import pyarrow as pa

    return pa.array((numbers * (MICROSECONDS / per_second)).astype(np.int64), pa.timestamp("us", tz="UTC"))


def _places(numbers: Any, side: float) -> tuple[Any, Any]:
    """At random, and yet always the same for the same numbers."""
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(16)
    east, north = (mixed & np.uint64(0xFFFFFF)) / 2**24, (mixed >> np.uint64(24)) / 2**24
    return LAT + north * side / METRES_PER_DEGREE, LON + east * side / METRES_PER_DEGREE / np.cos(np.radians(LAT))


def _events(workload: StreamWorkload, first: int, last: int) -> pa.RecordBatch:
    import pyarrow as pa

    numbers = steps(workload.events_per_second, first, last)
    lat, lon = _places(numbers, workload.side)
    topic = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(numbers), np.int32)), ["city/report"])
    columns = [
        pa.array(numbers),
        _instants(numbers, workload.events_per_second),
        topic.cast(pa.string()),
        pa.array(lat),
        pa.array(lon),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["event", "time", "topic", "lat", "lon"])


def _reports(workload: StreamWorkload, first: int, last: int) -> pa.RecordBatch:
    """Everybody in turn; a client walks some 10 m from report to report."""
    import pyarrow as pa

    per_second = workload.clients / workload.seconds_between_reports
    numbers = steps(per_second, first, last)
    client, turn = numbers % workload.clients, numbers // workload.clients
    lat, lon = _places(client, workload.side)
    step = 10.0 / METRES_PER_DEGREE
    columns = [_instants(numbers, per_second), pa.array(client), pa.array(lat + step * (turn % 7)), pa.array(lon)]
    return pa.RecordBatch.from_arrays(columns, names=["time", "client", "lat", "lon"])
