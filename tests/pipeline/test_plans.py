"""Plans follow from what was observed: with hysteresis, the same whoever computes them, in regions too."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.frames import BEGINNING, at, frame, rows

from nearcast.errors import InvalidPlan
from nearcast.filtering.attraction import Zone
from nearcast.filtering.registry import scheme_of
from nearcast.model.geometry import Point
from nearcast.pipeline.plans import (
    Ladder,
    Step,
    crowds,
    decisions,
    grid_ladder,
    latest,
    orders,
    orders_at_points,
    over,
    plans,
    regions_of,
    switch,
)
from nearcast.runtime.simulation.plane import Plane
from nearcast.runtime.state import Information
from nearcast.transition.rules import Condition, Direction
from nearcast.transition.specification import MechanismSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LADDER = Ladder(
    "RADIAL", (Step("EGRID(factor=4)", 10.0, 6.0), Step("EGRID(factor=8)", 20.0, 15.0), Step("STE", 12.0, 12.0))
)
ORIGIN = Point(49.8728, 8.6512)


def observed(series: dict[str, Any]) -> pa.Table:
    """A value for each minute, by region."""
    return pa.concat_tables(
        pa.table(
            {
                "region": [region] * len(values),
                "since": [at(60 * minute) for minute in range(len(values))],
                "until": [at(60 * minute + 60) for minute in range(len(values))],
                "clients": pa.array(values, pa.float64()),
            }
        )
        for region, values in series.items()
    )


def by_the_rules(values: Any, ladder: Ladder) -> list[str]:
    """As the broker's own rules would choose, window by window."""
    information = Information("clients", float)
    conditions = [Condition(information, Direction.ABOVE, step.above, step.back_at) for step in ladder.steps]
    held = [False] * len(conditions)
    chosen = []
    for value in values:
        held = [condition.holds(value, held=before) for condition, before in zip(conditions, held, strict=True)]
        holding = [step.choice for step, holds in zip(ladder.steps, held, strict=True) if holds]
        chosen.append(holding[-1] if holding else ladder.otherwise)
    return chosen


def test_decisions_are_those_of_the_brokers_rules(spark: SparkSession) -> None:
    random = np.random.default_rng(1)
    series = {f"r{number}": random.integers(0, 30, 40) for number in range(20)}
    found = rows(decisions(frame(spark, observed(series)), "clients", LADDER), "region", "since")
    assert {region: [row["choice"] for row in found if row["region"] == region] for region in series} == {
        region: by_the_rules(values, LADDER) for region, values in series.items()
    }
    for row, following in pairwise(found):
        expected = row["choice"] if following["region"] == row["region"] else "RADIAL"
        assert following["before"] == expected


def test_a_value_must_last_to_count(spark: SparkSession) -> None:
    ladder = switch(10.0, 5.0, windows=3)
    values = [11, 11, 9, 11, 11, 11, 4, 6, 4, 4, 4, 11, 11]
    found = rows(decisions(frame(spark, observed({"r": values})), "clients", ladder), "since")
    assert [row["choice"] for row in found] == ["off"] * 5 + ["on"] * 5 + ["off"] * 3


def test_plans_are_made_where_the_choice_changes_and_are_the_same_every_time(spark: SparkSession) -> None:
    table = observed({"everywhere": [1, 11, 12, 25, 16, 5], "park": [30, 30, 30, 30, 30, 30]})
    made = rows(plans(decisions(frame(spark, table), "clients", LADDER)), "region", "time")
    assert [
        (row["region"], row["time"].timestamp() * 1e6 - BEGINNING, row["before"], row["scheme"]) for row in made
    ] == [
        ("everywhere", 120e6, "RADIAL", "EGRID(factor=4)"),
        ("everywhere", 240e6, "EGRID(factor=4)", "STE"),
        ("everywhere", 360e6, "STE", "RADIAL"),
        ("park", 60e6, "RADIAL", "STE"),
    ]
    assert len({row["plan"] for row in made}) == 4
    # Later, with more windows and in another order.
    longer = observed({"park": [30] * 7, "everywhere": [1, 11, 12, 25, 16, 5, 5]})
    again = plans(decisions(frame(spark, longer).repartition(3), "clients", LADDER))
    assert rows(again, "region", "time") == made
    assert [row["plan"] for row in rows(orders(latest(again)), "plan")] == sorted([made[2]["plan"], made[3]["plan"]])


def test_a_grid_grows_with_the_crowd(spark: SparkSession) -> None:
    ladder = grid_ladder("EGRID", per_cell=5.0, largest=16)
    for choice in (ladder.otherwise, *(step.choice for step in ladder.steps)):
        name, _, parameter = choice.partition("(factor=")
        scheme_of(MechanismSpec(name, (("factor", int(parameter.rstrip(")"))),)))
    values = [1, 6, 21, 22, 15, 13, 2000, 3]
    found = rows(decisions(frame(spark, observed({"r": values})), "clients", ladder), "since")
    factors = [int(row["choice"].partition("=")[2].rstrip(")")) for row in found]
    assert factors == [1, 2, 4, 4, 4, 2, 16, 1]


