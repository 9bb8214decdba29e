"""The real clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nearcast.model.time import Instant
from nearcast.runtime.ports import Clock


class LiveClock(Clock):
    """Wall time when it was made, and from then on the seconds that really passed.

    So it never jumps, whoever sets the machine's clock meanwhile; the next run follows the new time.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, monotonic: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._monotonic: Final = monotonic
        self._offset: Final = wall() - monotonic()

    def now(self) -> Instant:
        return (self._monotonic() + self._offset) // 1_000
