"""GPS traces as comma-separated values: one fix a line, the first line names the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from nearcast.errors import InvalidTrace
from nearcast.model.time import Instant
from nearcast.pipeline.external.parsing import External, external, file_name, real, seconds_or_rfc3339

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: Final[Mapping[str, str]] = {"client": "id", "time": "time", "lat": "lat", "lon": "lon"}
"""Which column of the file is which of ours, as in the traces of the simulator; a mapping may say otherwise."""


def read_csv(
    spark: SparkSession, paths: Sequence[str], latest: Instant, columns: Mapping[str, str] = COLUMNS
) -> External:
    """Position reports; times are seconds since 1970 or RFC 3339."""
    # All as text: what cannot be read shall be shown as it stands there.
    rows = spark.read.option("header", True).option("enforceSchema", False).csv(list(paths))
    missing = [name for name in columns.values() if name not in rows.columns]
    if missing:
        raise InvalidTrace(
            f"{paths[0]} has no column {', '.join(missing)}, only {', '.join(rows.columns)}; say which is which: --column lat=NAME"
        )
    found = rows.select(
        "*", F.to_json(F.struct(*(F.col(f"`{name}`") for name in rows.columns))).alias("raw"), file_name()
    )
    client, time, lat, lon = (F.col(f"`{columns[name]}`") for name in ("client", "time", "lat", "lon"))
    made = {"client": client, "time": seconds_or_rfc3339(time), "lat": real(lat), "lon": real(lon)}
    # A report without a place says that none is known any longer; a fix of a trace has one.
    placed = found.withColumn(
        "problem", F.when(client.isNotNull() & (lat.isNull() | lon.isNull()), F.lit("lat or lon is missing"))
    )
    return external(placed, "reports", made, {"time": time, "lat": lat, "lon": lon}, latest)