def test_only_windows_that_are_over_are_looked_at(spark: SparkSession) -> None:
    table = frame(spark, observed({"r": [1, 11, 3]}))
    assert [row["clients"] for row in rows(over(table, BEGINNING + 179_999_999), "since")] == [1.0, 11.0]
    assert [row["clients"] for row in rows(over(table, BEGINNING + 180_000_000), "since")] == [1.0, 11.0, 3.0]


def walkers(tracks: dict[str, list[tuple[float, float]]]) -> pa.Table:
    """One report a minute, in metres around the origin."""
    plane = Plane(ORIGIN)
    rows_of = [
        (at(60 * minute + 1), client, plane.to_point(x, y))
        for client, track in tracks.items()
        for minute, (x, y) in enumerate(track)
    ]
    return pa.table(
        {
            "time": [when for when, _, _ in rows_of],
            "client": [client for _, client, _ in rows_of],
            "lat": [point.lat for _, _, point in rows_of],
            "lon": [point.lon for _, _, point in rows_of],
        }
    )


def test_zones_are_circles_with_their_border(spark: SparkSession) -> None:
    plane = Plane(ORIGIN)
    zones = [Zone("a", plane.to_point(0.0, 0.0), 100.0), Zone("b", plane.to_point(150.0, 0.0), 100.0)]
    random = np.random.default_rng(6)
    lat, lon = plane.degrees(random.uniform(-120, 270, 400), random.uniform(-120, 120, 400))
    places = frame(spark, {"lat": lat, "lon": lon})
    found = [row[2] for row in places.select("*", regions_of(zones, places["lat"], places["lon"])).collect()]
    assert found == [
        [zone.name for zone in zones if zone.covers(Point(*place))] for place in zip(lat, lon, strict=True)
    ]


def test_a_region_is_planned_for_by_its_own_crowd(spark: SparkSession) -> None:
    zones = [Zone("park", Plane(ORIGIN).to_point(500.0, 0.0), 80.0), Zone("square", ORIGIN, 50.0)]
    square, park = (0.0, 10.0), (500.0, 0.0)
    tracks = {"ada": [square] * 4, "bob": [park, square, square, park], "cyd": [park, park, square, square]}
    here = crowds(frame(spark, walkers(tracks)), zones, 60.0)
    assert [(row["region"], row["clients"]) for row in rows(here, "region", "since")] == [
        *(("park", n) for n in (2, 1, 1)),
        *(("square", n) for n in (1, 2, 3, 2)),
    ]
    made = plans(decisions(here, "clients", Ladder("RADIAL", (Step("EGRID(factor=8)", 1.0, 1.0),))))
    ordered = [(row["scheme"], [tuple(each) for each in row["regions"]]) for row in orders(made, zones).collect()]
    park_told = ("park", zones[0].center.lat, zones[0].center.lon, 80.0)
    assert sorted(ordered) == [
        ("EGRID(factor=8)", [park_told]),
        ("EGRID(factor=8)", [("square", ORIGIN.lat, ORIGIN.lon, 50.0)]),
        ("RADIAL", [park_told]),
    ]
    switched = orders(latest(plans(decisions(here, "clients", switch(2.0, 1.0)))), zones, "gateways")
    assert [(row["gateways"], row["regions"][0]["name"]) for row in switched.collect()] == [("on", "square")]
    assert set(switched.columns) == {"plan", "gateways", "regions"}


def test_attraction_points_are_planned_for_together(spark: SparkSession) -> None:
    columns = {"name": ["point-2", "point-1"], "lat": [49.8, 49.87654321], "lon": [8.6, 8.65], "radius": [0.0, 120.4]}
    points = frame(spark, columns | {"clients": [3.0, 9.0]})
    (order,) = orders_at_points(points, BEGINNING, "RADIAL", "EGRID(factor=8)").collect()
    assert (order["scheme"], order["elsewhere"]) == ("RADIAL", "EGRID(factor=8)")
    told = [tuple(each) for each in order["regions"]]
    assert told == [("point-1", 49.87654, 8.65, 120.0), ("point-2", 49.8, 8.6, 10.0)]
    (again,) = orders_at_points(points.repartition(2), BEGINNING, "RADIAL", "EGRID(factor=8)").collect()
    assert again == order
    later = orders_at_points(points, BEGINNING + 1, "RADIAL", "EGRID(factor=8)")
    (alone,) = orders_at_points(points, BEGINNING, "RADIAL").collect()
    assert len({order["plan"], alone["plan"], later.collect()[0]["plan"]}) == 3
    assert alone["elsewhere"] is None
    assert orders_at_points(points.where("clients > 100"), BEGINNING, "RADIAL").collect() == []


def test_impossible_ladders_are_refused() -> None:
    with pytest.raises(InvalidPlan, match="both sides at once"):
        Step("RADIAL", 1.0, 2.0)
    with pytest.raises(InvalidPlan, match="has steps"):
        Ladder("RADIAL", ())
    with pytest.raises(InvalidPlan, match="a factor of up to"):
        grid_ladder("EGRID", 5.0, largest=1_000)
