"""The same matches as others would write them in Spark: an equi-join on cells, then the distance.

Cells are one radius large, so that a circle touches nine of them; the smaller side is the one that is copied nine times:
clients of a snapshot, events where everybody reports again and again.  There the reports become intervals (until the
client's next one), cut at buckets of five seconds which are part of the key of the join.

The answer is a row per pair, which is less work than one row per event: no peer is asked to group them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from nearcast.benchmark.pipeline_data import PERIOD, Tables
from nearcast.benchmark.plane import CITY_LAT
from nearcast.benchmark.workload import RADIUS
from nearcast.model.geometry import EARTH_RADIUS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_DEGREES: Final = math.degrees(RADIUS / EARTH_RADIUS)
_WIDE_DEGREES: Final = _DEGREES / math.cos(math.radians(CITY_LAT)) * 1.02
"""A cell's width; a little more, because the north of the city is narrower."""
_PLANAR: Final = 1.01
"""The planar distance is compared with so many radii before the exact one is computed."""

Near = Callable[["Column", "Column", "Column", "Column"], "Column"]


def haversine(lat1: Column, lon1: Column, lat2: Column, lon2: Column) -> Column:
    from pyspark.sql import functions as F

    half_lat, half_lon = F.radians(lat2 - lat1) / 2, F.radians(lon2 - lon1) / 2
    h = F.pow(F.sin(half_lat), F.lit(2)) + F.cos(F.radians(lat1)) * F.cos(F.radians(lat2)) * F.pow(
        F.sin(half_lon), F.lit(2)
    )
    return F.lit(2 * EARTH_RADIUS) * F.asin(F.sqrt(h)) <= RADIUS


def with_prefilter(lat1: Column, lon1: Column, lat2: Column, lon2: Column) -> Column:
    """Most strangers are told by a planar distance, which costs no sine."""
    from pyspark.sql import functions as F

    shrink = F.lit(math.cos(math.radians(CITY_LAT)))
    north, east = lat2 - lat1, (lon2 - lon1) * shrink
    limit = (_DEGREES * _PLANAR) ** 2
    # East of the centre a degree of longitude is a little more or less than in its middle: 2 % cover a large city.
    return (north * north + east * east <= limit * 1.04) & haversine(lat1, lon1, lat2, lon2)


def pandas_udf_haversine(lat1: Column, lon1: Column, lat2: Column, lon2: Column) -> Column:
    from pyspark.sql.pandas.functions import pandas_udf

    from nearcast.benchmark.pipeline_pandas import near

    as_udf: Any = pandas_udf  # its stubs do not know functions with annotations
    found: Column = as_udf(near, "boolean")(lat1, lon1, lat2, lon2)
    return found


SYSTEMS: Final[dict[str, Near]] = {
    "cell-join-haversine": haversine,
    "cell-join-prefilter": with_prefilter,
    "cell-join-pandas-udf": pandas_udf_haversine,
}


def pairs(spark: SparkSession, tables: Tables, near: Near) -> DataFrame:
    """Pairs of event and client."""
    events, reports = tables.frame(spark, "events"), tables.frame(spark, "reports")
    return _as_of(events, reports, near) if tables.seconds else _snapshot(events, reports, near)


def _snapshot(events: DataFrame, reports: DataFrame, near: Near) -> DataFrame:
    from pyspark.sql import functions as F

    left = events.select(
        "event", F.col("lat").alias("elat"), F.col("lon").alias("elon"), _cell("lat", "lon").alias("cell")
    )
    right = reports.select("client", "lat", "lon", F.explode(_around("lat", "lon")).alias("cell"))
    joined = left.join(right, "cell")
    return joined.where(_near(near)).select("event", "client")


def _as_of(events: DataFrame, reports: DataFrame, near: Near) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    since, at = F.unix_micros("time"), F.unix_micros("time")
    bucket = F.floor(at / PERIOD)
    left = events.select(
        "event", at.alias("at"), F.col("lat").alias("elat"), F.col("lon").alias("elon"), bucket.alias("bucket"),
        F.explode(_around("lat", "lon")).alias("cell"),
    )  # fmt: skip
    until = F.lead(since).over(Window.partitionBy("client").orderBy("time"))
    last = F.coalesce(until, since + 2 * PERIOD)
    spans = reports.select(
        "client", "lat", "lon", _cell("lat", "lon").alias("cell"), since.alias("since"), last.alias("until")
    )
    right = spans.withColumn(
        "bucket", F.explode(F.sequence(F.floor(F.col("since") / PERIOD), F.floor((F.col("until") - 1) / PERIOD)))
    )
    joined = left.join(right, ["cell", "bucket"])
    during = (F.col("since") <= F.col("at")) & (F.col("at") < F.col("until"))
    return joined.where(during).where(_near(near)).select("event", "client")


def _near(near: Near) -> Column:
    from pyspark.sql import functions as F

    return near(F.col("elat"), F.col("elon"), F.col("lat"), F.col("lon"))


def _cell(lat: str, lon: str, north: int = 0, east: int = 0) -> Any:
    from pyspark.sql import functions as F

    row = F.floor(F.col(lat) / _DEGREES) + north
    column = F.floor(F.col(lon) / _WIDE_DEGREES) + east
    return row * F.lit(10_000_000) + column


def _around(lat: str, lon: str) -> Column:
    from pyspark.sql import functions as F

    return F.array(*(_cell(lat, lon, north, east) for north in (-1, 0, 1) for east in (-1, 0, 1)))
