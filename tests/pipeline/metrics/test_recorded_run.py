"""A recorded simulation, measured by Spark: the numbers of ``nearcast.metrics``, and gold has them by day."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.frames import assert_same_rows
from tests.pipeline.tables.lakes import LATEST

from nearcast import metrics as defined
from nearcast.errors import InvalidRecord
from nearcast.pipeline.metrics import run_metrics
from nearcast.pipeline.tables import Warehouse, about, gold, measure_all, read_gold, read_lake, refine
from nearcast.records import RecordWriter, read
from nearcast.scenario.reading import read as read_scenario
from nearcast.scenario.simulation import simulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "records"
    changes = {"run.duration": "6 s", "clients.number": 15, "delivery.mechanism": "both", "cellular.loss": "5 %"}
    simulate(read_scenario("ar-darmstadt", changes), 1, out=folder)
    return folder


def flat(document: Any, name: str = "") -> dict[str, Any]:
    if isinstance(document, dict):
        return {key: value for part, inner in document.items() for key, value in flat(inner, f"{name}.{part}").items()}
    if isinstance(document, (list, tuple)):
        return {key: value for n, inner in enumerate(document) for key, value in flat(inner, f"{name}.{n}").items()}
    return {name: document}


def test_a_run_has_the_numbers_of_the_definitions(spark: SparkSession, recording: Path) -> None:
    expected = defined.run_metrics(recording).to_json()
    found = run_metrics(read_lake(spark, recording), about=about(recording)).to_json()
    expected["traffic"] = sorted(expected["traffic"], key=str)
    found["traffic"] = sorted(found["traffic"], key=str)
    assert_same_rows([flat(found)], [flat(expected)])
    assert found["delivery"]["due"] > found["delivery"]["correct"] > 0


def test_gold_has_them_by_day(
    spark: SparkSession, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gold, "GOLD", [each for each in gold.GOLD if each.name == "delivery"])
    warehouse = Warehouse(tmp_path / "warehouse")
    for name in ("events", "notifications", "drops"):
        found = refine(spark, warehouse, recording, name, LATEST)
        assert found.bronze == found.silver + found.duplicates > 0, "what the simulator records is good"
    measure_all(spark, warehouse)
    totals = defined.totals(defined.pairs(read(recording, "events"), read(recording, "notifications")))
    [day] = read_gold(spark, warehouse, "delivery").collect()
    assert day["date"] == date(2026, 1, 1)
    assert (day["due"], day["notified"], day["correct"]) == (totals.due, totals.notified, totals.correct)
    assert day["recall"] == pytest.approx(totals.recall, rel=1e-9)


def test_another_recording_in_the_same_place_is_not_mixed_in(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse")
    for number, client in enumerate(("ada", "ada", "bob")):
        with RecordWriter(tmp_path / "run", overwrite=number > 0) as writer:
            writer.append("clients", 0, client, "joined")
        if client == "bob":
            with pytest.raises(InvalidRecord, match="holds another recording than the one in"):
                refine(spark, warehouse, tmp_path / "run", "clients", LATEST)
        else:
            assert refine(spark, warehouse, tmp_path / "run", "clients", LATEST).silver == 1
