"""Bad rows are named, bad folders refused, and nothing that is not complete looks as if it were."""

from __future__ import annotations

import errno
import json
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nearcast.errors import InvalidRecord, SetupError, UnknownName
from nearcast.records import TABLES, RecordWriter, arrow_schema, dataset, read, read_summary, table
from nearcast.records.content import ROWS
from nearcast.records.writer import ROWS_AS_VALUES

MESSAGE = (0, 5, "wifi", "event", "ada", None, 128, "sent", 3)
EVENT = (0, "e1", "ada", "t", 49.0, 8.0, None, 128, "AR", ["bob"])
JOURNALED = (*EVENT, b"hi", ["slow"], '{"speed": 3}', None, None, None, 5, 17)
CONTEXT = (0, "ada", "car", "{}", 3)
POSITION = (0, "ada", 49.0, 8.0, 1.5, 90.0)


def replaced(row: tuple[Any, ...], position: int, value: Any) -> tuple[Any, ...]:
    return (*row[:position], value, *row[position + 1 :])


BAD_VALUES = [
    ("messages", replaced(MESSAGE, 0, 1.5), r"messages\.time in row 2 .* is 1\.5; expected an instant in whole micro"),
    ("messages", replaced(MESSAGE, 0, "now"), r"messages\.time in row 2 .* is 'now'; expected an instant"),
    ("messages", replaced(MESSAGE, 0, None), r"messages\.time in row 2 .* is None; expected a value: null is not"),
    ("messages", replaced(MESSAGE, 0, 10**18), r"messages\.time in row 2 .* expected at most 253402300799999999"),
    ("messages", replaced(MESSAGE, 2, 7), r"messages\.interface in row 2 .* is 7; expected a text"),
    ("messages", replaced(MESSAGE, 4, None), r"messages\.sender in row 2 .* is None; expected a value"),
    ("messages", replaced(MESSAGE, 4, "\ud800"), r"messages\.sender in row 2 .* expected a text"),
    ("messages", replaced(MESSAGE, 6, 2.0), r"messages\.bytes in row 2 .* is 2\.0; expected a whole number"),
    ("messages", replaced(MESSAGE, 6, True), r"messages\.bytes in row 2 .* is True; expected a whole number"),
    ("messages", replaced(MESSAGE, 6, 2**63), r"messages\.bytes in row 2 .* is 9223372036854775808; expected a whole"),
    ("messages", replaced(MESSAGE, 6, -1), r"messages\.bytes in row 2 .* is -1; expected at least 0"),
    ("positions", replaced(POSITION, 2, float("nan")), r"positions\.lat in row 2 .* is nan; expected a finite number"),
    (
        "positions",
        replaced(POSITION, 4, float("inf")),
        r"positions\.speed in row 2 .* is inf; expected a finite number",
    ),
    ("positions", replaced(POSITION, 2, 90.5), r"positions\.lat in row 2 .* is 90\.5; expected at most 90\.0"),
    ("positions", replaced(POSITION, 3, -180.5), r"positions\.lon in row 2 .* is -180\.5; expected at least -180\.0"),
    ("clients", (0, "ada", "gone"), r"clients\.state in row 2 .* is 'gone'; expected one of joined, left, failed"),
    ("events", replaced(EVENT, 9, "bob"), r"events\.receivers in row 2 .* is 'bob'; expected a list or tuple of texts"),
    ("events", replaced(EVENT, 9, {"bob"}), r"events\.receivers in row 2 .* is \{'bob'\}; expected a list or tuple"),
    ("events", replaced(EVENT, 9, ["bob", 3]), r"events\.receivers in row 2 .* is \['bob', 3\]; expected a list"),
    ("events", replaced(EVENT, 9, [None]), r"events\.receivers in row 2 .* is \[None\]; expected a list of texts with"),
    ("contexts", replaced(CONTEXT, 4, -1), r"contexts\.offset in row 2 .* is -1; expected at least 0"),
    ("events", replaced(JOURNALED, 10, "hi"), r"events\.payload in row 2 .* is 'hi'; expected bytes"),
]
GOOD = {
    "messages": MESSAGE,
    "positions": POSITION,
    "clients": (0, "ada", "joined"),
    "events": EVENT,
    "contexts": CONTEXT,
}


