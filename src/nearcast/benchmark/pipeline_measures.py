"""What is measured beside time: memory of all processes of a Spark session, and how evenly its tasks were cut."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE: Final = 0.25


class PeakMemory:
    """The largest memory of this process and all its descendants together; what they share is counted once."""

    def __init__(self) -> None:
        self.bytes = 0
        self.of: dict[tuple[str, str], int] = {}
        """The same while something of that name was running."""
        self._running: tuple[str, str] | None = None
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._watching, daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    @contextmanager
    def during(self, name: tuple[str, str]) -> Iterator[None]:
        """Count what is used within the block for that name, too."""
        self._running = name
        try:
            yield
        finally:
            self._look()  # also at what takes less than a pause
            self._running = None

    def _watching(self) -> None:
        while not self._ended.wait(_PAUSE):
            self._look()

    def _look(self) -> None:
        name, now = self._running, sum(map(_proportional, _family(os.getpid())))
        self.bytes = max(self.bytes, now)
        if name is not None:
            self.of[name] = max(self.of.get(name, 0), now)


def _family(root: int) -> list[int]:
    found = [root]
    for process in found:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:  # it has ended
                continue
    return found


def _proportional(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def slowest_over_median(spark: SparkSession, tasks: int, run: Callable[[], Any]) -> float:
    """Run something, and say how many times as long as the median its slowest task took, in its last stage of that many tasks."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no door to what tasks took
    store = context.statusStore()
    run()
    context.listenerBus().waitUntilEmpty()  # what tasks took is told to the store by and by
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    assert gateway is not None
    quantiles = gateway.new_array(gateway.jvm.double, 2)
    quantiles[0], quantiles[1] = 0.5, 1.0
    stages = store.stageList(None, False, False, quantiles, None)
    last = max(
        (stages.apply(i) for i in range(stages.size()) if stages.apply(i).numCompleteTasks() == tasks),
        key=lambda stage: stage.stageId(),
    )
    times = store.taskSummary(last.stageId(), last.attemptId(), quantiles).get().executorRunTime()
    return float(times.apply(1)) / max(1.0, float(times.apply(0)))
