"""How far Spark is, on stderr: the tasks of the stages that are running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nearcast.cli.progress import progress_bar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.progress import Progress, TaskID

_EVERY = 0.25
"""Seconds between two looks at Spark."""


@contextmanager
def task_progress(spark: SparkSession, title: str) -> Iterator[None]:
    """Show a bar as long as the block runs, if there is somebody to look at it."""
    from rich.progress import TimeElapsedColumn

    from nearcast.pipeline.session import is_remote

    with progress_bar("{task.completed:.0f} of {task.total:.0f} tasks", TimeElapsedColumn()) as bar:
        if bar.disable:
            yield
            return
        task = bar.add_task(title, total=0)
        with _told(spark, bar, task) if is_remote(spark) else _watched(spark, bar, task):
            yield


@contextmanager
def _watched(spark: SparkSession, bar: Progress, task: TaskID) -> Iterator[None]:
    """Ask Spark now and then: it is told nothing, and so cannot be slowed down by it."""
    from nearcast.pipeline.session import running_tasks

    over = threading.Event()

    def watch() -> None:
        while not over.wait(_EVERY):
            done, total = running_tasks(spark)
            if total:
                bar.update(task, completed=done, total=total)

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _told(spark: Any, bar: Progress, task: TaskID) -> Iterator[None]:
    """Have Spark Connect tell: it sends how far it is along with the answers."""

    def show(stages: Any, **_: object) -> None:
        known = list(stages or ())
        if known:
            done, total = sum(each.num_completed_tasks for each in known), sum(each.num_tasks for each in known)
            bar.update(task, completed=done, total=total)

    spark.registerProgressHandler(show)
    try:
        yield
    finally:
        spark.removeProgressHandler(show)
