"""Traces as OGC Moving Features CSV (OGC 14-084r2): a line for each leg of a way.

::

    @stboundedby,urn:ogc:def:crs:CRS:1.3:84,2D,8.6 49.8,8.7 49.9,2026-03-16T12:00:00Z,2026-03-16T13:00:00Z,sec
    @columns,mfidref,trajectory,state,xsd:token
    ada,10,150,8.65 49.87 8.66 49.88,walking

Times are seconds or minutes since the beginning that the first line names, or instants (``absolute``).  The first point of a leg
is that of its start, the last that of its end; those between have no times of their own, and are spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from nearcast.model.time import Instant
from nearcast.pipeline.external.parsing import External, external, real, rfc3339

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BOUNDS: Final = "@stboundedby"
_COLUMNS: Final = "@columns"
_LEG: Final = "client string, start string, end string, points string"
_CSV: Final = {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"}
_LON_LAT: Final = r"(?i)(CRS84|:84)$"
_LAT_LON: Final = r"(?i)EPSG:.*4326$"
"""Coordinates come in the order that the reference system says."""

_MICROSECONDS: Final = {"sec": 1_000_000, "second": 1_000_000, "minute": 60_000_000, "hour": 3_600_000_000}


def read_moving_features_csv(spark: SparkSession, paths: Sequence[str], latest: Instant) -> External:
    """Position reports of the points of each leg; a point where two legs meet is in both."""
    lines = spark.read.text(list(paths)).select(
        F.trim("value").alias("raw"),
        F.col("_metadata.file_path").alias("path"),
        F.col("_metadata.file_name").alias("file"),
    )
    legs = lines.where(~F.col("raw").rlike("^([@#]|$)")).withColumn("leg", F.from_csv("raw", _LEG, _CSV))
    told = legs.join(F.broadcast(_headers(lines)), "path", "left")
    texts = F.split(F.col("leg.points"), r"\s+")
    points = F.size(texts) / F.col("dimensions")
    read = told.select(
        "file",
        "raw",
        F.col("leg.client").alias("client"),
        F.col("leg.start").alias("start"),
        F.col("leg.end").alias("end"),
        "lat_first",
        "dimensions",
        texts.alias("texts"),
        _moment(F.col("leg.start")).alias("since"),
        _moment(F.col("leg.end")).alias("until"),
        F.coalesce(
            F.col("wrong"),
            F.when(
                F.col("raw").isNull() | F.col("leg.points").isNull(), "is no line of mfidref, start, end, trajectory"
            ),
            F.when(
                points != F.floor(points),
                F.concat(F.lit("the trajectory has no "), "dimensions", F.lit(" coordinates for each point")),
            ),
        ).alias("problem"),
    )
    return external(*_fixes(read), latest)


def _headers(lines: DataFrame) -> DataFrame:
    """What the first lines of each file say, and what is wrong with them."""
    said = lines.groupBy("path").agg(
        F.max(F.when(F.lower("raw").startswith(_BOUNDS), F.col("raw"))).alias("bounds"),
        F.max(F.when(F.lower("raw").startswith(_COLUMNS), F.regexp_replace(F.lower("raw"), r"\s", ""))).alias(
            "columns"
        ),
    )
    words = F.split("bounds", r"\s*,\s*")
    # How many dimensions there are need not be said.
    full = F.when(F.get(words, F.lit(2)).rlike(r"(?i)^\dD$"), words).otherwise(
        F.concat(F.slice(words, 1, 2), F.array(F.lit("2D")), F.slice(words, 3, 100))
    )
    system, begin = F.get(full, F.lit(1)), F.get(full, F.lit(5))
    unit = F.coalesce(F.lower(F.get(full, F.lit(7))), F.lit("sec"))
    known = F.create_map(*(F.lit(each) for pair in _MICROSECONDS.items() for each in pair))
    return said.select(
        "path",
        F.left(F.get(full, F.lit(2)), F.lit(1)).try_cast("int").alias("dimensions"),
        system.rlike(_LAT_LON).alias("lat_first"),
        rfc3339(begin).alias("begin"),
        (unit == "absolute").alias("absolute"),
        F.try_element_at(known, unit).alias("unit"),
        F.when(F.col("bounds").isNull(), f"the file has no line {_BOUNDS}")
        .when(
            F.coalesce(~F.col("columns").startswith(f"{_COLUMNS},mfidref,trajectory"), F.lit(True)),
            f"the file has no line {_COLUMNS},mfidref,trajectory",
        )
        .when(
            ~(system.rlike(_LON_LAT) | system.rlike(_LAT_LON)),
            F.concat(F.lit("coordinates are in "), system, F.lit(", not in CRS84 or EPSG:4326")),
        )
        .when(
            (unit != "absolute") & F.try_element_at(known, unit).isNull(),
            F.concat(F.lit("times are in "), unit, F.lit(", not in sec, minute or absolute")),
        )
        .when(
            (unit != "absolute") & rfc3339(begin).isNull(),
            F.concat(F.lit("times count from "), begin, F.lit(", which is no instant")),
        )
        .alias("wrong"),
    )


def _moment(text: Column) -> Column:
    """The instant of a leg, in microseconds."""
    # Not through doubles: microseconds of today need all their digits.
    since = (text.try_cast("decimal(20,6)") * F.col("unit")).try_cast("long") + F.unix_micros("begin")
    return F.when(F.col("absolute"), F.unix_micros(rfc3339(text))).otherwise(since)


def _fixes(read: DataFrame) -> tuple[DataFrame, str, dict[str, Column], dict[str, Column]]:
    """A row for each point; of a line that cannot be read, one that says so."""
    count = (F.size("texts") / F.col("dimensions")).cast("int")
    last = F.greatest(count - 1, F.lit(1))
    numbers = F.when(F.col("problem").isNull(), F.sequence(F.lit(0), count - 1)).otherwise(F.array(F.lit(0)))
    placed = read.withColumn("last", last).select("*", F.explode(numbers).alias("number"))
    at = F.col("number") * F.col("dimensions")
    one, other = F.get("texts", at.cast("int")), F.get("texts", (at + 1).cast("int"))
    found = placed.select(
        "file",
        "raw",
        "problem",
        "client",
        # The text of whichever time is missing: a leg needs both.
        F.when(F.col("since").isNull(), F.col("start")).otherwise(F.col("end")).alias("at"),
        F.timestamp_micros(
            F.col("since") + ((F.col("until") - F.col("since")) * F.col("number") / F.col("last")).cast("long")
        ).alias("time"),
        F.when(F.col("lat_first"), one).otherwise(other).alias("lat"),
        F.when(F.col("lat_first"), other).otherwise(one).alias("lon"),
    )
    made = {"client": F.col("client"), "time": F.col("time"), "lat": real(F.col("lat")), "lon": real(F.col("lon"))}
    return found, "reports", made, {"time": F.col("at"), "lat": F.col("lat"), "lon": F.col("lon")}
