"""Campaigns: every combination runs once, in a task of its own; what fails is told and harms no other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nearcast.errors import InvalidInput
from nearcast.pipeline.campaign import CampaignRun, campaign, combined, summary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = combined(["calm", "busy"], {"clients.number": [10, 20], "world.kind": ["plain"]}, [1, 2, 3])


def test_every_combination_stands_once() -> None:
    assert len(RUNS) == 12
    assert len({(run.scenario, run.setting, run.seed) for run in RUNS}) == 12
    assert RUNS[0] == CampaignRun("calm", 1, {"clients.number": 10, "world.kind": "plain"})
    assert RUNS[0].setting == CampaignRun("x", 9, {"world.kind": "plain", "clients.number": 10}).setting
    assert combined(["calm"], {}, [7]) == [CampaignRun("calm", 7)]


def test_a_campaign_without_anything_to_run_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidInput, match=r"clients\.number has none"):
        combined(["calm"], {"clients.number": []}, [1])
    with pytest.raises(InvalidInput, match="scenarios, seeds"):
        combined(["calm"], {}, [])
    with pytest.raises(InvalidInput, match="without runs"):
        campaign(spark, [], lambda *_: {})


def test_results_are_one_table_with_the_reasons_of_what_failed(spark: SparkSession, tmp_path: Path) -> None:
    trace = str(tmp_path)

    # Inside, so that it travels as it is: executors do not have the tests.
    def run_one(scenario: str, changes: Mapping[str, Any], seed: int) -> dict[str, float | None]:
        Path(trace, f"{scenario} {changes['clients.number']} {seed}").write_text(str(os.getpid()))
        if scenario == "busy" and seed == 2:
            raise ValueError("too much is going on")
        recall = changes["clients.number"] + seed / 10
        return {"recall": recall, "never": None, "nothing": float("nan"), "speed": 2.0 if scenario == "calm" else 1.0}

    results = campaign(spark, RUNS, run_one)
    assert results.rdd.getNumPartitions() == len(RUNS), "each run is a task"
    results = results.cache()
    rows = {
        (row["scenario"], json.loads(row["changes"])["clients.number"], row["seed"]): row for row in results.collect()
    }
    assert len(rows) == 12
    assert {path.name for path in tmp_path.iterdir()} == {f"{name} {number} {seed}" for name, number, seed in rows}
    for (scenario, number, seed), row in rows.items():
        failed = scenario == "busy" and seed == 2
        assert row["failure"] == ("ValueError: too much is going on" if failed else None)
        speed = 2.0 if scenario == "calm" else 1.0
        assert row["metrics"] == (None if failed else {"recall": number + seed / 10, "speed": speed})
        assert row["seconds"] >= 0
        assert RUNS[row["number"]].seed == seed
    found = {
        (row["scenario"], json.loads(row["changes"])["clients.number"], row["metric"]): row
        for row in summary(results).collect()
    }
    results.unpersist()
    assert len(found) == 8
    calm, busy = found["calm", 10, "recall"], found["busy", 20, "recall"]
    assert (calm["runs"], calm["least"], calm["most"]) == (3, 10.1, 10.3)
    assert (calm["mean"], calm["deviation"]) == pytest.approx((10.2, 0.1))
    assert (busy["runs"], busy["mean"]) == (2, pytest.approx(20.2))
