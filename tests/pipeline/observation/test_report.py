"""All observations of a stretch of time at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.metrics.worlds import as_table, event, notification
from tests.pipeline.frames import BEGINNING, at, frame, rows, table_frame

from nearcast.errors import InvalidRecord
from nearcast.filtering.attraction import Zone
from nearcast.model.geometry import Point, distance
from nearcast.pipeline.observation.attraction import Lingering
from nearcast.pipeline.observation.forecast import Seasons
from nearcast.pipeline.observation.report import Observing, Stretch, observations, stretch_of
from nearcast.pipeline.plans import crowds, decisions, orders, plans, switch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HOW = Observing(window=60.0, cell=50.0, crowd=Lingering(0.9), seasons=Seasons(120.0, 60.0))


def tables(spark: SparkSession) -> dict[str, DataFrame]:
    """Ada stands for three minutes, and bob hears of it."""
    times = [at(second) for second in range(0, 180, 30)]
    reports = {"time": times, "client": ["ada"] * 6, "lat": [49.8728] * 6, "lon": [8.6512] * 6}
    said = as_table("events", [event("e", BEGINNING + 1_000_000, "ada", ["bob"], bytes=10, lat=49.8728, lon=8.6512)])
    told = as_table("notifications", [notification("e", "bob")])
    return {
        "reports": frame(spark, reports),
        "events": table_frame(spark, "events", said),
        "notifications": table_frame(spark, "notifications", told),
    }


def test_everything_is_observed_of_the_same_stretch(spark: SparkSession) -> None:
    given = tables(spark)
    stretch = stretch_of(given["reports"])
    assert stretch == Stretch(BEGINNING, BEGINNING + 150_000_001, Point(49.8728, 8.6512))
    found = observations(given, stretch, HOW)
    assert list(found) == ["crowd", "density", "fan_out", "load", "audit", "places", "points", "forecast"]
    assert [row["clients"] for row in rows(found["crowd"], "since")] == [1, 1, 1]
    (audited,) = found["audit"].collect()
    assert (audited["recall"], audited["precision"]) == (1.0, 1.0)
    (place,) = found["places"].collect()
    assert (place["recall"], place["precision"], place["due"], place["cell"]) == (1.0, 1.0, 1, 50.0)
    # The middle of the cell in whose corner it happened.
    assert distance(Point(place["lat"], place["lon"]), Point(49.8728, 8.6512)) == pytest.approx(25 * 2**0.5, rel=1e-3)
    (point,) = found["points"].collect()
    assert (point["lat"], point["lon"]) == pytest.approx((49.8728, 8.6512))
    expected = rows(found["forecast"], "since")
    assert [row["clients"] for row in expected] == [1.0, 1.0]
    assert expected[0]["since"].timestamp() * 1e6 == BEGINNING + 180_000_000


def test_nothing_is_multiplied_out_and_no_python_runs_row_by_row(spark: SparkSession) -> None:
    given = tables(spark)
    frames = observations(given, Stretch(BEGINNING, BEGINNING + 150_000_001, Point(49.8728, 8.6512)), HOW)
    zones = [Zone("square", Point(49.8728, 8.6512), 50.0)]
    decided = decisions(crowds(given["reports"], zones, 60.0), "clients", switch(1.0, 0.0))
    frames |= {"plans": plans(decided), "orders": orders(plans(decided), zones, "gateways")}
    for name, each in frames.items():
        plan = each._jdf.queryExecution().executedPlan().toString()
        for word in ("CartesianProduct", "NestedLoop", "BatchEvalPython", "ArrowEvalPython"):
            assert word not in plan, name
        assert ("MapInArrow" in plan) == (name == "points"), name


def test_where_nobody_was_there_is_nothing_to_observe(spark: SparkSession) -> None:
    nobody = pa.table({"time": [at(0)], "client": ["ada"], "lat": pa.array([None], pa.float64()), "lon": [8.0]})
    with pytest.raises(InvalidRecord, match="nobody reported a place"):
        stretch_of(frame(spark, nobody))
