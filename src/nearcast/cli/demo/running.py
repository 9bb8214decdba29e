"""How a demo runs: until it ends, or until somebody ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Ctrl-C and SIGTERM end it in good order: neither a process nor a folder stays behind."""
    import uvloop

    async def interruptible() -> T:
        task = asyncio.current_task()
        assert task is not None
        # Not left to the runner, which keeps its hands off SIGINT if it finds another handler (PySpark sets one that raises at once).
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        return await work

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(interruptible())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """One clear line: where one person's connection fails, others' do too."""
    inner = group.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
