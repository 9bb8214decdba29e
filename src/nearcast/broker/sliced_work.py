"""Work that would hold up the loop, done in small steps: one in each turn of it, the sessions in turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.sessions.session import Session

_END: Final = object()
Soon = Callable[[Callable[[], None]], object]
"""Has a function called in the next turn: ``loop.call_soon``."""


@dataclass(slots=True, eq=False)
class SlicedWork:
    soon: Soon
    _waiting: dict[Session, deque[Iterator[object]]] = field(default_factory=dict)

    def begin(self, session: Session, steps: Iterator[object]) -> None:
        """The first step at once: mostly it is the only one.  What a session waits for comes in its order."""
        those = self._waiting.get(session)
        if those is not None:
            those.append(steps)
        elif next(steps, _END) is not _END:
            if not self._waiting:
                self.soon(self._go_on)
            self._waiting[session] = deque([steps])

    def _go_on(self) -> None:
        session = next(iter(self._waiting))
        those = self._waiting.pop(session)
        if next(those[0], _END) is _END:
            those.popleft()
        if those:
            self._waiting[session] = those  # to the end of the line
        if self._waiting:
            self.soon(self._go_on)
