"""A real stream: files come one after the other, the query dies in between, and every event is answered once."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.matching.worlds import Recording

from nearcast.model.area import Circle
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.pipeline.streaming import StreamSettings, match_stream
from nearcast.records import table
from nearcast.records.arrow import plain_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES = 4
END = 4 * 10**15
"""An instant after everything, in microseconds."""


def streams(spark: SparkSession, folder: Path, made: Recording) -> dict[str, DataFrame]:
    """Each table as a stream of files, one per batch and stretch of time; rows of a file in any order."""
    found = {}
    times = [row["time"] for rows in made.tables.values() for row in rows]
    cuts = np.quantile(times, np.arange(1, FILES) / FILES)
    for name, rows in {**made.tables, "clock": [{"time": END}]}.items():
        schema = pa.schema([("time", pa.timestamp("us", "UTC"))]) if name == "clock" else plain_schema(table(name))
        stretch = np.searchsorted(cuts, [row["time"] for row in rows], side="right").tolist()
        pieces = [[row for row, place in zip(rows, stretch, strict=True) if place == number] for number in range(FILES)]
        (folder / name).mkdir()
        for number, piece in enumerate(pieces):
            random.Random(number).shuffle(piece)
            written = folder / name / f"{number}.parquet"
            pq.write_table(pa.Table.from_pylist(piece, schema), written)
            os.utime(written, (number + 1, number + 1))  # Spark reads the oldest file first
        found[name] = (
            spark.readStream.schema(spark.read.parquet(str(folder / name)).schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(folder / name))
            .drop("receivers")
        )
    return found


def test_what_died_in_the_middle_of_a_batch_goes_on_without_loss_or_double(
    spark: SparkSession, tmp_path: Path, worlds: Recording
) -> None:
    frames = streams(spark, tmp_path, worlds)
    batches: dict[int, dict[str, list[str]]] = {}

    def run(dies_at: int | None, parts: int = 2) -> None:
        answers = match_stream(**frames, settings=StreamSettings(parts=parts))

        def sink(batch: DataFrame, number: int) -> None:
            found = {row.event: row.receivers for row in batch.collect()}
            if number == dies_at:
                raise RuntimeError("the sink is gone")
            batches[number] = found

        query = (
            answers.writeStream.foreachBatch(sink)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with pytest.raises(Exception, match="the sink is gone"):
        run(dies_at=2)
    assert max(batches) == 1
    assert any(batches.values()), "nothing was answered before"
    run(dies_at=None)
    told = [event for found in batches.values() for event in found]
    assert len(told) == len(set(told)), "an event was answered twice"
    assert {event: set(who) for found in batches.values() for event, who in found.items()} == worlds.expected
    add_event(tmp_path / "events")
    with pytest.raises(Exception, match="of 2 parts, not 3"):
        run(dies_at=None, parts=3)


def add_event(folder: Path) -> None:
    """Nothing but one event, for one part."""
    row = {"time": END + 1, "event": "new", "topic": "t", "bytes": 0, "receivers": []}
    written = folder / f"{FILES}.parquet"
    pq.write_table(pa.Table.from_pylist([row], plain_schema(table("events"))), written)
    os.utime(written, (FILES + 1, FILES + 1))


@pytest.fixture
def worlds() -> Recording:
    """Half a minute in which three people walk about and something happens every second."""
    dice = random.Random(1)
    made = Recording()
    clients = ("ada", "bob", "cyd")
    script: list[tuple[Any, ...]] = [
        (second, "subscribe", client, Subscription("#", area=Circle(400.0))) for second, client in enumerate(clients)
    ]
    for second in range(30):
        script += [(second, "move", client, _somewhere(dice)) for client in clients if dice.random() < 0.6]
        event = {
            "topic": "t",
            "attributes": {},
            "tags": frozenset(),
            "place": _somewhere(dice),
            "reach": None,
            "to": None,
        }
        script.append((second, "publish", event))
    script.append((20, "unsubscribe", "bob", ""))
    made.play(0, sorted(script, key=lambda entry: entry[0]))
    assert sum(map(len, made.expected.values())) > 10
    return made


def _somewhere(dice: random.Random) -> Point:
    return Point(49.87 + dice.uniform(0.0, 0.006), 8.65 + dice.uniform(0.0, 0.006))
