"""``nearcast pipeline plan``: a grid for the crowd, and a scheme for where it gathers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.tables.lakes import Lake

from nearcast.cli import main
from nearcast.model.time import MICROSECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_790_000_000 * MICROSECONDS


def test_a_crowd_that_lingers_is_planned_for(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark is not None
    lake = Lake(tmp_path / "lake")
    lake.export(
        {
            "reports": [
                {
                    "time": START + seconds * MICROSECONDS,
                    "client": f"c{number}",
                    "lat": 49.87 + 1e-6 * number,
                    "lon": 8.65,
                }
                for number in range(30)
                for seconds in range(0, 200, 20)
            ]
        }
    )
    given = ["--per-cell", "5", "--at-points", "RADIAL", "--least", "10", "--lake", str(lake.folder), "--json"]
    assert main(["pipeline", "plan", *given]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [each["scheme"] for each in shown["plans"]] == ["EGRID(factor=4)"]
    (order,) = shown["regions"]
    assert (order["scheme"], order["elsewhere"]) == ("RADIAL", "EGRID(factor=4)"), "points that are no more are over"
    assert [(each["name"], each["lat"], each["lon"]) for each in order["regions"]] == [("point-1", 49.87001, 8.65)]
    assert not shown["handed_in"]
