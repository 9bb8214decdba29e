"""``nearcast pipeline``: one document on stdout, one line on stderr if it fails, and a module for each job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.pipeline.tables.lakes import Lake, event, unpublished

from nearcast.cli import main
from nearcast.cli.pipeline import jobs
from nearcast.cli.pipeline.progress import task_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Output = pytest.CaptureFixture[str]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path / "lake")
    made.export({"events": [event("a"), event("a"), event("b"), event("bad", lat=99.0)]})
    return made


def document(capsys: Output, *arguments: str) -> Any:
    assert main(["pipeline", *arguments, "--json"]) == 0
    output = capsys.readouterr()
    return json.loads(output.out)


def test_tables_are_made_kept_and_measured(spark: SparkSession, lake: Lake, capsys: Output) -> None:
    """One after the other, on the session that is running: as in a notebook, it goes on afterwards."""
    where = ["--lake", str(lake.folder)]
    first = document(capsys, "tables", *where)
    assert (first["job"], first["warehouse"]) == ("tables", f"{lake.folder}-warehouse")
    counts = {"files": 1, "bronze": 4, "silver": 2, "aside": 1, "duplicates": 1, "unpublished": 0, "expired": 0}
    assert first["silver"] == {"events": counts}
    assert first["gold"]["activity"] == {"days_computed": 1}
    lake.export({"events": [event("c")], "unpublished": [unpublished("a", 0), unpublished("a", 1)]})
    second = document(capsys, "tables", *where)["silver"]["events"]
    assert (second["silver"], second["unpublished"], second["duplicates"]) == (2, 2, 0)
    compacted = document(capsys, "compact", *where)
    assert compacted["tables"]["events"] == {"files_before": 3, "files_after": 2}
    dropped = document(capsys, "retain", "--age", "1d", *where)
    assert dropped["dropped"]["events"] == {"rows": 3}
    assert spark.range(1).count() == 1


def test_people_read_the_same_as_text(spark: SparkSession, lake: Lake, capsys: Output) -> None:
    assert main(["pipeline", "metrics", "--lake", str(lake.folder)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("job: metrics\n")
    assert "  delivery: events 4, events without truth 0, strays 0, due 4, notified 0" in shown


def test_ingested_traces_are_tables_too(spark: SparkSession, tmp_path: Path, capsys: Output) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("who,time,lat,lon\nada,0,49.87,8.65\nbob,0,far,8.65\n")
    where = ["--lake", str(tmp_path / "lake")]
    found = document(capsys, "ingest", str(trace), "--column", "client=who", *where)
    assert (found["format"], found["table"], found["rows"]) == ("csv", "reports", 1)
    assert found["reasons"] == {"lat 'far' cannot be read": 1}
    assert document(capsys, "tables", *where)["silver"]["reports"]["silver"] == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["tables", "--lake", "nowhere"], "there is no lake at nowhere; name the broker's lake"),
        (["metrics", "--config", "none.toml"], "none.toml: cannot be read: No such file or directory"),
        (["compact", "--warehouse", "nowhere"], "holds no tables yet; nearcast pipeline tables makes them"),
        (["tables", "--remote", "http://x"], "'http://x' is no address of Spark Connect"),
        (["tables", "--master", "local", "--remote", "sc://x"], "--master and --remote are two ways to Spark"),
        (
            ["ingest", "trace.doc"],
            "say which: --format csv|gpx|moving-features|moving-features-csv|gtfs-realtime|tweets",
        ),
        (["retain", "--age", "soon"], "'soon' is not a duration"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    arguments: list[str], complaint: str, capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert complaint in output.err
    assert output.err.count("\n") == 1


def test_what_spark_says_is_one_line_too(spark: SparkSession, lake: Lake, capsys: Output) -> None:
    torn = next((lake.folder / "events").rglob("*.parquet"))
    torn.write_bytes(b"PAR1 no more")
    assert main(["pipeline", "tables", "--lake", str(lake.folder)]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "nearcast: Spark failed: " in output.err
    assert torn.name in output.err
    assert output.err.count("nearcast:") == 1


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], ["ingest"], ["ingest", "x.csv", "--column", "far"], ["tables", "--far"]]
)
def test_wrong_usage_has_status_two(arguments: list[str], capsys: Output) -> None:
    assert main(["pipeline", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_every_module_is_a_job_with_the_common_options(capsys: Output) -> None:
    modules = {path.stem for path in Path(jobs.__file__).parent.glob("*.py")} - {"__init__"}
    assert {"tables", "compact", "retain", "metrics", "ingest"} <= modules
    for name in modules:
        assert main(["pipeline", name.replace("_", "-"), "--help"]) == 0
        shown = capsys.readouterr().out
        assert all(option in shown for option in ("--master", "--remote", "--lake", "--config", "--json"))


def test_progress_is_shown_to_people_only(spark: SparkSession, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        """A terminal that remembers."""

        def __init__(self) -> None:
            self.text = ""

        def write(self, text: str) -> int:
            self.text += text
            return len(text)

        def flush(self) -> None:
            pass

        def isatty(self) -> bool:
            return True

        def __iter__(self) -> Iterator[str]:
            return iter(())

    def slow() -> None:
        spark.range(0, 4, 1, 4).selectExpr("reflect('java.lang.Thread', 'sleep', cast(400 as long))").collect()

    with task_progress(spark, "work"):
        slow()
    assert capsys.readouterr().err == ""
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with task_progress(spark, "work"):
        slow()
    assert "of 4 tasks" in screen.text
