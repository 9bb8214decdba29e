"""What every broker knows: where clients are at home, which topics are wanted where.

A table of which every broker has a copy: of each key the newest version counts, and of equal ones that of the later author.  What is
new goes along the tree; a new neighbour is told everything; and neighbours that know different things although nothing moves find
out by their digests.  Versions are counted, not read from a clock.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.federation.wire import Notice, Notices, Summary
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending

AT_ONCE: Final = 500
"""Notices in one message, at most."""

REMOVED: Final = 3_600 * MICROSECONDS
"""For so long removals are remembered."""

Heard = Callable[[Notice], None]


def _nobody(_notice: Notice) -> None: ...


def digest_of(notice: Notice) -> int:
    """Removals do not count: one forgets them earlier than another."""
    if not notice.value:
        return 0
    text = f"{notice.key}\0{notice.version}\0{notice.author}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


@dataclass(slots=True, eq=False)
class NoticeBoard:
    me: str
    send: Callable[[Address, Message], Sending]
    now: Callable[[], Instant]
    heard: Heard = _nobody
    """Told of what others say, after it was taken in."""

    _notices: dict[str, Notice] = field(default_factory=dict)
    _removed: deque[tuple[Instant, Notice]] = field(default_factory=deque)
    _neighbours: tuple[Address, ...] = ()
    _digest: int = 0
    _differs: dict[Address, tuple[int, int]] = field(default_factory=dict)
    _again: dict[Address, None] = field(default_factory=dict)
    """Neighbours to whom something could not be said: they will be told everything."""

    def __len__(self) -> int:
        return len(self._notices)

    def __iter__(self) -> Iterator[Notice]:
        return iter(self._notices.values())

    def get(self, key: str) -> Notice | None:
        return self._notices.get(key)

    def post(self, key: str, value: bytes, *, least: int = 1) -> Notice:
        """Say something newer than all that is known of that key."""
        known = self._notices.get(key)
        notice = Notice(key, max(least, 1 if known is None else known.version + 1), self.me, value)
        self._take(notice)
        self._tell([notice], None)
        return notice

    def take(self, notice: Notice) -> bool:
        """What was known before a restart: nobody is told."""
        return self._take(notice)

    def remove(self, key: str) -> None:
        """There is nothing to say of it any more; for a while that is remembered, so that nothing older comes back."""
        self.post(key, b"")

    # From neighbours

    def hear(self, sender: Address, message: Notices | Summary) -> None:
        if isinstance(message, Summary):
            self._compare(sender, message.digest)
            return
        new = [notice for notice in message.notices if self._take(notice)]
        gone = [
            known
            for notice in message.notices
            if notice.value and (known := self._notices[notice.key]) != notice and not known.value
        ]
        if gone:
            self._say(sender, gone)
        if new:
            self._tell(new, sender)
            for notice in new:
                self.heard(notice)

    def _take(self, notice: Notice) -> bool:
        known = self._notices.get(notice.key)
        if known is not None:
            if (known.version, known.author) >= (notice.version, notice.author):
                return False
            self._digest ^= digest_of(known)
        self._notices[notice.key] = notice
        self._digest ^= digest_of(notice)
        if not notice.value:
            self._removed.append((self.now(), notice))
        return True

    def _forget_removals(self) -> None:
        before = self.now() - REMOVED
        while self._removed and self._removed[0][0] < before:
            _, notice = self._removed.popleft()
            if self._notices.get(notice.key) is notice:
                del self._notices[notice.key]

    def _tell(self, notices: list[Notice], came_from: Address | None) -> None:
        for neighbour in self._neighbours:
            if neighbour != came_from:
                self._say(neighbour, notices)

    def _say(self, neighbour: Address, notices: Iterable[Notice]) -> None:
        some = list(notices)
        for first in range(0, len(some), AT_ONCE):
            message = Notices(tuple(some[first : first + AT_ONCE]))
            if self.send(neighbour, message) is Sending.DROPPED:
                self._again[neighbour] = None
                return

    def _all(self) -> list[Notice]:
        return [notice for notice in self._notices.values() if notice.value]

    def _compare(self, neighbour: Address, theirs: int) -> None:
        """What differs may be on its way; what differs twice in the same way is told."""
        if theirs == self._digest:
            self._differs.pop(neighbour, None)
        elif self._differs.get(neighbour) != (theirs, self._digest):
            self._differs[neighbour] = theirs, self._digest
        else:
            del self._differs[neighbour]
            self._say(neighbour, self._all())

    # The tree

    def tree_changed(self, neighbours: Iterable[Address]) -> None:
        self._neighbours = tuple(sorted(neighbours))
        self._differs.clear()

    def joined(self, neighbour: Address) -> None:
        self._say(neighbour, self._all())

    def tick(self) -> None:
        self._forget_removals()
        again, self._again = self._again, {}
        for neighbour in self._neighbours:
            if neighbour in again:
                self._say(neighbour, self._all())
            self.send(neighbour, Summary(self._digest))
