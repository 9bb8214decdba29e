"""What the demo itself costs the machine it runs on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

_PROCESSES: Final = Path("/proc")
_SESSION: Final = 3
_TIMES: Final = slice(11, 15)
_PAGES: Final = 21
"""Of the fields of ``/proc/PID/stat`` behind the name: whose session it is; its time and that of its children that have ended; its pages."""


class Usage(NamedTuple):
    """Of a process and all that it has started."""

    seconds: float
    """Of one core."""

    bytes: int


def usage(session: int) -> Usage:
    """Of all processes of a session; nothing where the system does not say (it is not Linux)."""
    seconds, pages = 0.0, 0
    for file in _PROCESSES.glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        if int(fields[_SESSION]) == session:
            seconds += sum(map(int, fields[_TIMES])) / os.sysconf("SC_CLK_TCK")
            pages += int(fields[_PAGES])
    return Usage(seconds, pages * os.sysconf("SC_PAGE_SIZE"))


class Cost:
    """Of the people, who are this process, and of the processes beside it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._began: Final = clock()
        self._ready = 0.0
        self._parts: Final[dict[str, Usage]] = {}

    def ready(self) -> None:
        """From now on there is something to see."""
        self._ready = self._clock() - self._began

    def count(self, name: str, session: int) -> None:
        """Before it ends."""
        self._parts[name] = usage(session)

    def words(self) -> str:
        times = os.times()
        parts = [f"the people {times.user + times.system:.0f} s"]
        parts += [f"{name} {used.seconds:.0f} s and {used.bytes / 1e6:.0f} MB" for name, used in self._parts.items()]
        return (
            f"this machine: ready after {self._ready:.1f} s; in {self._clock() - self._began:.0f} s, "
            f"of one core {', '.join(parts)}"
        )
