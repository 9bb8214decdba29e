"""Answers from outside: events of the past that a job found for clients, each delivered once however often it is handed in.

That a key was seen to is written in the same commit as the delivery it stands for, with whom it is owed to; only then is it sent,
and only then is who handed it in told so.  So whoever gets no answer may ask again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.answer_rows import Answer
from nearcast.broker.on_disk import decision
from nearcast.broker.publishing.entries import Owed, message_in
from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.sessions.sessions import Sessions
from nearcast.errors import JournalFailed, QuotaExceeded
from nearcast.journal import DeliveryEntry, EventEntry, Journal, Put
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.topic import topic_matches

ANSWERED: Final = "answered"
"""The table of keys that were seen to, with the instant."""

QOS: Final = 1
"""Stored events come with quality 1 at most."""

KEPT: Final = 7 * 86_400 * MICROSECONDS
"""For so long a key is remembered: nobody tries the same batch again after a week."""

_TIDY_EVERY: Final = 3_600 * MICROSECONDS
_AT_ONCE: Final = 500
"""Deliveries of one write, and of one turn of the loop."""

_MOST_WAITING: Final = 8


@dataclass(frozen=True, slots=True)
class _Copy:
    """What one client gets."""

    session: Session
    qos: int
    identifiers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnsweringStatistics:
    outcomes: Mapping[str, int]
    """``delivered``, ``repeated``, ``absent``, ``unpublished``, ``expired``, ``denied``; since the start."""


@dataclass(slots=True, eq=False, repr=False)
class Answering:
    journal: Journal
    sessions: Sessions
    withdrawn: set[int]
    """Offsets of events that were unpublished."""

    now: Callable[[], Instant]
    _outcomes: Counter[str] = field(default_factory=Counter)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: int = 0
    _tidied: Instant = 0

    def statistics(self) -> AnsweringStatistics:
        return AnsweringStatistics(dict(self._outcomes))

    async def give(self, answers: Sequence[Answer]) -> Counter[str]:
        """Deliver what was not delivered yet; what became of how many.  When this returns, all of it is on disk."""
        if self._waiting >= _MOST_WAITING or self.journal.is_behind:
            raise QuotaExceeded("more answers are on their way than the broker can take; hand them in again later")
        self._waiting += 1
        try:
            # One after the other: of two that hand in the same key, the second learns what became of it.
            async with self._turn:
                return await self._give(answers)
        finally:
            self._waiting -= 1

    async def _give(self, answers: Sequence[Answer]) -> Counter[str]:
        await self._tidy()
        by_key = {answer.key: answer for answer in answers}
        known = await asyncio.to_thread(self.journal.known, ANSWERED, list(by_key))
        fresh = [answer for key, answer in by_key.items() if key not in known]
        outcomes = +Counter({"repeated": len(answers) - len(fresh)})
        by_identity = self.sessions.by_identity()
        for start in range(0, len(fresh), _AT_ONCE):
            outcomes += await self._some(fresh[start : start + _AT_ONCE], by_identity)
        self._outcomes += outcomes
        return outcomes

    async def _some(self, answers: Sequence[Answer], by_identity: Mapping[str, Session]) -> Counter[str]:
        outcomes: Counter[str] = Counter()
        groups: defaultdict[tuple[int, str, tuple[tuple[str, str], ...]], list[tuple[Answer, _Copy]]]
        groups = defaultdict(list)
        for answer in answers:
            copy = self._copy(answer, by_identity.get(answer.client))
            if isinstance(copy, str):
                outcomes[copy] += 1
            else:
                outcomes["delivered"] += 1
                groups[answer.offset, answer.event, answer.properties].append((answer, copy))
        await self._write([answer.key for answer in answers], list(groups.values()))
        return outcomes

    def _copy(self, answer: Answer, session: Session | None) -> _Copy | str:
        """What the client gets, or why it gets nothing."""
        if answer.offset in self.withdrawn:
            return "unpublished"
        if answer.lifetime is not None and answer.published + answer.lifetime <= self.now():
            return "expired"
        if session is None or not session.alive or (session.connection is None and not session.durable):
            return "absent"
        held = _asking(session, answer)
        if not held and not session.may_receive(answer.topic):
            return "denied"
        identifiers = tuple(number for each in held for number in each.identifiers)
        return _Copy(session, min(QOS, max((each.qos for each in held), default=QOS)), identifiers)

    async def _write(self, keys: Sequence[str], groups: list[list[tuple[Answer, _Copy]]]) -> None:
        at = self.now()
        puts = [Put(ANSWERED, key, at.to_bytes(8, "big")) for key in keys]
        entries = [DeliveryEntry(at, group[0][0].offset, _entry(group)) for group in groups]
        decided, tell = decision()

        def then(failed: JournalFailed | None) -> None:
            # Here, and not behind the wait: whoever handed it in may have gone.
            for offset, (entry, group) in enumerate(zip(entries, groups, strict=True), first):
                if failed is None:
                    self._send(offset, entry, group)
                else:
                    for _, copy in group:
                        copy.session.give_up(offset)
            tell(failed)

        first = self.journal.write(entries, puts, then)
        for offset, group in enumerate(groups, first):
            for _, copy in group:
                if copy.session.durable and copy.qos:
                    copy.session.owe(offset)
        await decided

    def _send(self, offset: int, entry: DeliveryEntry, group: list[tuple[Answer, _Copy]]) -> None:
        message = message_in(entry.event, offset)
        message.of = entry.of
        for _, copy in group:
            if entry.of in self.withdrawn or not copy.session.alive:
                copy.session.give_up(offset)
            else:
                copy.session.deliver(message, copy.qos, copy.identifiers, near=False)

    async def _tidy(self) -> None:
        """Forget keys that nobody will bring again."""
        now = self.now()
        if now < self._tidied + _TIDY_EVERY:
            return
        self._tidied = now
        oldest = (now - KEPT).to_bytes(8, "big")
        stored = await asyncio.to_thread(self.journal.load, ANSWERED)
        gone = [Put(ANSWERED, key, None) for key, at in stored.items() if at < oldest]
        if gone:
            self.journal.write(puts=gone)


def _asking(session: Session, answer: Answer) -> list[Held]:
    """The subscriptions that it is for."""
    if answer.subscription is not None:
        held = session.held.get(answer.subscription)
        return [] if held is None else [held]
    return [
        each
        for each in session.held.values()
        if each.group is None and topic_matches(each.subscription.topic, answer.topic)
    ]


def _entry(group: list[tuple[Answer, _Copy]]) -> EventEntry:
    """What is to be delivered, as it goes out: nothing is worked out anew after a restart."""
    answer = group[0][0]
    owed: list[Owed] = [
        (copy.session.identity, copy.qos, False, copy.identifiers)
        for _, copy in group
        if copy.session.durable and copy.qos
    ]
    return EventEntry(
        answer.event,
        answer.topic,
        answer.published,
        answer.payload,
        qos=QOS,
        receivers=tuple(copy.session.identity for _, copy in group),
        lifetime=answer.lifetime,
        user_properties=answer.properties,
        owed=tuple(owed),
    )
