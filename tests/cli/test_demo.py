"""``nearcast demo`` as people call it: it ends by itself, says what happened, and leaves nothing behind."""

import errno
import fcntl
import itertools
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
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
    assert re.search(r"^  of all that was said it found recall 1\.000, precision [01]\.\d+ ", printed, re.MULTILINE)
    assert re.search(r"^this machine: .*the broker \d+ s and \d+ MB, Spark \d+ s and \d+ MB$", printed, re.MULTILINE)
    assert re.search(r"carried it out, and [1-9]\d* people came", printed)
    assert re.search(r"(\d+) events match; the first \d+ of them come back", printed)
    assert re.search(
        r"^the live map is at http://127\.0\.0\.1:\d+/dashboard/ \(streets: \(c\) OpenStreetMap", printed, re.MULTILINE
    )
    assert re.search(r"^the ambulance sounded its siren [1-9]", printed, re.MULTILINE)
    assert re.search(r"^\d+ jams at the bridge: .* 0 times somebody else$", printed, re.MULTILINE)
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


class Terminal:
    """A demo in front of somebody."""

    def __init__(self, folder: Path, columns: int, lines: int, *arguments: str) -> None:
        self.screen, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = subprocess.Popen(
            [str(NEARCAST), "demo", "--people", "40", "--no-spark", "--no-browser", *arguments],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm-256color", "COLUMNS": "", "LINES": ""},
            start_new_session=True,
        )
        os.close(inside)
        self.shown = ""

    def read_until(self, words: str) -> None:
        while words not in self.shown:
            assert self._read(), f"it has ended: {self.shown[-2000:]}"

    def end(self) -> int:
        while self._read():
            pass
        os.close(self.screen)
        return self.process.wait(LONG)

    def _read(self) -> bool:
        try:
            chunk = os.read(self.screen, 65_536)
        except OSError as error:  # Linux says so when the other side has closed
            if error.errno != errno.EIO:
                raise
            return False
        self.shown += chunk.decode(errors="replace")
        return bool(chunk)


@pytest.mark.parametrize("moment", ["starting a broker", "\x1b[?1049h"])
def test_whoever_watches_leaves_with_ctrl_c_and_nothing_is_left(moment: str, tmp_path: Path) -> None:
    demo = Terminal(tmp_path, 100, 30)
    demo.read_until(moment)
    demo.process.send_signal(signal.SIGINT)
    assert demo.end() == 0, demo.shown[-2000:]
    assert demo.shown.count("\x1b[?1049h") == demo.shown.count("\x1b[?1049l"), "the terminal is as it was"
    assert "nothing is left of it" in demo.shown
    assert list(left_behind(tmp_path)) == []


def test_a_terminal_without_room_for_a_map_gets_plain_lines(tmp_path: Path) -> None:
    demo = Terminal(tmp_path, 40, 10, "--seconds", "60")
    demo.read_until("morning")
    assert "too few for a map" in demo.shown
    demo.process.send_signal(signal.SIGINT)
    assert demo.end() == 130
    assert "\x1b[?1049h" not in demo.shown
    assert list(left_behind(tmp_path)) == []


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        process = started(tmp_path, "--no-spark", "--http-port", str(port))
        _, complaints = process.communicate(timeout=LONG)
    assert process.returncode == 1
    assert len(complaints.splitlines()) == 1
    assert str(port) in complaints
    assert list(left_behind(tmp_path)) == []


def test_two_demos_run_beside_each_other(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    demos = [started(folder, "--seconds", "5", "--no-spark") for folder in folders]
    for demo, folder in zip(demos, folders, strict=True):
        printed, complaints = demo.communicate(timeout=LONG)
        assert (demo.returncode, complaints) == (0, "")
        assert "0 lost, 0 doubled" in printed
        assert list(left_behind(folder)) == []
