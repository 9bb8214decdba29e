"""Experiments from their names to their reports."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from nearcast.errors import InvalidRecord, UnknownName
from nearcast.experiment.catalogue import EXPERIMENTS
from nearcast.experiment.checks import CheckResult, Outcome, judge
from nearcast.experiment.execution import Failure, Task, Watcher, execute
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.figures.files import save
from nearcast.experiment.figures.style import styled
from nearcast.experiment.storage import Result, write_json
from nearcast.guesses import guess

ALL: Final = "all"
REPORT: Final = "report.json"


class FigureFiles(msgspec.Struct, frozen=True):
    """One figure in both forms; paths are relative to the folder of the report."""

    name: str
    caption: str
    png: str
    svg: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment brought."""

    experiment: str
    document: str
    title: str
    quick: bool
    longer: int = 1
    """How many times as long quick runs were in which nothing changes."""

    seeds: list[int]
    checks: list[CheckResult]
    figures: list[FigureFiles]
    failures: dict[str, str]
    """Runs that did not come to their end, and why."""

    seconds: dict[str, float]
    """Of a processor, that each run took with its measuring."""

    def to_json(self, folder: Path) -> dict[str, Any]:
        """The document of the contract; ``folder`` is where the report lies."""
        return {
            "experiment": self.experiment,
            "document": self.document,
            "title": self.title,
            "quick": self.quick,
            "longer": self.longer,
            "seeds": self.seeds,
            "checks": [check.to_json() for check in self.checks],
            "figures": [str(folder / path) for figure in self.figures for path in (figure.png, figure.svg)],
            "failures": self.failures,
            "seconds": self.seconds,
            "records": str(folder),
        }


def chosen(name: str) -> tuple[Experiment, ...]:
    """The experiment of that name, or ``all`` of them."""
    if name == ALL:
        return EXPERIMENTS
    found = tuple(each for each in EXPERIMENTS if each.name == name)
    if not found:
        names = [each.name for each in EXPERIMENTS]
        raise UnknownName(f"there is no experiment {name!r}{guess(name, names)}; there are {', '.join(names)}")
    return found


def folder_of(out: Path, experiment: str, *, quick: bool, longer: int = 1) -> Path:
    form = "quick" if quick else "full"
    return out / experiment / (form if longer == 1 else f"{form}-{longer}-times")


def run(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    quick: bool = False,
    longer: int = 1,
    seeds: int | None = None,
    jobs: int | None = None,
    fresh: bool = False,
    watcher: Watcher | None = None,
) -> list[Report]:
    """Run, judge and draw; the report of each is kept in its folder.

    ``longer``: so many times as long, where nothing changes.
    """
    with styled():
        pass  # whoever lacks matplotlib should not learn that after hours of simulation
    plans = [
        (each, list(range(1, 1 + (seeds or (1 if quick else each.seeds)))), each.all_runs(quick, longer))
        for each in experiments
    ]
    folders = {each.name: folder_of(out, each.name, quick=quick, longer=longer) for each in experiments}
    tasks = [
        Task(each.name, one, seed, folders[each.name])
        for each, numbers, runs in plans
        for seed in numbers
        for one in runs
    ]
    results = execute(tasks, jobs=jobs or os.cpu_count() or 1, fresh=fresh, watcher=watcher)
    reports = []
    for each, numbers, _ in plans:
        of_this = [(task, result) for task, result in zip(tasks, results, strict=True) if task.experiment == each.name]
        report = _reported(each, numbers, of_this, folders[each.name], quick=quick, longer=longer)
        write_json(folders[each.name] / REPORT, report)
        reports.append(report)
    return reports


def read_report(out: Path, experiment: str, *, quick: bool | None = None, longer: int = 1) -> tuple[Report, Path]:
    """The report of an earlier run, and its folder; unless said, the one with the documents' durations if there is one."""
    chosen(experiment)
    forms = (False, True) if quick is None else (quick,)
    folders = [folder_of(out, experiment, quick=short, longer=longer) for short in forms]
    for folder in folders:
        try:
            return msgspec.json.decode((folder / REPORT).read_bytes(), type=Report), folder
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidRecord(f"{folder / REPORT} cannot be read: {error}") from None
    wanted = " or ".join(str(folder) for folder in folders)
    raise InvalidRecord(
        f"there is no report of {experiment} in {wanted}; run it first: nearcast experiment run {experiment} --out {out}"
    )


def _reported(
    experiment: Experiment,
    seeds: list[int],
    results: Sequence[tuple[Task, Result | Failure]],
    folder: Path,
    *,
    quick: bool,
    longer: int,
) -> Report:
    outcomes: list[Outcome] = [
        {
            task.run.name: result.measures
            for task, result in results
            if task.seed == seed and not isinstance(result, Failure)
        }
        for seed in seeds
    ]
    failures = {f"seed {task.seed}, {task.run.name}": r.reason for task, r in results if isinstance(r, Failure)}
    figures = []
    for drawing in experiment.drawings:
        if all(set(drawing.runs) <= set(outcome) for outcome in outcomes):
            png, svg = save(drawing.draw(outcomes), folder / "figures", drawing.name)
            figures.append(FigureFiles(drawing.name, drawing.caption, f"figures/{png}", f"figures/{svg}"))
    return Report(
        experiment=experiment.name,
        document=experiment.document,
        title=experiment.title,
        quick=quick,
        longer=longer,
        seeds=seeds,
        checks=[
            judge(check, outcomes, failed=[f"{run}: {why}" for run, why in failures.items()])
            for check in experiment.checks
        ],
        figures=figures,
        failures=failures,
        seconds={f"seed {task.seed}, {task.run.name}": r.seconds for task, r in results if isinstance(r, Result)},
    )
