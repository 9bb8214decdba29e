"""Live messages that wait until a subscription has been given what is stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.publishing.entries import message_in
from nearcast.broker.publishing.message import Message
from nearcast.broker.sessions.session import Session
from nearcast.errors import OffsetTrimmed
from nearcast.journal import EventEntry, Journal

MOST_KEPT: Final = 1_000
"""Messages kept in memory for one subscription; of further ones only the offset is noted, to read them again."""

MOST_NOTED: Final = 100_000
"""Beyond that, messages go to the session at once, whose own limit then decides."""

READ_AT_ONCE: Final = 500


@dataclass(slots=True, eq=False)
class HeldBack:
    """One live message; ``message`` is ``None`` if it is to be read from the journal.

    All subscriptions of the client that asked for it wait for it, and the first that comes to it gives it out for all of them.
    """

    message: Message | None
    offset: int | None
    qos: int
    identifiers: tuple[int, ...]
    near: bool
    retain: bool
    waiting: int
    """So many subscriptions."""

    gone: bool = False
    """It was given out, or never will be."""


@dataclass(slots=True, eq=False, repr=False)
class HeldBackMessages:
    session: Session
    waiting: deque[HeldBack] = field(default_factory=deque)
    dropped: int = 0
    """Of quality 0 and not archived, when memory was full."""

    _kept: int = 0

    def has_room(self) -> bool:
        """Whether it keeps one more message in memory."""
        return self._kept < MOST_KEPT

    def add(self, each: HeldBack) -> None:
        self._kept += each.message is not None
        self.waiting.append(each)

    def withdraw(self, unwanted: set[int]) -> None:
        """Of events that were unpublished, by their offsets."""
        for each in self.waiting:
            if each.offset is not None and each.offset in unwanted:
                self._kept -= each.message is not None
                self.session.give_up(each.offset)
        self.waiting = deque(each for each in self.waiting if each.offset not in unwanted)

    def release(self) -> None:
        """Nobody waits for the stored ones any more: what is in memory goes out, the rest is not owed.

        What another subscription waits for as well goes on waiting for that one.
        """
        while self.waiting and self.session.alive:
            each = self.take()
            each.waiting -= 1
            if each.gone or each.waiting:
                continue
            if each.message is not None:
                self.give(each, each.message)
            else:
                self.give_up(each)

    def give(self, each: HeldBack, message: Message) -> None:
        each.gone = True
        self.session.deliver(message, each.qos, each.identifiers, near=each.near, retain=each.retain)

    def give_up(self, each: HeldBack) -> None:
        each.gone = True
        if each.offset is not None:
            self.session.give_up(each.offset)

    def unread(self) -> list[int]:
        """The offsets of the next ones, if they must be read first."""
        while self.waiting and self.waiting[0].gone:
            self.take()
        offsets: list[int] = []
        for each in self.waiting:
            if each.message is not None or len(offsets) >= READ_AT_ONCE:
                break
            offsets.append(each.offset or 0)
        return offsets

    def take(self) -> HeldBack:
        each = self.waiting.popleft()
        self._kept -= each.message is not None
        return each


def hold_back(
    queues: Sequence[HeldBackMessages],
    message: Message,
    qos: int,
    identifiers: tuple[int, ...],
    near: bool,
    retain: bool,
) -> bool:
    """For subscriptions of one session; whether it was taken, otherwise it goes its usual way."""
    if any(len(each.waiting) >= MOST_NOTED for each in queues):
        return False
    offset, session = message.offset, queues[0].session
    keep = all(each.has_room() for each in queues)
    if not keep and offset is None:
        queues[0].dropped += 1
        return True
    if qos and session.durable and offset is not None:
        # It is owed from now on: a restart must find it, also while it waits here.
        session.pending[offset] = None
    held_back = HeldBack(message if keep else None, offset, qos, identifiers, near, retain, len(queues))
    for each in queues:
        each.add(held_back)
    return True


def read_again(journal: Journal, offsets: list[int]) -> Generator[dict[int, Message], None, None]:
    """The messages at these offsets, for a worker thread; what retention has deleted is left out."""
    wanted = set(offsets)
    try:
        for chunk in journal.read(max(offsets[0], journal.oldest), offsets[-1] + 1, kinds=(EventEntry,)):
            yield {
                offset: message_in(entry, offset)
                for offset, entry in chunk
                if offset in wanted and type(entry) is EventEntry
            }
    except OffsetTrimmed:
        return
