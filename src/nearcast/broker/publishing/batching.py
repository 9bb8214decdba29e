"""What comes in one turn of the loop is gathered, and carried out together at its end.

Most of what a single event costs is the way into the matcher, the journal and the connections; many of them go it
together for little more.  Nobody can tell the difference: publishes of quality 0, of quality 1 and position reports are
not mixed, and whatever else is said, or happens by itself, is preceded by ``settle``.  So the order is that of one at a
time; only what stands side by side in it shares its way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.broker.presence import Presence
from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.publishing.qos0_batch import Gathered, Qos0Batch
from nearcast.broker.publishing.qos1_batch import Promised, Qos1Batches
from nearcast.broker.sessions.session import Session
from nearcast.errors import NearcastError
from nearcast.mqtt.positions import PositionReport

FEW: Final = 8
"""Fewer are carried out one by one: the matcher's way for many costs as much as its way for one eight times."""

MOST: Final = 1_024
MOST_BYTES: Final = 256 * 1024
"""As they came: no receiver gets more at once than what a connection lets wait (``connection.HIGH_WATER``)."""

MOST_COPIES: Final = 1_000_000
"""About so many are matched at once: what is for everybody does not go together with so many others."""

log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchingStatistics:
    waiting: int
    bursts: int
    """Of publishes or reports that went together."""
    largest: int


class Batching:
    def __init__(self, publishing: Publishing, presence: Presence, expect: Callable[[], None]) -> None:
        self._publishing: Final = publishing
        self._presence: Final = presence
        self._expect: Final = expect
        """Has ``settle`` called at the end of the turn."""
        self._publishes: list[Gathered] = []
        self._bytes = 0
        self._promised: list[Promised] = []
        self._moves: list[tuple[Session, PositionReport]] = []
        """Only one of the three holds something."""
        self._behind = False
        self._bursts = 0
        self._largest = 0
        self._most = MOST
        """Publishes that go together, as long as they have as many receivers as the last ones."""

        self.few = FEW

    def statistics(self) -> BatchingStatistics:
        waiting = len(self._publishes) + len(self._promised) + len(self._moves)
        return BatchingStatistics(waiting, self._bursts, self._largest)

    @property
    def open(self) -> bool:
        """Whether publishes can be gathered at present: filter schemes are asked event by event."""
        return self._publishing.router.by_itself

    @property
    def behind(self) -> bool:
        """Whether the disk did not keep up when the batching began: whoever brings more should be slowed down."""
        return self._behind

    def publish(self, gathered: Gathered) -> None:
        """A publish of quality 0 in which nothing depends on its publisher, and which may be published."""
        if self._moves or self._promised:
            self.settle()
        waiting = self._publishes
        if not waiting:
            self._begin()
        waiting.append(gathered)
        self._bytes += gathered.size
        if len(waiting) >= self._most or self._bytes > MOST_BYTES:
            self.settle()

    def promise(self, promised: Promised) -> None:
        """A publish of quality 1 that has nothing but a topic, and which may be published."""
        if self._moves or self._publishes:
            self.settle()
        waiting = self._promised
        if not waiting:
            self._begin()
        waiting.append(promised)
        self._bytes += promised.size
        if len(waiting) >= MOST or self._bytes > MOST_BYTES:
            self.settle()

    def move(self, session: Session, report: PositionReport) -> None:
        """A position report of quality 0, already ``judged``."""
        if self._publishes or self._promised:
            self.settle()
        waiting = self._moves
        if not waiting:
            self._begin()
        waiting.append((session, report))
        if len(waiting) >= MOST:
            self.settle()

    def settle(self) -> None:
        """Carry out what has been gathered.  Raises nothing: whoever calls it has nothing to do with what may be wrong."""
        if self._publishes:
            publishes, self._publishes, self._bytes = self._publishes, [], 0
            self._publish(publishes)
        elif self._promised:
            promised, self._promised, self._bytes = self._promised, [], 0
            self._promise(promised)
        elif self._moves:
            moves, self._moves = self._moves, []
            try:
                self._move(moves)
            except Exception:
                log.exception("%d position reports were not carried out, or not all of them", len(moves))

    def _begin(self) -> None:
        self._expect()
        self._behind = self._publishing.journal.is_behind

    def _move(self, moves: Sequence[tuple[Session, PositionReport]]) -> None:
        if len(moves) < self.few:
            self._presence.moved_one_by_one(moves)
        else:
            self._count(len(moves))
            self._presence.moved_together(moves)

    def _publish(self, publishes: list[Gathered]) -> None:
        done = 0
        if len(publishes) >= self.few:
            burst = Qos0Batch(self._publishing, publishes)
            try:
                burst.publish()
            except NearcastError:
                pass  # the journal takes one of them not, or none: each of them will be told
            except Exception:
                log.exception("a burst of %d publishes failed: the rest goes one by one", len(publishes))
            else:
                self._count(len(publishes))
            done = burst.done
            self._most = max(self.few, min(MOST, MOST_COPIES * len(publishes) // max(1, burst.copies)))
        for each in publishes[done:]:
            try:
                each.publish(self._publishing)
            except NearcastError as error:
                each.complain(str(error))
            except Exception:
                log.exception("a publish to %r was not carried out", each.topic)

    def _promise(self, promised: list[Promised]) -> None:
        while promised:
            promises = Qos1Batches(self._publishing, promised)
            try:
                promises.publish()
            except NearcastError as error:
                self._promise_each(promised, error)
                return
            except Exception as error:
                log.exception("publishes of quality 1 failed: the rest goes one by one")
                self._promise_each(promised[promises.taken :], error)
                return
            self._count(promises.taken)
            promised = promised[promises.taken :]

    def _promise_each(self, promised: list[Promised], error: Exception) -> None:
        """The journal takes one of them not, or none: each of them will be told."""
        if len(promised) > 1:
            for each in promised:
                self._promise([each])
        elif promised:
            told = error if isinstance(error, NearcastError) else NearcastError("the broker failed; see its log")
            try:
                promised[0].promiser.refuse(promised[0].packet, told)
            except Exception:  # the others wait for their answers
                log.exception("a publish to %r was not refused", promised[0].topic)

    def _count(self, size: int) -> None:
        self._bursts += 1
        self._largest = max(self._largest, size)