def good_row(name: str, width: int) -> tuple[Any, ...]:
    return (*GOOD[name], *(None,) * (width - len(GOOD[name])))


every_bad_value = pytest.mark.parametrize(("name", "row", "message"), BAD_VALUES)


@every_bad_value
def test_a_wrong_value_is_named_with_its_table_column_and_row(name: str, row: tuple[Any, ...], message: str) -> None:
    recording = RecordWriter(None)
    good = good_row(name, len(row))
    for each in (good, good, row, good):
        recording.append(name, *each)
    with pytest.raises(InvalidRecord, match=message):
        recording.close()


@every_bad_value
def test_a_wrong_value_in_a_column_is_named_and_changes_nothing(name: str, row: tuple[Any, ...], message: str) -> None:
    recording = RecordWriter(None)
    good = good_row(name, len(row))
    columns = [list(values) for values in zip(good, good, row, good, strict=True)]
    with pytest.raises(InvalidRecord, match=message):
        recording.append_columns(name, dict(zip(table(name).column_names, columns, strict=False)))
    recording.append(name, *GOOD[name])
    recording.close()
    assert recording.summary()[name].rows == 1


def test_rows_are_numbered_from_the_start_of_the_table() -> None:
    recording = RecordWriter(None)
    for _ in range(ROWS_AS_VALUES + 1):
        recording.append("messages", *MESSAGE)
    recording.append("messages", *replaced(MESSAGE, 6, "many"))
    with pytest.raises(InvalidRecord, match=rf"messages\.bytes in row {ROWS_AS_VALUES + 1} \(from 0\) is 'many'"):
        recording.close()


def test_a_row_with_too_few_or_too_many_values_is_refused_at_once_and_changes_nothing() -> None:
    with RecordWriter(None) as recording:
        append = recording.appender("clients")
        append(0, "ada", "joined")
        for row in ((), (0, "ada"), (0, "ada", "left", 7, "for good")):
            with pytest.raises(
                InvalidRecord,
                match=rf"a row of clients has 4 values \(time, .*offset\), or the first 3 of them, not {len(row)}",
            ):
                append(*row)
        with pytest.raises(InvalidRecord, match=r"a row of metrics has 3 values \(time, metric, value\), not 4"):
            recording.append("metrics", 0, "clients up", 1.0, None)
        append(1, "ada", "left")
    assert recording.summary()["clients"].rows == 2


def test_wrong_columns_are_refused() -> None:
    with RecordWriter(None) as recording:
        with pytest.raises(InvalidRecord, match=r"clients has the columns .*; missing: state; unknown: status"):
            recording.append_columns("clients", {"time": [0], "client": ["ada"], "status": ["joined"]})
        with pytest.raises(InvalidRecord, match=r"columns of clients differ in length: time 2, client 1, state 1"):
            recording.append_columns("clients", {"time": [0, 1], "client": ["ada"], "state": ["joined"]})
        with pytest.raises(InvalidRecord, match=r"clients\.time in row 0 .* expected an instant"):
            recording.append_columns(
                "clients", {"time": np.array([0.5]), "client": ["ada"], "state": pa.array(["joined"])}
            )
    assert recording.statistics().rows == 0


def test_empty_arrays_of_any_type_are_no_rows() -> None:
    with RecordWriter(None) as recording:
        recording.append_columns("clients", {"time": np.array([]), "client": [], "state": pa.array([], pa.bool_())})
    assert recording.summary()["clients"].rows == 0


def test_unknown_tables_are_refused(tmp_path: Path) -> None:
    with RecordWriter(tmp_path) as recording:
        for use in (
            lambda: recording.append("evnts"),
            lambda: recording.appender("evnts"),
            lambda: recording.append_columns("evnts", {}),
        ):
            with pytest.raises(UnknownName, match="no record table 'evnts'"):
                use()
    with pytest.raises(UnknownName, match="no record table 'evnts'"):
        read(tmp_path, "evnts")


