"""Attraction points: where people linger, found by density clustering on the level of cells.

As DBSCAN does with points, here with cells: a cell is *dense* if enough people linger in it and the eight cells around it, and
dense cells that touch belong to one point.  People who only pass by would connect all points along the streets between them, so
that only reports of clients that hardly moved since their last report count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from nearcast.errors import InvalidInput
from nearcast.pipeline.metrics.maps import metres
from nearcast.pipeline.observation.cells import cell, components, place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from nearcast.metrics.maps import Grid

_SUMS = ("weight", "x", "y", "squares")


@dataclass(frozen=True, slots=True)
class Lingering:
    """What makes a crowd."""

    least: float
    """So many clients linger, on average, in a dense cell and the eight around it."""

    slowest: float = 0.3
    """Metres per second: whoever is slower lingers; half of a slow walk is too fast for standing at a shop window."""

    longest: float = 60.0
    """Seconds that a report counts for at most, if no other follows: what was not reported is not known."""

    def __post_init__(self) -> None:
        if not (self.least > 0 and self.slowest >= 0 and self.longest > 0):
            raise InvalidInput(
                f"at least {self.least} clients, slower than {self.slowest} m/s, for at most {self.longest} s: "
                "the first and the last must be positive, and a speed is not negative"
            )


def lingering(reports: DataFrame, grid: Grid, crowd: Lingering) -> DataFrame:
    """Stretches between two reports of a client during which it hardly moved: ``column, row, x, y, seconds``.

    ``x`` and ``y`` are metres east and north of the grid's origin.
    """
    east, north = metres(grid, F.col("lat"), F.col("lon"))
    earlier = Window.partitionBy("client").orderBy("time")
    moved = F.hypot(F.col("x") - F.lag("x").over(earlier), F.col("y") - F.lag("y").over(earlier))
    seconds = F.col("at") - F.lag("at").over(earlier)
    column, row = cell(grid, F.col("lat"), F.col("lon"))
    steps = reports.select(
        "client", "time", "lat", "lon", (F.unix_micros("time") / 1e6).alias("at"), east.alias("x"), north.alias("y")
    )
    steps = steps.withColumns({"moved": moved, "seconds": seconds, "column": column, "row": row})
    slow = F.col("moved") < F.col("seconds") * F.lit(crowd.slowest)
    return steps.where(slow).select(
        "column", "row", "x", "y", F.least("seconds", F.lit(crowd.longest)).alias("seconds")
    )


def attraction_points(reports: DataFrame, grid: Grid, crowd: Lingering, seconds: float) -> DataFrame:
    """The points of a stretch of ``seconds`` from which these reports are: ``name, lat, lon, radius, clients``, largest first.

    The point is the middle of those who linger there, ``clients`` their mean number, and ``radius`` that of the disc over which
    a crowd would have to be spread evenly to be as wide: the root of twice its mean squared distance from the middle.
    """
    weight = F.col("seconds") / F.lit(float(seconds))
    x, y = F.col("x"), F.col("y")
    cells = (
        lingering(reports, grid, crowd)
        .groupBy("column", "row")
        .agg(
            F.sum(weight).alias("weight"),
            F.sum(weight * x).alias("x"),
            F.sum(weight * y).alias("y"),
            F.sum(weight * (x * x + y * y)).alias("squares"),
        )
    )
    clustered = clusters(dense(cells, crowd.least))
    points = clustered.groupBy("cluster").agg(*(F.sum(name).alias(name) for name in _SUMS))
    middle_x, middle_y = F.col("x") / F.col("weight"), F.col("y") / F.col("weight")
    spread = F.col("squares") / F.col("weight") - middle_x * middle_x - middle_y * middle_y
    lat, lon = place(grid, middle_x, middle_y)
    # By size, and among equals from west to east: the same reports always give the same names.
    point = F.struct(
        (-F.col("weight")).alias("smallness"),
        lon.alias("lon"),
        lat.alias("lat"),
        F.sqrt(F.greatest(F.lit(0.0), 2 * spread)).alias("radius"),
    )
    ranked = points.agg(F.sort_array(F.collect_list(point)).alias("points"))
    ranked = ranked.select(F.posexplode("points").alias("rank", "point"))
    return ranked.select(
        F.concat(F.lit("point-"), F.col("rank") + 1).alias("name"),
        "point.lat",
        "point.lon",
        "point.radius",
        (-F.col("point.smallness")).alias("clients"),
    )


def dense(cells: DataFrame, least: float) -> DataFrame:
    """Those cells around which, themselves included, ``weight`` adds up to at least that."""
    steps = F.array(*(F.struct(F.lit(i).alias("i"), F.lit(j).alias("j")) for i in (-1, 0, 1) for j in (-1, 0, 1)))
    # Each cell tells its nine neighbours what it holds: an equi-join in disguise, and nothing is compared with everything.
    told = cells.select("column", "row", "weight", F.explode(steps).alias("step"))
    around = told.groupBy(
        (F.col("column") + F.col("step.i")).alias("column"), (F.col("row") + F.col("step.j")).alias("row")
    ).agg(F.sum("weight").alias("around"))
    return cells.join(around.where(F.col("around") >= F.lit(least)), ["column", "row"])


def clusters(cells: DataFrame) -> DataFrame:
    """The same with ``cluster``, a number that all connected cells share.

    Only dense cells come here, a few bytes each: a million of them still fit into one task.
    """
    from pyspark.sql.types import LongType, StructField

    schema = cells.schema.add(StructField("cluster", LongType()))
    return cells.repartition(1).mapInArrow(_clustered, schema)


def _clustered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    numbers = components(table["column"].to_numpy(), table["row"].to_numpy())
    yield from table.append_column("cluster", pa.array(numbers, pa.int64())).to_batches()
