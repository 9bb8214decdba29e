"""Traces as OGC Moving Features JSON (OGC 19-045r3): trajectories, and moving points of MF-JSON Prism.

Each fix becomes a report; how a path runs between two fixes is not the business of reports.  Times are RFC 3339, coordinates
longitude and latitude of WGS 84.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.model.time import Instant
from nearcast.pipeline.external.parsing import External, external, file_name, rfc3339, stem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CRS: Final = "struct<properties struct<name string>>"
_FIXES: Final = "type string, datetimes array<string>, coordinates array<array<double>>"
_MOVING: Final = f"struct<{_FIXES}, prisms array<struct<{_FIXES}>>>"
_GEOMETRY: Final = "struct<type string, coordinates array<array<double>>>"
_FEATURE: Final = (
    f"id string, properties struct<name string, datetimes array<string>>, geometry {_GEOMETRY}, "
    f"temporalGeometry {_MOVING}, crs {_CRS}"
)
_SCHEMA: Final = f"{_FEATURE}, features array<struct<{_FEATURE}>>, {_FIXES}, _corrupt_record string"
_WGS_84: Final = r".*CRS84$"


def read_moving_features(spark: SparkSession, paths: Sequence[str], latest: Instant) -> External:
    """Position reports of a Feature, a FeatureCollection or a MovingPoint in each file."""
    reader = spark.read.option("multiLine", True).option("columnNameOfCorruptRecord", "_corrupt_record")
    documents = reader.schema(_SCHEMA).json(list(paths))
    single = F.struct("id", "properties", "geometry", "temporalGeometry", "crs")
    features = documents.select(
        file_name(),
        F.col("_corrupt_record").alias("torn"),
        F.col("crs.properties.name").alias("crs"),
        F.explode_outer(F.coalesce("features", F.array(single))).alias("feature"),
        # A moving point may be the whole document.
        F.struct("datetimes", "coordinates").alias("bare"),
    )
    moving, geometry = F.col("feature.temporalGeometry"), F.col("feature.geometry.coordinates")
    trajectory = F.struct(F.col("feature.properties.datetimes").alias("datetimes"), geometry.alias("coordinates"))
    single_prism = F.struct(F.col("feature.temporalGeometry.datetimes"), F.col("feature.temporalGeometry.coordinates"))
    prisms = F.transform("feature.temporalGeometry.prisms", lambda prism: F.struct(prism.datetimes, prism.coordinates))
    parts = (
        F.when(F.col("bare.datetimes").isNotNull(), F.array("bare"))
        .when(moving.isNotNull(), F.coalesce(prisms, F.array(single_prism)))
        .otherwise(F.array(trajectory))
    )
    fixes = F.flatten(F.transform(parts, lambda part: F.arrays_zip(part.datetimes, part.coordinates)))
    system = F.coalesce("feature.crs.properties.name", "crs")
    named = features.select(
        "file",
        "torn",
        F.coalesce("feature.id", "feature.properties.name", stem(F.col("file"))).alias("client"),
        system.alias("system"),
        F.explode_outer(fixes).alias("fix"),
    )
    time, place = F.col("fix.datetimes"), F.col("fix.coordinates")
    found = named.select(
        "file",
        "client",
        time.alias("at"),
        F.get(place, F.lit(0)).alias("lon"),
        F.get(place, F.lit(1)).alias("lat"),
        F.coalesce("torn", F.to_json("fix")).alias("raw"),
        F.when(F.col("torn").isNotNull(), "is no JSON object")
        .when(F.col("fix").isNull(), "there are no fixes; give datetimes and coordinates")
        .when(
            ~F.col("system").rlike(_WGS_84), F.concat(F.lit("coordinates are in "), "system", F.lit(", not in CRS84"))
        )
        .when(F.size(place) < 2, "lat or lon is missing")
        .when(place.isNull(), "lat or lon is missing")
        .alias("problem"),
    )
    made = {"client": F.col("client"), "time": rfc3339(F.col("at")), "lat": F.col("lat"), "lon": F.col("lon")}
    return external(found, "reports", made, {"time": F.col("at")}, latest)
