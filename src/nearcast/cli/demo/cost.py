"""What the demo itself costs the machine it runs on."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from typing import Final

_UNIT: Final = 1 if sys.platform == "darwin" else 1024
"""Bytes in which systems count memory."""


class Cost:
    """Asked when all child processes have ended: only then they are counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._began: Final = clock()
        self._ready = 0.0

    def ready(self) -> None:
        """From now on there is something to see."""
        self._ready = self._clock() - self._began

    def words(self) -> str:
        people, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = self._clock() - self._began
        return (
            f"this machine: ready after {self._ready:.1f} s; in {seconds:.0f} s the people took {_busy(people):.0f} s of a core, "
            f"broker and Spark {_busy(others):.0f} s; memory {people.ru_maxrss * _UNIT / 1e6:.0f} MB for the people, "
            f"at most {others.ru_maxrss * _UNIT / 1e6:.0f} MB for one of the others"
        )


def _busy(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime
