"""Experiments from the command line to their reports, on runs of ten seconds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from nearcast.cli import main
from nearcast.errors import InvalidRecord
from nearcast.experiment import campaign, execution, storage
from nearcast.experiment.checks import Check, Part, at_least, at_most
from nearcast.experiment.execution import Watcher
from nearcast.experiment.experiment import Drawing, Experiment
from nearcast.experiment.figures.boxes import recall_and_precision
from nearcast.experiment.runs import Run, scenario
from nearcast.experiment.values import precision, recall
from nearcast.scenario import simulation

COMMAND = Path(sys.executable).with_name("nearcast")


def small(name: str, kind: str) -> Run:
    changes: dict[str, Any] = {
        "run.duration": "10 s",
        "clients.number": 20,
        "scheme": {"kind": kind},
        "world": {"kind": "plain", "width": "300 m", "height": "300 m"},
        "mobility": {"model": "waypoint"},
    }
    return Run(name, scenario("ar-darmstadt", changes), window=2.0, settling=2.0, maps=True)


def changing() -> Run:
    """Changes its scheme in the middle."""
    run = small("changing", "RADIAL")
    table = [{"at": "5 s", "scheme": {"kind": "GRID"}}]
    changed = scenario("ar-darmstadt", {**_tables(run), "transition": table})
    return replace(run, scenario=changed, phases=("RADIAL", "GRID"), transitions=True)


def _tables(run: Run) -> dict[str, Any]:
    return tomllib.loads(run.scenario.to_toml())


TINY = Experiment(
    "tiny",
    "no document, section 0",
    "Two runs that take no time",
    lambda _quick: (changing(), small("grid", "GRID")),
    (
        Check("X1", "RADIAL finds nearly all", "text", (Part("recall", at_least(0.9), recall("changing", "RADIAL")),)),
        Check("X2", "GRID is as precise as can be", "text", (Part("precision", at_least(2.0), precision("grid")),)),
        Check(
            "X3",
            "shown in a figure",
            "figure",
            (Part("recall", at_most(1.0), recall("grid")),),
            not_checkable="only in figure 1",
        ),
    ),
    (
        Drawing(
            "boxes",
            "Boxes",
            ("grid",),
            lambda outcomes: recall_and_precision({"GRID": [each["grid"].phase("all").delivery for each in outcomes]}),
        ),
    ),
    seeds=1,
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "EXPERIMENTS", (TINY,))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign that has been made before."""
    out = tmp_path_factory.mktemp("finished")
    assert not campaign.run([TINY], out, quick=True, jobs=1)[0].failures
    return out


