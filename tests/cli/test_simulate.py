"""``nearcast simulate``: what people type, and what they see."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.waiting import wait_until

from nearcast.cli import main
from nearcast.records.reader import read as read_records

COMMAND = Path(sys.executable).with_name("nearcast")
QUICK = ["--set", "clients.number=10", "--set", "run.duration=3 s"]


def test_the_summary_is_one_json_document_with_rows_and_hashes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "rnd-waypoint", "--seed", "3", "--json", *QUICK]) == 0
    output = capsys.readouterr()
    summary = json.loads(output.out)
    assert (summary["seed"], summary["simulated_seconds"], summary["counts"]["clients"]) == (3, 3.0, 10)
    assert summary["tables"]["events"]["rows"] == summary["counts"]["events"] > 0
    assert all(len(table["sha256"]) == 64 for table in summary["tables"].values())
    assert output.err == ""


def test_the_records_are_where_they_were_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert main(["simulate", "rnd-waypoint", "--out", str(out), *QUICK]) == 0
    assert f"recorded in {out}" in capsys.readouterr().out.replace("\n", "")
    assert read_records(out, "events").num_rows > 0
    assert main(["simulate", "rnd-waypoint", "--out", str(out), *QUICK]) == 1  # not over an earlier recording
    assert "overwrite" in capsys.readouterr().err
    assert main(["simulate", "rnd-waypoint", "--out", str(out), "--overwrite", *QUICK]) == 0


def test_a_log_of_one_run_is_the_workload_of_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "rnd-waypoint", "--json", "--log", str(tmp_path / "log.csv"), *QUICK]) == 0
    first = json.loads(capsys.readouterr().out)
    replay = f'workload=[{{kind = "log", file = "{tmp_path / "log.csv"}"}}]'
    assert main(["simulate", "rnd-waypoint", "--json", *QUICK, "--set", replay]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["counts"]["events"] == first["counts"]["events"] > 0
    assert second["tables"]["positions"] == first["tables"]["positions"]
    assert second["counts"]["notifications"] == first["counts"]["notifications"]


def test_a_replay_is_the_same_also_for_clients_that_fail_and_return(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    churn = ["--set", "clients.number=20", "--set", "run.duration=40 s", "--set", "population.interruptions.share=1"]
    churn += ["--set", "population.interruptions.online=uniform 5 s .. 10 s"]
    churn += ["--set", "population.interruptions.offline=uniform 1 s .. 5 s"]
    assert main(["simulate", "rnd-waypoint", "--json", "--log", str(tmp_path / "log.csv"), *churn]) == 0
    first = json.loads(capsys.readouterr().out)
    replay = f'workload=[{{kind = "log", file = "{tmp_path / "log.csv"}"}}]'
    assert main(["simulate", "rnd-waypoint", "--json", *churn, "--set", replay]) == 0
    second = json.loads(capsys.readouterr().out)
    assert second["counts"]["events"] == first["counts"]["events"] > 400
    for table in ("clients", "subscriptions", "reports", "notifications", "messages"):
        assert second["tables"][table] == first["tables"][table], table


def test_the_scenario_is_shown_explained_and_reads_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "ar-darmstadt", "--show", "--set", "clients.number=12"]) == 0
    shown = capsys.readouterr().out
    assert "number = 12  # how many there are" in shown
    (tmp_path / "shown.toml").write_text(shown)
    assert main(["simulate", str(tmp_path / "shown.toml"), "--show"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["simulate", str(tmp_path / "shown.toml"), "--show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == tomllib.loads(shown)


def test_the_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--list"]) == 0
    assert "city-10000" in capsys.readouterr().out
    assert main(["simulate", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lcn"] == "LCN 2016, Table I"


def test_a_title_may_look_like_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "rnd-waypoint", *QUICK, "--set", "run.title='[/red] alert'"]) == 0
    assert "[/red] alert" in capsys.readouterr().out


def test_a_terminal_sees_how_far_it_is(tmp_path: Path) -> None:
    """Only a terminal gets the bar, so only a terminal can show that it can be drawn, from before the start on."""
    terminal, end = pty.openpty()
    command = [str(COMMAND), "simulate", "rnd-waypoint", "--json", *QUICK]
    with (tmp_path / "summary").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=end, env=os.environ | {"TERM": "xterm"})
    os.close(end)
    said = b""
    # A terminal whose other end is closed is not at its end, but an error.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 4096):
            said += part
    os.close(terminal)
    assert process.wait(timeout=60) == 0, said.decode()
    assert b"0 of 3 s simulated" in said
    assert json.loads((tmp_path / "summary").read_text())["simulated_seconds"] == 3.0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 2, "--list shows what there is"),
        (["rnd-waypoint", "--set", "clients"], 2, "write KEY=VALUE"),
        (["rnd-wayponit"], 1, "did you mean 'rnd-waypoint'?"),
        (["no/such/file.toml"], 1, "there is no such file"),
        (["rnd-waypoint", "--set", "mobility.speed=5 s"], 1, "a speed such as"),
        (["rnd-waypoint", "--log", "log.txt", *QUICK], 1, "ends in .csv or .jsonl"),
        (["rnd-waypoint", "--log", "no/such/folder/log.csv", *QUICK], 1, "cannot be written"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["simulate", *arguments]) == status
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""
    assert output.err.count("\n") == 1


def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [str(COMMAND), "simulate", "rnd-waypoint", "--out", str(out), "--set", "run.duration=1 d"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(out.rglob("*.parquet")) or process.poll() is not None)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "nearcast: interrupted\n")
    assert not list(tmp_path.rglob("*.parquet"))
