"""One thread for what takes long: reading and judging the past.

Work is a generator that is advanced step by step on that thread, in turns with the others: a step is a chunk of the journal, so
nobody waits for the whole past of somebody else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
END: Final[Any] = object()


@dataclass(frozen=True, slots=True)
class BackgroundStatistics:
    works: int
    """Under way."""

    steps: int
    """Since the start."""


class Background:
    def __init__(self) -> None:
        # One thread: what a step opened (a connection of SQLite) may only be used, and closed, by the thread that opened it.
        self._pool: Final = ThreadPoolExecutor(1, "nearcast-past")
        self._works: Final[set[Work[Any]]] = set()
        self._steps = 0

    def statistics(self) -> BackgroundStatistics:
        return BackgroundStatistics(len(self._works), self._steps)

    def start(self, generator: Generator[T, None, None]) -> Work[T]:
        work = Work(self, generator)
        self._works.add(work)
        return work

    async def step(self, work: Work[T]) -> T:
        """What it yields next, or ``END``."""
        self._steps += 1
        return await asyncio.get_running_loop().run_in_executor(self._pool, next, work.generator, END)

    def end(self, work: Work[Any]) -> None:
        if work in self._works:
            self._works.discard(work)
            with contextlib.suppress(RuntimeError):  # after the end of everything
                self._pool.submit(work.generator.close)

    def close(self) -> None:
        """Ends all work, at the end of the step that is being taken; before the journal is closed."""
        for work in list(self._works):
            self.end(work)
        self._pool.shutdown()


class Work(Generic[T]):
    __slots__ = ("_background", "generator")

    def __init__(self, background: Background, generator: Generator[T, None, None]) -> None:
        self._background: Final = background
        self.generator: Final = generator

    async def next(self) -> T | None:
        """What the next step yields; ``None``: there are no more."""
        done = await self._background.step(self)
        return None if done is END else done

    async def finish(self) -> None:
        """Take all steps."""
        while await self._background.step(self) is not END:
            pass

    def close(self) -> None:
        """It is not needed any more."""
        self._background.end(self)
