"""Which events have been here: an event that comes again, by whatever way, is recognised by its id, also after a restart.

Bounded by time.  A publisher's ids are its own: the key of an event is made of both, so that two publishers may count alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from nearcast.journal import Journal, Put
from nearcast.model.time import Instant

TABLE: Final = "federated events"
TAKEN_BACK: Final = "events taken back"
_AT_ONCE: Final = 10_000


class Standing(Enum):
    NEW = "new"
    UNDECIDED = "undecided"  # on its way to the disk
    KNOWN = "known"


@dataclass(slots=True, eq=False)
class EventIds:
    journal: Journal
    now: Callable[[], Instant]
    kept: int
    """Microseconds."""

    table: str = TABLE

    _known: dict[str, Instant] = field(default_factory=dict)
    """In the order in which they came."""

    _undecided: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def standing(self, key: str) -> Standing:
        if key in self._undecided:
            return Standing.UNDECIDED
        return Standing.KNOWN if key in self._known else Standing.NEW

    def begin(self, key: str) -> Put:
        """It is being written, together with this."""
        now = self.now()
        self._known[key] = now
        self._undecided.add(key)
        return Put(self.table, key, now.to_bytes(8, "big"))

    def end(self, key: str, *, failed: bool) -> None:
        self._undecided.discard(key)
        if failed:
            self._known.pop(key, None)

    def load(self) -> None:
        rows = self.journal.load(self.table)
        self._known = {key: int.from_bytes(at, "big") for key, at in sorted(rows.items(), key=lambda row: row[1])}

    def tidy(self) -> None:
        """Forget what nobody will bring again."""
        before, gone = self.now() - self.kept, list[str]()
        for key, at in self._known.items():
            if at >= before or len(gone) >= _AT_ONCE:
                break
            gone.append(key)
        for key in gone:
            del self._known[key]
        if gone:
            self.journal.write(puts=[Put(self.table, key, None) for key in gone])
