"""Nothing of an erased person is in what jobs have made of the lake, and jobs go on as if it had never been there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.broker.erasing.markers import MARKER, found_below, traces
from tests.broker.erasing.planting import USER, plant
from tests.broker.erasing.test_erase import exported, served
from tests.broker.talker import run
from tests.broker.upkeep.commands import nearcast

from nearcast.journal.identities import Identities
from nearcast.model.time import LARGEST
from nearcast.pipeline.matching import match
from nearcast.pipeline.tables import Warehouse, measure_all, read_gold, read_lake, read_silver, refine_all
from nearcast.pipeline.tables.store import address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("reports", "subscriptions", "contexts", "clients")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a real broker, with everything in its lake."""
    folder = tmp_path_factory.mktemp("planted")

    async def scenario() -> None:
        server = served(folder)
        await asyncio.to_thread(server.start)
        await plant(server)
        await asyncio.to_thread(server.stop)
        exported(server)

    run(scenario())
    return folder / "data"


def test_what_jobs_have_made(spark: SparkSession, planted: Path) -> None:
    lake, warehouse = planted / "lake", Warehouse(planted / "lake-warehouse")
    before = {each.table: each for each in refine_all(spark, warehouse, lake, LARGEST)}
    measure_all(spark, warehouse)
    tables = read_lake(spark, lake)
    answers = warehouse.folder / "match"
    events = tables["events"].where("timing is null").drop("receivers")
    match(events, *(tables[name] for name in TABLES)).write.mode("overwrite").parquet(address(answers))
    stream = warehouse.folder / "stream"
    (stream / "checkpoint" / "offsets").mkdir(parents=True)
    (stream / "checkpoint" / "state").write_text(f"what a stream knows of {MARKER}")
    identities = Identities(planted / "identities.db")
    known = tuple(identities.of_user(USER).values())
    identities.close()
    made = found_below(warehouse.folder, (MARKER, *known))
    assert {name.split("/")[0] for name in made} >= {"silver", "gold", "match", "stream"}
    asyncio.run(nearcast("erase", USER, "--data", planted))
    assert traces(planted, known) == {}
    assert not stream.exists(), "it begins anew"
    # What is left is what a warehouse made of the erased lake would have.
    again = {each.table: each for each in refine_all(spark, warehouse, lake, LARGEST)}
    measure_all(spark, warehouse)
    fresh = Warehouse(planted / "fresh")
    expected = {each.table: each for each in refine_all(spark, fresh, lake, LARGEST)}
    measure_all(spark, fresh)
    assert again["events"].silver == expected["events"].silver < before["events"].silver
    for name in ("events", *TABLES):
        rows, wanted = (sorted(map(repr, read_silver(spark, each, name).collect())) for each in (warehouse, fresh))
        assert rows == wanted, name
    for name in ("activity", "clients", "delivery"):
        rows, wanted = (sorted(map(repr, read_gold(spark, each, name).collect())) for each in (warehouse, fresh))
        assert rows == wanted, name
    assert (
        spark.read.parquet(address(answers)).count()
        == read_silver(spark, warehouse, "events").where("timing is null").count()
    )
    assert traces(planted, known) == {}
