"""Experiments from their names to their reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

from nearcast.errors import InvalidRecord, UnknownName
from nearcast.experiment.catalogue import EXPERIMENTS
from nearcast.experiment.checks import Outcome, judge
from nearcast.experiment.execution import Failure, Task, Watcher, execute
from nearcast.experiment.experiment import Experiment
from nearcast.experiment.figures.files import save
from nearcast.experiment.figures.style import styled
from nearcast.experiment.parameters import parameters_of
from nearcast.experiment.reports import REPORT, FigureFiles, Report, command_of, folder_of, stored_report
from nearcast.experiment.storage import Result, write_json
from nearcast.guesses import guess

ALL: Final = "all"

Results: TypeAlias = Sequence[tuple[Task, Result | Failure]]


def chosen(name: str) -> tuple[Experiment, ...]:
    """The experiment of that name, or ``all`` of them."""
    if name == ALL:
        return EXPERIMENTS
    found = tuple(each for each in EXPERIMENTS if each.name == name)
    if not found:
        names = [each.name for each in EXPERIMENTS]
        raise UnknownName(f"there is no experiment {name!r}{guess(name, names)}; there are {', '.join(names)}")
    return found


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
    """Run, judge and draw; the report of each is kept in its folder as soon as its last run is over.

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

    def reported(each: Experiment, numbers: list[int], results: Results) -> Report:
        report = _reported(each, numbers, results, folders[each.name], quick=quick, longer=longer)
        write_json(folders[each.name] / REPORT, report)
        return report

    reporting = _Reporting({each.name: partial(reported, each, numbers) for each, numbers, _ in plans}, watcher)
    execute(tasks, jobs=jobs or os.cpu_count() or 1, fresh=fresh, watcher=reporting)
    return reporting.all()


class _Reporting(Watcher):
    """Reports on each experiment when its last run is over: whoever interrupts keeps what is complete."""

    def __init__(self, report: Mapping[str, Callable[[Results], Report]], watcher: Watcher | None) -> None:
        self._report = report
        self._watcher = watcher or Watcher()
        self._reports: dict[str, Report] = {}
        self._error: Exception | None = None

    def begin(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._over: dict[int, Result | Failure] = {}
        self._left = Counter(task.experiment for task in tasks)
        self._watcher.begin(tasks)
        for name in self._report:
            if not self._left[name]:
                self._complete(name)

    def progress(self, number: int, share: float) -> None:
        self._watcher.progress(number, share)

    def done(self, number: int, outcome: Result | Failure, *, reused: bool) -> None:
        self._watcher.done(number, outcome, reused=reused)
        self._over[number] = outcome
        name = self._tasks[number].experiment
        self._left[name] -= 1
        if not self._left[name]:
            self._complete(name)

    def _complete(self, name: str) -> None:
        results = [(task, self._over[at]) for at, task in enumerate(self._tasks) if task.experiment == name]
        try:
            self._reports[name] = self._report[name](results)
        except Exception as error:  # noqa: BLE001 - other runs are under way, and are worth their time
            self._error = self._error or error

    def all(self) -> list[Report]:
        """In the order in which they were asked for."""
        if self._error is not None:
            raise self._error
        return [self._reports[name] for name in self._report]


def read_report(out: Path, experiment: str, *, quick: bool | None = None, longer: int = 1) -> tuple[Report, Path]:
    """The report of an earlier run, and its folder; unless said, of the longest runs: the documents' if there are such."""
    chosen(experiment)
    found = stored_report(out, experiment, quick=quick, longer=longer)
    if found is None:
        raise InvalidRecord(
            f"there is no report of {experiment} in {out / experiment}; "
            f"run it first: {command_of(experiment, quick=bool(quick), longer=longer)} --out {out}"
        )
    return found


def _reported(
    experiment: Experiment,
    seeds: list[int],
    results: Results,
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
            files = save(drawing.draw(outcomes), folder / "figures", drawing.name)
            figures.append(FigureFiles(drawing.name, drawing.caption, *(f"figures/{file}" for file in files)))
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
        version=version("nearcast"),
        finished=max((r.finished for _, r in results if isinstance(r, Result)), default=""),
        runs=[parameters_of(task.run) for task, _ in results if task.seed == seeds[0]],
    )
