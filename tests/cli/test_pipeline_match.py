"""``nearcast pipeline match`` and ``stream``: the receivers that the definition of delivery names, at once and as they come."""

from __future__ import annotations

import itertools
import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.pipeline.matching.worlds import Recording
from tests.pipeline.source.live_broker import live_broker
from tests.pipeline.tables.lakes import Lake, event, unpublished

from nearcast.cli import main
from nearcast.journal import EventEntry, ReportEntry, SubscriptionEntry
from nearcast.model.area import Circle
from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.pipeline.session import said_by_spark
from nearcast.records import RecordWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Output = pytest.CaptureFixture[str]
SECONDS = 12
PEOPLE = ("ada", "bob", "cyd")
BATCH = 10


@pytest.fixture(scope="module")
def recorded() -> Recording:
    """Three people walk about and publish in turn; the last second is that of a report, so that nothing waits for what follows."""
    dice = random.Random(4)

    def somewhere() -> Point:
        return Point(49.87 + dice.uniform(0.0, 0.006), 8.65 + dice.uniform(0.0, 0.006))

    plain: dict[str, Any] = {"topic": "t", "attributes": {}, "tags": frozenset(), "reach": None, "to": None}
    script: list[tuple[Any, ...]] = []
    for second, publisher in zip(range(SECONDS), itertools.cycle(PEOPLE), strict=False):
        script += [(second, "move", client, somewhere()) for client in PEOPLE]
        script += [(second, "publish", {**plain, "place": somewhere(), "publisher": publisher})]
    for second, client in enumerate(PEOPLE):
        wanted = Subscription("t", area=Circle(400.0), no_local=client == "ada")
        script.append((second, "subscribe", client, wanted))
    script += [(SECONDS // 2, "unsubscribe", "bob", ""), (SECONDS, "move", "ada", somewhere())]
    made = Recording()
    made.play(0, sorted(script, key=lambda entry: entry[0]))
    for row, publisher in zip(made.tables["events"], itertools.cycle(PEOPLE), strict=False):
        row["publisher"] = f"w0 {publisher}"
    for row in made.tables["subscriptions"]:
        row["no_local"] = 1 if row["client"] == "w0 ada" else None
    assert {len(who) for who in made.expected.values()} >= {0, 1, 2}
    return made


def export(lake: Lake, made: Recording, offsets: range) -> None:
    """Some of what was recorded, as the broker exports it, after all that it has exported before."""
    shift = lake.offset - offsets.start
    tables = {
        name: [{**row, "offset": row["offset"] + shift} for row in rows if row["offset"] in offsets]
        for name, rows in made.tables.items()
    }
    lake.export({name: rows for name, rows in tables.items() if rows})


def document(capsys: Output, *arguments: str) -> Any:
    assert main(["pipeline", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def answers(spark: SparkSession, folder: str) -> dict[str, set[str]]:
    rows = spark.read.parquet(folder).collect()
    found = {row.event: set(row.receivers) for row in rows}
    assert len(found) == len(rows), "an event was answered twice"
    return found


def batches_of(folder: Path) -> int:
    """That a stream has completed."""
    return sum(1 for file in (folder / "checkpoint" / "commits").iterdir() if file.name.isdecimal())


def rows_in(made: Recording) -> int:
    return sum(map(len, made.tables.values()))


def test_match_names_the_receivers_of_the_definition(
    spark: SparkSession, recorded: Recording, tmp_path: Path, capsys: Output
) -> None:
    lake = Lake(tmp_path / "lake")
    export(lake, recorded, range(rows_in(recorded)))
    lake.export({"events": [event("for whoever was here", timing="x")]})
    earlier = tmp_path / "lake-warehouse" / "matched"
    earlier.mkdir(parents=True)
    for name in ("_SUCCESS", "part-0.parquet"):
        (earlier / name).touch()
    found = document(capsys, "match", "--lake", str(lake.folder))
    assert (found["out"], found["events"], found["left_out"]) == (str(earlier), SECONDS, 1)
    assert found["receivers"] == sum(map(len, recorded.expected.values()))
    assert answers(spark, found["out"]) == recorded.expected, "nothing is left of an earlier answer"


def test_a_stream_that_was_stopped_goes_on_and_answers_every_event_once(
    spark: SparkSession, recorded: Recording, tmp_path: Path, capsys: Output
) -> None:
    lake, where = Lake(tmp_path / "lake"), ["--lake", str(tmp_path / "lake"), "--out", str(tmp_path / "out")]
    half = rows_in(recorded) // 2
    lake.export({"unpublished": [unpublished("another stream", number) for number in range(BATCH)]})
    export(lake, recorded, range(half))
    first = document(capsys, "stream", "--once", "--batch-rows", str(BATCH), *where)
    assert first["out"] == str(tmp_path / "out" / "rows")
    assert batches_of(tmp_path / "out") == 1 + -(-half // BATCH) > 2, (
        "also the first one, in which there is nothing for it"
    )
    assert 0 < first["events"] == len(answers(spark, first["out"])) < SECONDS
    export(lake, recorded, range(half, rows_in(recorded)))
    second = document(capsys, "stream", "--once", *where)
    assert answers(spark, second["out"]) == recorded.expected
    assert second["receivers"] == sum(map(len, recorded.expected.values()))
    assert (second["events"], second["late"]) == (SECONDS, 0)


def test_of_a_broker_the_last_event_is_answered_too_and_a_backlog_in_several_batches(
    spark: SparkSession, tmp_path: Path, capsys: Output
) -> None:
    now = time.time_ns() // 1000 - 10_000_000
    with live_broker(tmp_path / "data") as broker:
        broker.written(
            ReportEntry(now, "ada", 49.87, 8.65),
            SubscriptionEntry(now, "ada", "", "subscribed", "city/#", area="500"),
            EventEntry("near", "city/jam", now + 1, lat=49.871, lon=8.65),
            ReportEntry(now + 2, "ada", 50.0, 8.65),
            EventEntry("not near any more", "city/jam", now + 3, lat=49.871, lon=8.65),
        )
        where = ["--broker", broker.url, "--lake", str(broker.lake), "--out", str(tmp_path / "out")]
        found = document(capsys, "stream", "--once", "--batch-rows", "4", *where)
        assert answers(spark, found["out"]) == {"near": {"ada"}, "not near any more": set()}
        assert found["late"] == 0, "the clock was ahead of the backlog"
        assert batches_of(tmp_path / "out") == 2
    files = list((tmp_path / "out" / "rows").rglob("*.parquet"))
    assert files
    assert all(pq.read_metadata(file).num_rows for file in files), "batches without answers leave no file"


def test_a_lake_without_events_is_no_mistake(spark: SparkSession, tmp_path: Path, capsys: Output) -> None:
    Lake(tmp_path / "lake").export({"reports": []})
    assert document(capsys, "stream", "--once", "--lake", str(tmp_path / "lake"))["events"] == 0


def test_a_lake_alone_is_not_followed(tmp_path: Path, capsys: Output) -> None:
    Lake(tmp_path / "lake").export({"reports": []})
    assert main(["pipeline", "stream", "--seconds", "1", "--lake", str(tmp_path / "lake")]) == 1
    assert "read it --once, or name its --broker URL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["match", "--lake", "nowhere"], "there is no lake at nowhere; name the broker's lake"),
        (["match", "--lake", "run", "--out", "home"], "home holds what no job has written, and would be lost"),
        (["match", "--lake", "run", "--out", "home/letter"], "home/letter is no folder"),
        (["stream", "--lake", "nowhere"], "there is no lake at nowhere"),
        (["stream", "--lake", "run"], "run is no broker's lake, and nothing will be added to it; match all of it"),
        (["stream", "--broker", "localhost:1883"], "expected the address of its HTTP port"),
    ],
)
def test_wrong_input_is_refused_before_anything_happens(
    arguments: list[str], complaint: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with RecordWriter(tmp_path / "run") as writer:
        writer.append("clients", 0, "ada", "joined")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter").write_text("Dear Ada")
    assert main(["pipeline", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint in output.err
    assert output.err.count("\n") == 1
    assert (tmp_path / "home" / "letter").read_text() == "Dear Ada"


def test_what_nearcast_says_in_a_process_of_spark_is_what_people_read() -> None:
    told = """[STREAM_FAILED] Query terminated with exception: Traceback (most recent call last):
      File "link.py", line 7, in extent
    nearcast.errors.ConnectionFailed: the broker at http://h:1 has not answered for 60 s
     SQLSTATE: 38000
        at org.apache.spark.SparkException: [PYTHON_ERROR]"""
    assert said_by_spark(RuntimeError(told)) == "the broker at http://h:1 has not answered for 60 s"