@pytest.fixture
def made(finished: Path, tmp_path: Path) -> Path:
    """A copy of it to work in."""
    return shutil.copytree(finished, tmp_path / "made")


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Scheme and seed of the runs that are simulated from now on."""
    seen: list[str] = []
    simulate = simulation.simulate

    def counted(wanted: Any, seed: int, **rest: Any) -> Any:
        seen.append(f"{wanted.scheme.word} {seed}")
        return simulate(wanted, seed, **rest)

    monkeypatch.setattr(execution, "simulate", counted)
    return seen


def run(out: Path, *arguments: str) -> int:
    return main(["experiment", "run", "tiny", "--out", str(out), "--jobs", "1", *arguments])


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_report_is_one_json_document(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(made, "--json", "--quick") == 0  # though a check deviates: that is a result, too
    found = document(capsys)
    assert (found["experiment"], found["seeds"]) == ("tiny", [1])
    assert {check["id"]: check["verdict"] for check in found["checks"]} == {
        "X1": "reproduced",
        "X2": "deviates",
        "X3": "not checkable",
    }
    for check in found["checks"]:
        assert set(check) >= {"id", "stated", "measured", "basis", "verdict", "why"}
    assert found["records"] == str(made / "tiny" / "quick")
    assert (Path(found["records"]) / "seed-1" / "grid" / "_recording.json").exists()
    assert len(found["figures"]) == 2 * len(TINY.drawings)
    assert all(Path(figure).stat().st_size > 1000 for figure in found["figures"])


def test_a_run_is_made_once_unless_asked_for_again(
    made: Path, capsys: pytest.CaptureFixture[str], simulated: list[str]
) -> None:
    assert run(made, "--json", "--quick") == 0
    first = document(capsys)
    assert simulated == []
    assert run(made, "--json", "--quick", "--fresh") == 0
    assert sorted(simulated) == ["GRID 1", "RADIAL 1"]
    again = document(capsys)
    assert again["finished"] >= first["finished"]
    assert {**again, "seconds": {}, "finished": ""} == {**first, "seconds": {}, "finished": ""}


def test_a_report_says_when_and_how_it_was_made(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(made, "--json", "--quick") == 0
    found = document(capsys)
    assert found["version"] == version("nearcast")
    assert found["command"] == "nearcast experiment run tiny --quick --seeds 1"
    finished = datetime.fromisoformat(found["finished"])
    assert finished.utcoffset() == timedelta(0)
    report, folder = campaign.read_report(made, "tiny")
    assert [(each.name, each.kind) for each in report.runs] == [("changing", "simulated"), ("grid", "simulated")]
    assert report.runs[1].parameters["scheme.kind"] == "GRID"
    assert report.runs[1].parameters["measured.settling"] == "2 s"
    assert all((folder / figure.csv).exists() for figure in report.figures)


def test_whoever_interrupts_keeps_the_reports_that_are_complete(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(made / "tiny" / "quick" / "seed-1" / "grid")
    (made / "tiny" / "quick" / "report.json").unlink()
    other = replace(TINY, name="other", runs=lambda _quick: (replace(changing(), name="late"),), checks=(), drawings=())
    simulate = simulation.simulate

    def interrupted(wanted: Any, seed: int, **rest: Any) -> Any:
        if rest["out"].name == "late":
            raise KeyboardInterrupt
        return simulate(wanted, seed, **rest)

    monkeypatch.setattr(execution, "simulate", interrupted)
    # Runs of the same length take place in the order in which they were asked for.
    with pytest.raises(KeyboardInterrupt):
        campaign.run([TINY, other], made, quick=True, jobs=1)
    assert campaign.read_report(made, "tiny")[0].checks
    assert not (made / "other" / "quick" / "report.json").exists()


def test_a_report_that_fails_does_not_take_the_others_along(
    made: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_outcomes: Any) -> Any:
        raise ZeroDivisionError("a figure of nothing")

    broken = replace(TINY, name="broken", runs=lambda _quick: (), checks=(), drawings=(Drawing("x", "", (), failing),))
    (made / "tiny" / "quick" / "report.json").unlink()
    with pytest.raises(ZeroDivisionError, match="a figure of nothing"):
        campaign.run([broken, TINY], made, quick=True, jobs=1)
    assert campaign.read_report(made, "tiny")[0].checks
    assert simulated == []


def test_the_longest_runs_are_reported_unless_said_otherwise(made: Path) -> None:
    for name in ("quick-3-times", "quick-12-times", "quick-many-times"):
        shutil.copytree(made / "tiny" / "quick", made / "tiny" / name)
    assert campaign.read_report(made, "tiny")[1].name == "quick-12-times"
    assert campaign.read_report(made, "tiny", quick=True)[1].name == "quick"
    assert campaign.read_report(made, "tiny", quick=True, longer=3)[1].name == "quick-3-times"
    shutil.copytree(made / "tiny" / "quick", made / "tiny" / "full")
    assert campaign.read_report(made, "tiny")[1].name == "full"


def test_what_only_shows_results_is_no_part_of_them() -> None:
    parts = {
        "experiment/site/layout.py": "nothing",
        "experiment/figures/lines.py": "nothing",
        "cli/app.py": "nothing",
        "experiment/measuring.py": "measuring",
        "experiment/steam/cost.py": "measuring",
        "model/delivery.py": "simulation",
        "files.py": "simulation",
    }
    assert {name: storage._part_of(Path(name)) for name in parts} == parts


def test_another_seed_is_another_run(made: Path, simulated: list[str]) -> None:
    assert run(made, "--quick", "--seeds", "2") == 0
    assert sorted(simulated) == ["GRID 2", "RADIAL 2"]


def test_another_scenario_is_not_taken_for_the_same(
    made: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(TINY, runs=lambda _quick: (changing(), small("grid", "STE")))
    monkeypatch.setattr(campaign, "EXPERIMENTS", (other,))
    assert run(made, "--quick") == 0
    assert simulated == ["STE 1"]


def test_other_code_is_not_taken_for_the_same(
    made: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_digest", lambda *, measuring: f"that of tomorrow, {measuring}")
    assert run(made, "--quick") == 0
    assert sorted(simulated) == ["GRID 1", "RADIAL 1"]


def test_what_is_measured_otherwise_is_measured_again_but_not_simulated(
    made: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(TINY, runs=lambda _quick: (changing(), replace(small("grid", "GRID"), settling=4.0)))
    monkeypatch.setattr(campaign, "EXPERIMENTS", (other,))
    before = campaign.read_report(made, "tiny")[0].checks[2]
    assert run(made, "--quick") == 0
    assert simulated == []
    assert campaign.read_report(made, "tiny")[0].checks[2] != before


def test_a_result_whose_recording_is_gone_or_another_is_made_again(made: Path, simulated: list[str]) -> None:
    seeds = made / "tiny" / "quick" / "seed-1"
    shutil.rmtree(seeds / "grid")
    shutil.copytree(seeds / "changing", seeds / "grid")
    assert run(made, "--quick") == 0
    shutil.rmtree(seeds / "changing")
    assert run(made, "--quick") == 0
    assert simulated == ["GRID 1", "RADIAL 1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "kill", "status", "said"),
    [(signal.SIGINT, os.killpg, 130, ["nearcast: interrupted"]), (signal.SIGTERM, os.kill, 143, [])],
    ids=["interrupted", "terminated"],
)
def test_an_interruption_ends_all_processes_at_once(
    sent: signal.Signals, kill: Callable[[int, int], None], status: int, said: list[str], tmp_path: Path
) -> None:
    command = [str(COMMAND), "experiment", "run", "bypass-e1", "--jobs", "2", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        # Runs of 25 minutes are under way as soon as there are folders for two of them.
        under_way = "bypass-e1/full/seed-*/*/_unfinished"
        wait_until(lambda: len(list(tmp_path.glob(under_way))) >= 2 or process.poll() is not None)
        assert process.poll() is None
        kill(process.pid, sent)  # a terminal sends to the whole group, whoever terminates to the process alone
        assert process.wait() == status
        assert process.stderr is not None
        assert process.stderr.read().splitlines() == said
    wait_until(lambda: not _lives(process.pid))


def _lives(group: int) -> bool:
    """Whether there is still a process of that group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_same_seeds_bring_the_same_checks_and_figures(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = []
    for out in (made, tmp_path / "other"):
        assert run(out, "--json", "--quick", "--seeds", "2") == 0
        found.append(document(capsys))
    assert found[0]["seeds"] == [1, 2]
    assert found[0]["checks"] == found[1]["checks"]
    assert found[0]["checks"][0]["parts"][0]["deviation"] is not None
    for one, other in zip(found[0]["figures"], found[1]["figures"], strict=True):
        assert Path(one).read_bytes() == Path(other).read_bytes(), one


def test_longer_makes_runs_longer_in_which_nothing_changes_and_keeps_them_apart(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: dict[str, float] = {}
    simulate = simulation.simulate

    def seeing(wanted: Any, seed: int, **rest: Any) -> Any:
        lengths[rest["out"].name] = wanted.run.duration
        return simulate(wanted, seed, **rest)

    monkeypatch.setattr(execution, "simulate", seeing)
    assert run(made, "--json", "--quick", "--longer", "2") == 0
    found = document(capsys)
    folder = made / "tiny" / "quick-2-times"
    assert (found["longer"], found["records"]) == (2, str(folder))
    assert lengths == {"changing": 10.0, "grid": 20.0}
    assert campaign.read_report(made, "tiny", quick=True)[0].longer == 1, "the other report is still there"
    assert main(["experiment", "report", "tiny", "--out", str(made), "--quick", "--longer", "2"]) == 0
    assert "quick, 2 times as long" in capsys.readouterr().out


def test_only_quick_runs_can_be_longer(made: Path, simulated: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(made, "--longer", "2") == 2
    assert "--longer is for quick runs" in capsys.readouterr().err
    assert simulated == []


@pytest.mark.slow
def test_processes_bring_what_one_alone_brings(finished: Path, tmp_path: Path) -> None:
    together = campaign.run([TINY], tmp_path, quick=True, jobs=2)[0]
    assert not together.failures
    assert together.checks == campaign.read_report(finished, "tiny")[0].checks


def test_a_run_that_fails_leaves_its_checks_open_and_the_others_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = simulation.simulate

    def failing(wanted: Any, seed: int, **rest: Any) -> Any:
        if wanted.scheme.word == "GRID":
            raise InvalidRecord("the disk is full")
        return simulate(wanted, seed, **rest)

    monkeypatch.setattr(execution, "simulate", failing)
    assert run(tmp_path, "--json", "--quick") == 1
    output = capsys.readouterr()
    verdicts = {check["id"]: check["verdict"] for check in json.loads(output.out)["checks"]}
    assert verdicts == {"X1": "reproduced", "X2": "not run", "X3": "not run"}
    assert "the disk is full" in output.err.splitlines()[-1]


def test_a_run_that_changes_its_scheme_too_seldom_is_a_failure(made: Path) -> None:
    other = replace(TINY, runs=lambda _quick: (replace(changing(), phases=("a", "b", "c")),))
    report = campaign.run([other], made, quick=True, jobs=1)[0]
    assert "changed its scheme 1 times instead of 2" in report.failures["seed 1, changing"]


def test_without_matplotlib_nothing_is_run(
    tmp_path: Path, simulated: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(tmp_path, "--quick") == 1
    assert simulated == []


def test_progress_goes_to_whoever_watches(made: Path) -> None:
    seen: list[Any] = []

    class Seeing(Watcher):
        def begin(self, tasks: Any) -> None:
            seen.append(len(tasks))

        def progress(self, number: int, share: float) -> None:
            assert 0.0 < share <= 1.0

        def done(self, number: int, outcome: Any, *, reused: bool) -> None:
            seen.append((number, reused))

    campaign.run([TINY], made, quick=True, seeds=2, jobs=1, watcher=Seeing())
    assert seen == [4, (0, True), (1, True), (2, False), (3, False)]


def test_a_report_is_read_again_and_becomes_a_page(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "report", "tiny", "--out", str(made)]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("reproduced", "deviates", "not checkable", "only in figure 1"))
    page = (made / "tiny" / "quick" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == len(TINY.drawings)
    assert "RADIAL finds nearly all" in page
    assert main(["experiment", "report", "tiny", "--out", str(made), "--json"]) == 0
    assert document(capsys)["page"].endswith("report.html")


def test_without_a_run_there_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "report", "tiny", "--out", str(tmp_path)]) == 1
    assert "nearcast experiment run tiny" in capsys.readouterr().err


def test_a_report_that_cannot_be_read_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "tiny" / "full" / "report.json"
    broken.parent.mkdir(parents=True)
    broken.write_text("{")
    assert main(["experiment", "report", "tiny", "--out", str(tmp_path)]) == 1
    assert str(broken) in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["run", "tinny"], ["report", "tinny"], ["run"], ["run", "tiny", "--seeds", "0"], ["run", "tiny", "--jobs", "0"]],
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_name_that_is_nearly_right_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "run", "tinny"]) == 2
    assert "did you mean 'tiny'" in capsys.readouterr().err


def test_all_experiments_are_one_document(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "run", "all", "--quick", "--json", "--jobs", "1", "--out", str(made)]) == 0
    found = document(capsys)
    assert [each["experiment"] for each in found["experiments"]] == ["tiny"]


def test_the_list_says_what_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "list", "--json"]) == 0
    listed = document(capsys)
    assert {"lcn", "bypass-e1", "bypass-a4"} <= {each["name"] for each in listed}
    for each in listed:
        assert set(each) == {"name", "document", "title", "checks"}
        assert all(check["id"] and check["stated"] for check in each["checks"])
    assert main(["experiment", "list"]) == 0
    assert "bypass-e3" in capsys.readouterr().out
