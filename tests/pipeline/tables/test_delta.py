"""As a Delta table, a table says the same; after a change, and after a run that was killed before the log followed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.tables.lakes import DAY, LATEST, Lake, event, unpublished

from nearcast.errors import SetupError
from nearcast.pipeline.tables import Warehouse, compact, gold, measure_all, refine, retain
from nearcast.pipeline.tables.delta import follow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

deltalake = pytest.importorskip("deltalake")


def events(warehouse: Warehouse) -> list[Any]:
    table = deltalake.DeltaTable(str(warehouse.folder / "silver" / "events"))
    rows = [pq_row for path in table.file_uris() for pq_row in read(path)]
    return sorted(rows)


def read(path: str) -> list[Any]:
    import pyarrow.parquet as pq

    # The file by itself: its folders would be taken for columns.
    values: list[Any] = pq.ParquetFile(path.removeprefix("file://")).read()["event"].to_pylist()
    return values


def test_delta_follows_every_change(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gold, "GOLD", [each for each in gold.GOLD if each.name == "activity"])  # one will do
    lake, warehouse = Lake(tmp_path / "lake"), Warehouse(tmp_path / "warehouse")
    lake.export({"events": [event("a"), event("b", DAY - 1), event("bad", None)]})
    refine(spark, warehouse, lake.folder, "events", LATEST)
    measure_all(spark, warehouse)
    assert follow(warehouse)["gold/activity"] == 2
    assert events(warehouse) == ["a", "b"]
    lake.export({"unpublished": [unpublished("a", 0)]})
    lake.export({"events": [event("c"), event("d")]})
    for name in ("unpublished", "events"):
        refine(spark, warehouse, lake.folder, name, LATEST)
    assert events(warehouse) == ["a", "b"], "the log has not followed yet"
    follow(warehouse)
    assert events(warehouse) == ["b", "c", "d"]
    compact(spark, warehouse, "events", 1 << 20)
    retain(warehouse, "events", DAY)
    follow(warehouse)
    assert events(warehouse) == ["c", "d"]
    version = deltalake.DeltaTable(str(warehouse.folder / "silver" / "events")).version()
    follow(warehouse)
    assert deltalake.DeltaTable(str(warehouse.folder / "silver" / "events")).version() == version, "nothing to say"


def test_without_the_package_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SetupError, match="pip install deltalake"):
        follow(Warehouse(tmp_path))
