"""Events that are here already, by the ids that their publishers gave them: one that is sent again is not doubled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MOST: Final = 200_000
"""So many are remembered."""

Key = tuple[str, str]
"""The identity of a publisher, and its id."""


@dataclass(slots=True, eq=False)
class RecentIds:
    _known: dict[Key, None] = field(default_factory=dict)

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def add(self, publisher: str, event: str) -> bool:
        """Whether it is new."""
        key = publisher, event
        if key in self._known:
            return False
        self._known[key] = None
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return True

    def forget(self, publisher: str, event: str) -> None:
        """It is not here after all: when it comes again, it is new."""
        self._known.pop((publisher, event), None)
