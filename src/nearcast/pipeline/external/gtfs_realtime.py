"""Vehicle positions of GTFS-realtime: each file is a feed as agencies publish it, in Protocol Buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from nearcast.errors import SetupError
from nearcast.model.time import Instant
from nearcast.pipeline.external.parsing import External, external

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOUND: Final = "file string, client string, seconds long, lat double, lon double, raw string, problem string"


def read_gtfs_realtime(spark: SparkSession, paths: Sequence[str], latest: Instant) -> External:
    """Position reports, one for each vehicle of a feed; its time is that of the position, else that of the feed."""
    try:
        from google.transit import gtfs_realtime_pb2  # noqa: F401 - so that it is missed here, and not on an executor
    except ImportError:
        raise SetupError("GTFS-realtime needs the package that reads it: pip install gtfs-realtime-bindings") from None
    feeds = spark.read.format("binaryFile").load(list(paths)).select("path", "content")
    found = feeds.mapInArrow(_vehicles, _FOUND)
    made = {
        "client": F.col("client"),
        "time": F.timestamp_seconds("seconds"),
        "lat": F.col("lat"),
        "lon": F.col("lon"),
    }
    return external(found, "reports", made, {}, latest)


def _vehicles(batches: Iterator[Any]) -> Iterator[Any]:
    """All vehicles of the feeds of a batch; a feed that cannot be read is one row that says so."""
    import pyarrow as pa
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from google.transit import gtfs_realtime_pb2

    schema = pa.schema(
        [
            ("file", pa.string()),
            ("client", pa.string()),
            ("seconds", pa.int64()),
            ("lat", pa.float64()),
            ("lon", pa.float64()),
            ("raw", pa.string()),
            ("problem", pa.string()),
        ]
    )
    for batch in batches:
        rows: list[tuple[Any, ...]] = []
        for path, content in zip(batch["path"].to_pylist(), batch["content"].to_pylist(), strict=True):
            name = path.rpartition("/")[2]
            try:
                feed = gtfs_realtime_pb2.FeedMessage.FromString(content)
            except DecodeError as error:
                rows.append((name, None, None, None, None, content[:40].hex(), f"is no GTFS-realtime feed: {error}"))
                continue
            rows += [_row(name, feed.header, entity) for entity in feed.entity if entity.HasField("vehicle")]
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
        )


def _row(name: str, header: Any, entity: Any) -> tuple[Any, ...]:
    position = entity.vehicle
    placed = position.HasField("position")
    seconds = position.timestamp or header.timestamp or None
    # Single precision in the feed: as many digits as it means, or 49.9 would become 49.900001525878906.
    lat, lon = (_short(position.position.latitude), _short(position.position.longitude)) if placed else (None, None)
    raw = str(entity).replace("\n", " ").strip()
    problem = None if placed else "lat or lon is missing"
    return name, position.vehicle.id or entity.id, seconds, lat, lon, raw, problem


def _short(single: float) -> float:
    import numpy as np

    return float(str(np.float32(single)))
