"""``nearcast demo crowd``: real processes keep what they publish, change the mechanism, and are bridged to a broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.demo_processes import meeting_at
from tests.waiting import PATIENCE

from nearcast.cli.app import main
from nearcast.cli.demo.stadium.fan import FanSettings
from nearcast.cli.demo.stadium.stand import StandSettings

NEARCAST = str(Path(sys.executable).with_name("nearcast"))


def test_the_story_comes_to_its_end_and_nothing_is_lost_or_doubled() -> None:
    done = subprocess.run(
        [NEARCAST, "demo", "crowd", "--processes", "8", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcome: dict[str, Any] = json.loads(done.stdout)
    people = {person["name"]: person for person in outcome["people"]}
    assert len({person["pid"] for person in people.values()}) == len(people) == 8
    assert {person["mechanism"] for person in people.values()} == {"DCS"}
    assert sum(person["doubled"] for person in people.values()) == 0
    assert people["bob"]["told"] == 4, "two goals, a film, and a word from home; no replay"
    assert outcome["archived"] == ["ada/goal-1", "ada/goal-2", "tom/film"]
    assert any("from a copy" in check for check in outcome["checks"])
    assert len(outcome["checks"]) == 14


def test_whoever_ends_it_leaves_neither_a_process_nor_a_folder_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [NEARCAST, "demo", "crowd", "--processes", "6"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr is not None
    line = process.stderr.readline()
    where = line.split(" meet at ")[1].split(":")[0]
    assert "bob subscribes" in process.stderr.readline()
    assert len(fans(where)) == 4
    process.terminate()
    printed, complaints = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert complaints.endswith("nearcast: interrupted\n")
    assert (printed, fans(where), list(tmp_path.iterdir())) == ("", [], [])


def test_a_process_ends_when_whoever_gave_the_orders_is_gone() -> None:
    settings = FanSettings(
        name="f",
        east=0.0,
        north=0.0,
        columns=2,
        rows=1,
        many=9.0,
        address="127.0.0.1",
        group="239.255.9.10",
        group_port=47_998,
    )
    command = [sys.executable, "-m", "nearcast.cli.demo.stadium.fan", msgspec.json.encode(settings).decode()]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as child:
        try:
            assert child.stdout is not None
            assert json.loads(child.stdout.readline())["mechanism"] == "PL/SG"
            for pipe in (child.stdin, child.stdout, child.stderr):
                assert pipe is not None
                pipe.close()
            child.wait(PATIENCE)
        finally:
            child.kill()


def fans(group: str) -> list[str]:
    return meeting_at(group, "demo.stadium.fan")


def test_mistakes_are_named_before_anything_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "crowd", "--address", "203.0.113.9"]) == 1
    printed = capsys.readouterr()
    assert ("this machine has no such address" in printed.err, printed.err.count("\n"), printed.out) == (True, 1, "")


@pytest.mark.parametrize("processes", [6, 7, 10, 40])
def test_everybody_has_a_seat_and_a_neighbour_and_few_are_few(processes: int) -> None:
    settings = StandSettings(processes=processes)
    seats = [settings.seat(number) for number in range(processes)]
    assert len(set(seats)) == processes
    assert all(0 < x < settings.columns * 40.0 and 0 < y < settings.rows * 40.0 for x, y in seats)
    assert len({settings.name(number) for number in range(processes)}) == processes
    assert settings.early + 1 < settings.many < processes
