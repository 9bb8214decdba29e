"""``nearcast bench pipeline``: every system does the same work, and gives the same answers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nearcast.benchmark import pipeline
from nearcast.benchmark.pipeline_data import Tables, as_of, part, snapshot
from nearcast.benchmark.pipeline_peers import SYSTEMS, pairs
from nearcast.benchmark.pipeline_sedona import SedonaTables, unavailable
from nearcast.benchmark.plane import to_plane
from nearcast.benchmark.report import Measurement, Report
from nearcast.benchmark.workload import density
from nearcast.cli import main
from nearcast.pipeline.matching import MatchSettings, Strategy, match, plan_match
from nearcast.pipeline.matching.changes import changes_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ours(spark: SparkSession, tables: Tables) -> set[tuple[int, int]]:
    rows = match(*tables.frames(spark)).collect()
    assert len(rows) == tables.events
    return {(row.event, client) for row in rows for client in row.receivers}


@pytest.fixture(params=["snapshot", "as-of"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    if request.param == "snapshot":
        return snapshot(tmp_path / "tables", 2_000, 300)
    return as_of(tmp_path / "tables", 2_000, 300, 30)


def test_all_systems_find_the_same_pairs(spark: SparkSession, tables: Tables) -> None:
    expected = ours(spark, tables)
    assert 20 < len(expected) / tables.events < 45
    for name, near in SYSTEMS.items():
        assert {tuple(row) for row in pairs(spark, tables, near).collect()} == expected, name


@pytest.mark.skipif(unavailable() is not None, reason="sedonadb is not installed")
def test_sedonadb_finds_them_as_well_but_for_borders(spark: SparkSession, tables: Tables) -> None:
    expected = ours(spark, tables)
    found: set[tuple[Any, Any]] = set()
    for table in SedonaTables(tables).pairs():
        found.update(zip(table.column("event").to_pylist(), table.column("client").to_pylist(), strict=True))
    assert len(expected ^ found) < 0.002 * len(expected)


def test_a_part_of_the_tables_has_the_first_events_and_their_answers(
    spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    half = part(tables, tmp_path / "half", spark, 0.5)
    assert 0.4 * tables.events < half.events < 0.6 * tables.events
    whole = ours(spark, tables)
    taken = {row.event for row in half.frame(spark, "events").select("event").collect()}
    assert ours(spark, half) == {pair for pair in whole if pair[0] in taken}


def test_three_in_ten_stand_on_a_hundredth_of_a_crowded_city(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    reports = pq.read_table(snapshot(tmp_path / "crowded", 5_000, 100, crowded=True).folder / "reports")
    x, y = to_plane(*(reports.column(name).to_numpy() for name in ("lat", "lon")))
    side = math.sqrt(5_000 / density()) / 10
    middle = (abs(x) <= side / 2) & (abs(y) <= side / 2)
    assert 0.28 < middle.mean() < 0.36


def test_the_crowded_hundredth_is_too_hot_for_one_task(spark: SparkSession, tmp_path: Path) -> None:
    events, reports, subscriptions = snapshot(tmp_path / "crowded", 5_000, 3_000, crowded=True).frames(spark)
    settings = MatchSettings(strategy=Strategy.BLOCKS, cells=pipeline.CROWDED_CELLS)
    plan = plan_match(events, changes_of(reports, subscriptions, None, None), settings)
    assert plan.blocks is not None
    assert max(plan.blocks.parts) > 1


def test_peers_are_compared_with_all_of_our_events_and_with_their_share() -> None:
    def rate(system: str, value: float, share: float, course: str = "as-of") -> Measurement:
        return Measurement(system, pipeline.METRIC, "1/s", value, {"course": course, "share": share})

    results = [
        rate("nearcast", 100.0, 1.0),
        rate("nearcast", 60.0, 0.1),
        rate("sedonadb", 20.0, 0.1),
        rate("nearcast", 50.0, 1.0, "snapshot"),
        rate("sedonadb", 10.0, 1.0, "snapshot"),
        Measurement("nearcast", "growth", "1", 1.1),
    ]
    assert pipeline.ratios(results) == {
        "nearcast/sedonadb match_events_per_second as-of": 5.0,
        "nearcast/sedonadb match_events_per_second as-of same share": 3.0,
        "nearcast/sedonadb match_events_per_second snapshot": 5.0,
    }


def test_the_command_prints_one_json_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[Any] = []

    def run(**options: Any) -> Report:
        given.append(options)
        return Report(
            "pipeline", {"processor": "p", "python": "3"}, (Measurement("nearcast", "m", "1/s", 1.0),), (), {}
        )

    monkeypatch.setattr(pipeline, "run", run)
    assert main(["bench", "pipeline", "--quick", "--no-peers", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["benchmark"] == "pipeline"
    assert (given[0]["quick"], given[0]["peers"]) == (True, False)
