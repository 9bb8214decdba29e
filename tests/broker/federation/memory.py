"""What a journal keeps, without a disk: writes are decided later, and a crash loses those that were not."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from nearcast.errors import JournalFailed
from nearcast.journal import Put, Record, Then


class MemoryJournal:
    def __init__(self) -> None:
        self.tables: dict[str, dict[str, bytes]] = {}
        self._waiting: deque[tuple[Sequence[Put], Then | None]] = deque()
        self.head = 0

    def write(self, records: Sequence[Record] = (), puts: Sequence[Put] = (), then: Then | None = None) -> int:
        self._waiting.append((puts, then))
        self.head += len(records)
        return self.head - len(records)

    def commit(self, *, failed: bool = False) -> bool:
        """Decide the oldest write; whether there was one."""
        if not self._waiting:
            return False
        puts, then = self._waiting.popleft()
        for put in () if failed else puts:
            table = self.tables.setdefault(put.table, {})
            if put.value is None:
                table.pop(put.key, None)
            else:
                table[put.key] = put.value
        if then is not None:
            then(JournalFailed("the disk is full") if failed else None)
        return True

    def crash(self) -> None:
        self._waiting.clear()

    def load(self, table: str) -> dict[str, bytes]:
        return dict(self.tables.get(table, {}))