def test_until_it_is_closed_nothing_looks_like_a_recording(tmp_path: Path) -> None:
    recording = RecordWriter(tmp_path)
    recording.append("clients", 0, "ada", "joined")
    assert [path.name for path in tmp_path.iterdir()] == ["_unfinished"]
    with pytest.raises(InvalidRecord, match="was never finished"):
        read(tmp_path, "clients")
    with pytest.raises(InvalidRecord, match="the recording is open; only a closed one has a summary"):
        recording.summary()
    recording.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["_recording.json", *(each.name for each in TABLES)]
    )


def test_closing_twice_is_fine_and_appending_afterwards_is_not(tmp_path: Path) -> None:
    recording = RecordWriter(tmp_path)
    append = recording.appender("clients")
    append(0, "ada", "joined")
    recording.close()
    recording.close()
    recording.abandon()
    with pytest.raises(InvalidRecord, match="the recording is closed; nothing can be appended"):
        append(1, "ada", "left")
    with pytest.raises(InvalidRecord, match="the recording is closed"):
        recording.append_columns("clients", {"time": [], "client": [], "state": []})
    assert read(tmp_path, "clients").num_rows == 1


class Interrupted(Exception):
    """What may happen to a run."""


def interrupted(recording: RecordWriter) -> None:
    with recording:
        recording.append("clients", 0, "bob", "joined")
        raise Interrupted


def append_often(append: Callable[..., None], row: tuple[Any, ...], times: int) -> None:
    for _ in range(times):
        append(*row)


def test_a_run_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        interrupted(RecordWriter(tmp_path / "run"))
    assert list((tmp_path / "run").iterdir()) == []
    with pytest.raises(InvalidRecord, match="holds no recording"):
        read(tmp_path / "run", "clients")
    with RecordWriter(tmp_path / "run"):
        pass  # the folder can be used again


def test_a_run_that_is_killed_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from nearcast.records import RecordWriter
recording = RecordWriter(sys.argv[1])
append = recording.appender("clients")
for row in range(200_000):
    append(row, "ada", "joined")
os.kill(os.getpid(), signal.SIGKILL)
"""
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["_unfinished"]
    with pytest.raises(InvalidRecord, match="was never finished"):
        read(tmp_path, "clients")
    with pytest.raises(InvalidRecord, match="holds an unfinished recording; choose another folder, or overwrite it"):
        RecordWriter(tmp_path)
    with RecordWriter(tmp_path, overwrite=True) as recording:
        recording.append("clients", 0, "bob", "joined")
    assert read(tmp_path, "clients")["client"].to_pylist() == ["bob"]


def test_an_error_in_one_table_ends_all(tmp_path: Path) -> None:
    recording = RecordWriter(tmp_path)
    clients, messages = recording.appender("clients"), recording.appender("messages")
    clients(0, "ada", "joined")
    messages(*replaced(MESSAGE, 2, 7))
    with pytest.raises(InvalidRecord, match=r"messages\.interface"):
        append_often(messages, MESSAGE, ROWS_AS_VALUES)
    with pytest.raises(InvalidRecord, match="the recording is abandoned; nothing can be appended"):
        clients(1, "ada", "left")
    with pytest.raises(InvalidRecord, match="the recording is abandoned; only a closed one has a summary"):
        recording.summary()
    recording.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_said_and_ends_the_recording(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: the write fails in the same place, with another number."""
    recording = RecordWriter(tmp_path)
    receivers = [f"client {number * 7919 % 100_003}" for number in range(20)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with pytest.raises(SetupError, match=rf"cannot record to {tmp_path}: .*{errno.EFBIG}.*; make room there"):
            append_often(recording.appender("events"), replaced(EVENT, 9, receivers), ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SetupError, match=rf"cannot record to {folder}: .*Not a directory"):
            RecordWriter(folder)


def test_a_recording_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    with RecordWriter(tmp_path) as recording:
        recording.append("clients", 0, "ada", "joined")
    with pytest.raises(InvalidRecord, match="holds a recording already; choose another folder, or overwrite it"):
        RecordWriter(tmp_path)
    assert read(tmp_path, "clients").num_rows == 1


def test_overwriting_replaces_the_recording_when_the_new_one_is_complete_and_nothing_else(tmp_path: Path) -> None:
    with RecordWriter(tmp_path) as recording:
        recording.append("clients", 0, "ada", "joined")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Interrupted):
        interrupted(RecordWriter(tmp_path, overwrite=True))
    assert read(tmp_path, "clients")["client"].to_pylist() == ["ada"]
    with RecordWriter(tmp_path, overwrite=True) as recording:
        recording.append("clients", 0, "bob", "joined")
        assert read(tmp_path, "clients")["client"].to_pylist() == ["ada"]
    assert read(tmp_path, "clients")["client"].to_pylist() == ["bob"]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_things_is_refused_even_to_be_overwritten(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    for overwrite in (False, True):
        with pytest.raises(InvalidRecord, match="holds other things than a recording; choose another folder"):
            RecordWriter(tmp_path, overwrite=overwrite)
    assert (tmp_path / "events").exists()


def test_what_is_no_recording_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="there is no folder"):
        read(tmp_path / "missing", "events")
    with pytest.raises(InvalidRecord, match=r"holds no recording: it has no _recording\.json"):
        dataset(tmp_path, "events")
    (tmp_path / "_recording.json").write_text("{")
    with pytest.raises(InvalidRecord, match=r"_recording\.json cannot be read"):
        read_summary(tmp_path)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    with RecordWriter(tmp_path) as recording:
        recording.append("clients", 0, "ada", "joined")
        recording.append("reports", 0, "ada", 49.0, 8.0)
    return tmp_path


