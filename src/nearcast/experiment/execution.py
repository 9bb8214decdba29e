"""Running the runs: several at a time, each in a process of its own, and none that has been run before."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import active_children, get_context
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any, Final

from nearcast.experiment.measures import Measures, computed
from nearcast.experiment.measuring import measure
from nearcast.experiment.runs import Computed, Run
from nearcast.experiment.storage import Result, keep, kept_recording, kept_result, making, recording, result_file
from nearcast.scenario.simulation import simulate

POLL: Final = 0.2
"""Seconds between two looks at how far runs are."""


@dataclass(frozen=True, slots=True)
class Task:
    """One run with one seed, and the folder of its experiment."""

    experiment: str
    run: Run | Computed
    seed: int
    folder: Path

    @property
    def title(self) -> str:
        return f"{self.experiment} {self.run.name}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that did not come to its end."""

    task: Task
    reason: str


class Watcher:
    """Is told how far everything is; this one does not care."""

    def begin(self, tasks: Sequence[Task]) -> None:
        """So much is to be done."""

    def progress(self, number: int, share: float) -> None:
        """The task of that number is so far, 0 to 1."""

    def done(self, number: int, outcome: Result | Failure, *, reused: bool) -> None:
        """The task of that number is over."""


def execute(
    tasks: Sequence[Task], *, jobs: int, fresh: bool = False, watcher: Watcher | None = None
) -> list[Result | Failure]:
    """The result of each task, in their order; ``fresh`` repeats what has been run before."""
    watcher = watcher or Watcher()
    watcher.begin(tasks)
    results: dict[int, Result | Failure] = {}
    for number, task in enumerate(tasks):
        kept = None if fresh else kept_result(task.folder, task.seed, task.run)
        if kept is not None:
            results[number] = kept
            watcher.done(number, kept, reused=True)
    waiting = [number for number in range(len(tasks)) if number not in results]
    # The longest first: a long one at the end would keep one core waiting for the other.
    waiting.sort(key=lambda number: -tasks[number].run.seconds)
    if jobs == 1 or len(waiting) < 2:
        for number in waiting:
            outcome = _attempt(tasks[number], fresh, _teller(number, watcher.progress))
            results[number] = outcome
            watcher.done(number, outcome, reused=False)
    else:
        for number, outcome in _in_processes(tasks, waiting, min(jobs, len(waiting)), fresh, watcher):
            results[number] = outcome
            watcher.done(number, outcome, reused=False)
    return [results[number] for number in range(len(tasks))]


def _in_processes(
    tasks: Sequence[Task], waiting: Sequence[int], jobs: int, fresh: bool, watcher: Watcher
) -> Iterator[tuple[int, Result | Failure]]:
    # Spawned, not forked: numba's and Arrow's threads do not survive a fork.
    context = get_context("spawn")
    with context.Manager() as manager:
        told = manager.Queue()
        with _pool(jobs, context) as pool:
            futures: dict[Future[Result | Failure], int] = {
                pool.submit(_work, number, tasks[number], fresh, told): number for number in waiting
            }
            while futures:
                finished, _ = wait(futures, timeout=POLL, return_when=FIRST_COMPLETED)
                while not told.empty():
                    watcher.progress(*told.get())
                for future in finished:
                    yield futures.pop(future), future.result()


@contextmanager
def _pool(jobs: int, context: SpawnContext) -> Iterator[ProcessPoolExecutor]:
    """Whoever interrupts does not want to wait for runs, neither for those that wait nor for those under way."""
    others = set(active_children())
    pool = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(active_children()) - others:
            worker.terminate()
        raise
    pool.shutdown()


def _work(number: int, task: Task, fresh: bool, told: Any) -> Result | Failure:
    return _attempt(task, fresh, _teller(number, lambda *progress: told.put(progress)))


def _teller(number: int, tell: Callable[[int, float], None]) -> Callable[[float, float], None]:
    """Tells of every hundredth, not of every simulated second."""
    last = 0

    def progress(done: float, total: float) -> None:
        nonlocal last
        if (percent := int(100 * done / total)) > last:
            last = percent
            tell(number, percent / 100)

    return progress


def _attempt(task: Task, fresh: bool, progress: Callable[[float, float], None]) -> Result | Failure:
    try:
        return run_one(task, fresh=fresh, progress=progress)
    except Exception as error:  # noqa: BLE001 - one run that fails must not take the others along
        return Failure(task, f"{type(error).__name__}: {error}")


def run_one(task: Task, *, fresh: bool, progress: Callable[[float, float], None] | None = None) -> Result:
    """Simulate and measure; an earlier recording that is still right is only measured again."""
    started, run = time.process_time(), task.run
    if isinstance(run, Computed):
        measures = computed(run.numbers(task.seed))
    else:
        measures = _recorded_and_measured(task, run, fresh, progress)
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    result = Result(making(run, task.seed), round(time.process_time() - started, 3), measures, finished)
    keep(task.folder, run, result)
    return result


def _recorded_and_measured(
    task: Task, run: Run, fresh: bool, progress: Callable[[float, float], None] | None
) -> Measures:
    out = recording(task.folder, task.seed, run.name)
    if fresh or not kept_recording(task.folder, task.seed, run):
        out.parent.mkdir(parents=True, exist_ok=True)
        # From here on the earlier result is no longer that of the recording beside it.
        result_file(task.folder, task.seed, run.name).unlink(missing_ok=True)
        simulate(run.scenario, task.seed, out=out, overwrite=True, progress=progress)
    return measure(run, out)
