"""GPS traces as GPX 1.0 or 1.1: the points of each ``trk``, under its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.model.time import Instant
from nearcast.pipeline.external.parsing import External, external, file_name, real, rfc3339, stem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POINT: Final = "struct<_lat: string, _lon: string, time: string>"
_SCHEMA: Final = f"name string, trkseg array<struct<trkpt: array<{_POINT}>>>, _corrupt_record string"


def read_gpx(spark: SparkSession, paths: Sequence[str], latest: Instant) -> External:
    """Position reports; a track without a name is called after its file."""
    options = {"rowTag": "trk", "columnNameOfCorruptRecord": "_corrupt_record"}
    tracks = spark.read.format("xml").options(**options).schema(_SCHEMA).load(list(paths))
    named = tracks.select(
        F.col("name"),
        F.flatten(F.col("trkseg.trkpt")).alias("points"),
        F.col("_corrupt_record").alias("torn"),
        file_name(),
    )
    points = named.select("name", "torn", "file", F.explode_outer("points").alias("point"))
    found = points.select(
        F.coalesce("name", stem(F.col("file"))).alias("client"),
        "point",
        "file",
        F.coalesce("torn", F.to_json("point")).alias("raw"),
        F.when(F.col("torn").isNotNull(), "is no well-formed XML")
        .when(F.col("point").isNull(), "the track has no points")
        .when(F.col("point._lat").isNull() | F.col("point._lon").isNull(), "lat or lon is missing")
        .alias("problem"),
    )
    time, lat, lon = F.col("point.time"), F.col("point._lat"), F.col("point._lon")
    made = {"client": F.col("client"), "time": rfc3339(time), "lat": real(lat), "lon": real(lon)}
    return external(found, "reports", made, {"time": time, "lat": lat, "lon": lon}, latest)