def test_a_recording_of_a_newer_version_is_refused(recorded: Path) -> None:
    summary = json.loads((recorded / "_recording.json").read_text())
    (recorded / "_recording.json").write_text(json.dumps({**summary, "version": 2}))
    with pytest.raises(
        InvalidRecord, match=r"version 2 of the record tables.* up to version 1; install a newer nearcast"
    ):
        read(recorded, "clients")


def rewrite(part: Path, found: pa.Table) -> None:
    pq.write_table(found, part)


def test_a_file_of_a_newer_version_is_refused(recorded: Path) -> None:
    part = recorded / "clients" / "part-0000.parquet"
    found = pq.read_table(part)
    rewrite(part, found.replace_schema_metadata({**found.schema.metadata, b"nearcast.version": b"2"}))
    with pytest.raises(InvalidRecord, match=r"part-0000\.parquet was recorded with version 2"):
        read(recorded, "clients")


def test_a_file_that_is_damaged_lost_or_of_another_table_is_refused(recorded: Path) -> None:
    part = recorded / "clients" / "part-0000.parquet"
    rewrite(part, pq.read_table(part).drop_columns(["state"]))
    with pytest.raises(InvalidRecord, match=r"part-0000\.parquet lacks columns that clients has: state"):
        read(recorded, "clients")
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(InvalidRecord, match=r"part-0000\.parquet cannot be read"):
        read(recorded, "clients")
    part.unlink()
    with pytest.raises(InvalidRecord, match="has lost its table clients"):
        read(recorded, "clients")


def test_a_table_that_came_later_reads_as_empty(recorded: Path) -> None:
    summary = json.loads((recorded / "_recording.json").read_text())
    del summary["tables"]["contexts"]
    (recorded / "_recording.json").write_text(json.dumps(summary))
    shutil.rmtree(recorded / "contexts")
    found = read(recorded, "contexts")
    assert (found.num_rows, found.schema) == (0, arrow_schema(table("contexts")))


def test_a_nullable_column_that_came_later_reads_as_null(recorded: Path) -> None:
    part = recorded / "reports" / "part-0000.parquet"
    rewrite(part, pq.read_table(part).drop_columns(["lon"]))
    assert read(recorded, "reports").select(["lat", "lon"]).to_pylist() == [{"lat": 49.0, "lon": None}]
