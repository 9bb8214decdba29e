"""Attraction points are found where people linger, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.frames import BEGINNING, frame, recorded, rows

from nearcast.errors import InvalidInput
from nearcast.metrics.maps import Grid
from nearcast.model.geometry import Point, distance
from nearcast.pipeline.observation.attraction import Lingering, attraction_points
from nearcast.runtime.simulation.plane import Plane
from nearcast.scenario.ground import ground_of
from nearcast.scenario.reading import read
from nearcast.scenario.simulation import simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORIGIN = Point(49.8728, 8.6512)
MINUTES = 5 * 60.0


def reports(tracks: list[tuple[str, Any, Any]], interval: float = 10.0) -> Any:
    """Everybody reports at the same times."""
    plane = Plane(ORIGIN)
    clients, times, lats, lons = [], [], [], []
    for client, x, y in tracks:
        lat, lon = plane.degrees(np.asarray(x, float), np.asarray(y, float))
        clients += [client] * len(lat)
        times += [BEGINNING + round(n * interval * 1e6) for n in range(len(lat))]
        lats += lat.tolist()
        lons += lon.tolist()
    return pa.table(
        {
            "time": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "client": clients,
            "lat": lats,
            "lon": lons,
        }
    )


def disc(random: np.random.Generator, x: float, y: float, radius: float, people: int, name: str) -> list[Any]:
    """People spread evenly over a disc, who stand still."""
    angle, way = random.uniform(0, 2 * np.pi, people), radius * np.sqrt(random.random(people))
    where = zip(x + way * np.cos(angle), y + way * np.sin(angle), strict=True)
    return [(f"{name}{n}", np.full(31, px), np.full(31, py)) for n, (px, py) in enumerate(where)]


def test_crowds_are_found_with_their_middle_their_width_and_their_number(spark: SparkSession) -> None:
    random = np.random.default_rng(5)
    crowds = {"a": (0.0, 0.0, 60.0, 900), "b": (400.0, 100.0, 30.0, 300), "c": (-300.0, -250.0, 45.0, 450)}
    tracks = [each for name, (x, y, r, n) in crowds.items() for each in disc(random, x, y, r, n, name)]
    # Others walk from one crowd to the next, in a file that would connect them, or stand alone.
    tracks += [(f"w{n}", np.linspace(0, 400, 31), np.linspace(n, 100, 31)) for n in range(300)]
    tracks += disc(random, 0.0, 800.0, 300.0, 40, "alone")
    found = rows(attraction_points(frame(spark, reports(tracks)), Grid(ORIGIN, 15.0), Lingering(6.0), MINUTES), "name")
    plane = Plane(ORIGIN)
    assert [row["name"] for row in found] == ["point-1", "point-2", "point-3"]
    for row, (x, y, radius, people) in zip(found, (crowds["a"], crowds["c"], crowds["b"]), strict=True):
        assert distance(Point(row["lat"], row["lon"]), plane.to_point(x, y)) < 3.0
        assert row["radius"] == pytest.approx(radius, rel=0.08)
        assert row["clients"] == pytest.approx(people, rel=0.05)


def test_who_stands_alone_makes_no_point(spark: SparkSession) -> None:
    tracks = [(f"c{n}", [100.0 * n] * 5, [0.0] * 5) for n in range(30)]
    assert (
        rows(attraction_points(frame(spark, reports(tracks)), Grid(ORIGIN, 15.0), Lingering(2.0), 40.0), "name") == []
    )


def test_a_crowd_on_the_border_of_cells_is_one(spark: SparkSession) -> None:
    tracks = [(f"c{n}", [15.0 + (-1) ** n * 0.01] * 5, [15.0 + (-1) ** (n // 2) * 0.01] * 5) for n in range(8)]
    (point,) = rows(attraction_points(frame(spark, reports(tracks)), Grid(ORIGIN, 15.0), Lingering(8.0), 40.0), "name")
    assert point["clients"] == pytest.approx(8.0)
    assert point["radius"] == pytest.approx(0.02, abs=1e-3)


def test_impossible_crowds_are_refused() -> None:
    with pytest.raises(InvalidInput, match="must be positive"):
        Lingering(0.0)


def test_all_attraction_points_of_the_game_in_darmstadt_are_found(spark: SparkSession, tmp_path: Path) -> None:
    """As the broker knows people, with a report every 5 s: where they go in ten minutes of the scenario."""
    quiet = [{"kind": "AR", "rate": "0.001/s"}]  # what they say is of no interest here
    scenario = read("ar-darmstadt", {"run.duration": "10 min", "workload": quiet})
    simulate(scenario, 1, out=tmp_path / "run")
    ground = ground_of(scenario)
    grid = Grid(ground.plane.origin, 10.0)
    found = rows(attraction_points(recorded(spark, tmp_path / "run", "reports"), grid, Lingering(0.25), 600.0), "name")
    near = []
    for row in found:
        here = Point(row["lat"], row["lon"])
        away = {point.name: distance(here, ground.plane.to_point(point.x, point.y)) for point in ground.points}
        name = min(away, key=lambda each: away[each])
        radius = next(point.radius for point in ground.points if point.name == name)
        assert away[name] < radius, f"nobody goes to {row}"
        near.append(name)
    assert len(set(near)) >= 20, "of 22"
    assert len(near) <= 24, "the largest may fall apart"
