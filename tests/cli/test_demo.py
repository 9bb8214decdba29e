"""``nearcast demo`` as people call it: it ends by itself, says what happened, and leaves nothing behind."""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

NEARCAST = Path(sys.executable).with_name("nearcast")
LONG = 400
"""Seconds; the machine may be busy."""


def started(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Whatever it leaves behind is in that folder, and whatever it starts has the folder's name in its command line."""
    return subprocess.Popen(
        [str(NEARCAST), "demo", "--headless", "--people", "40", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def left_behind(folder: Path) -> Iterator[str]:
    yield from (str(path) for path in folder.iterdir())
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes()
        except OSError:  # it has just ended
            continue
        if str(folder).encode() in command:
            yield f"{process}: {command!r}"


def test_headless_ends_by_itself_with_a_summary_and_leaves_nothing_behind(tmp_path: Path) -> None:
    process = started(tmp_path, "--seconds", "5")
    printed, complaints = process.communicate(timeout=LONG)
    assert (process.returncode, complaints) == (0, "")
    assert "0 lost, 0 doubled, 0 to somebody too far away" in printed
    certain = re.search(r"of ([\d,]+) that were certainly due", printed)
    assert certain is not None
    assert int(certain[1].replace(",", "")) > 0
    changes = re.findall(r"^ +[\d.]+ s  (\S+) -> (\S+) with \d+ people(, [\w ]+)?$", printed, re.MULTILINE)
    assert [after for before, after, _ in changes][-2:] == ["EGRID(factor=12)", "RADIAL"]
    assert [how for *_, how in changes if how] == [", planned by Spark", ", by hand"]
    assert all(first[1] == then[0] for first, then in itertools.pairwise(changes))
    assert re.search(r"^  in all( +[\d.,]+){6}$", printed, re.MULTILINE)
    assert len(re.findall(r"^\d\. ", printed, re.MULTILINE)) == printed.count("(as defined)") == 4
    assert re.search(r"^  \d+ people in the densest 100 m, near the \w+$", printed, re.MULTILINE)
    assert re.search(r"^  \d+ attraction points?: the \w+ \(\d+ within \d+ m\)", printed, re.MULTILINE)
    assert re.search(
        r"^  it planned RADIAL at \d+ attraction points?, EGRID\(factor=24\) elsewhere$", printed, re.MULTILINE
    )
    assert re.search(r"carried it out, and [1-9]\d* people came", printed)
    assert re.search(r"(\d+) events match; the first \d+ of them come back", printed)
    assert printed.isascii()
    assert "\x1b" not in printed
    assert list(left_behind(tmp_path)) == []


@pytest.mark.parametrize(
    ("sent", "how", "meanwhile"),
    [(signal.SIGINT, "--spark", "Spark is there"), (signal.SIGTERM, "--no-spark", "morning")],
)
def test_interruption_leaves_nothing_behind(sent: signal.Signals, how: str, meanwhile: str, tmp_path: Path) -> None:
    process = started(tmp_path, "--seconds", "60", how)
    assert process.stdout is not None
    while meanwhile not in (line := process.stdout.readline()):
        assert line, "it has ended"
    running = list(left_behind(tmp_path))
    assert len(running) > 1, "a folder and a broker, meanwhile"
    assert any("java" in each for each in running) == (how == "--spark")
    process.send_signal(sent)
    _, complaints = process.communicate(timeout=LONG)
    assert (process.returncode, complaints) == (130, "nearcast: interrupted\n")
    assert list(left_behind(tmp_path)) == []
