"""Who was there: the recorded past of clients, judged by an event's temporal predicate.

Only what can make a difference is read.  How a start before all bounds of the predicate lies to them is all the same, and so are
two such starts; so it is enough to know the clients at that time and what changed since.  Of a client of whom nothing was recorded
since, the present is what was known then.  For the others the journal is read backwards, in ever longer stretches, until the last
word before that time is found.  A predicate that contexts can satisfy which ended before all its bounds asks for everything.
"""

from __future__ import annotations

from collections.abc import Container, Generator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.known_context import PRESENCE_RECORDS, KnownContext, context_attributes
from nearcast.broker.temporal.validity import Validities
from nearcast.errors import OffsetTrimmed
from nearcast.journal import ClientEntry, ContextEntry, Journal, Record, ReportEntry
from nearcast.journal.entries import time_of
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT
from nearcast.model.temporal import expiry, first_that_matters
from nearcast.model.time import LARGEST, Instant
from nearcast.model.values import Value

FIRST_LOOK: Final = 20_000
BEGINNING: Final = 1 - LARGEST


@dataclass(slots=True)
class _Told:
    """What a stretch says of one client, in the end."""

    joined: bool = False
    """A session began there, or one ended: what was before it is no longer."""

    present: bool = False
    """Something is told of a session before."""

    moved: bool = False
    position: Point | None = None
    contexts: dict[str, Mapping[str, Value] | None] = field(default_factory=dict)

    def hear(self, record: Record) -> None:
        match record:
            case ReportEntry():
                self.moved = True
                self.position = None if record.lat is None or record.lon is None else Point(record.lat, record.lon)
            case ContextEntry(name=name) if name == IMPLICIT_CONTEXT:
                self.joined, self.moved, self.position, self.contexts = True, False, None, {}
            case ContextEntry():
                self.contexts[record.name] = None if record.attributes is None else context_attributes(record)
            case ClientEntry(what="joined"):
                self.joined, self.moved, self.position, self.contexts = True, False, None, {}


@dataclass(slots=True)
class _Question:
    """What is not known yet of a client at the beginning of the stretch that matters."""

    known: KnownContext
    position: bool
    names: set[str]

    def answered(self, told: _Told) -> bool:
        """Take what was told just before; whether that was all."""
        if self.position and (told.moved or told.joined):
            self.known.position, self.position = told.position, False
        for name in [name for name in self.names if told.joined or name in told.contexts]:
            self.names.discard(name)
            value = told.contexts.get(name)
            if value is not None:
                self.known.contexts[name] = value
        return not self.position and not self.names


class ContextHistory:
    """One judgement, for a worker thread; the results are there when ``run`` has ended."""

    def __init__(
        self,
        journal: Journal,
        event: Event,
        boundary: int,
        as_of: Instant,
        present: Mapping[str, KnownContext],
        clients: Mapping[str, str],
        interested: Container[str] | None = None,
    ) -> None:
        """Everything below ``boundary`` was recorded by ``as_of``, when ``present`` was known; ``clients`` by their identities.

        Nobody but those who are ``interested`` now matters if all that counts has happened.
        """
        assert event.when is not None
        self._journal: Final = journal
        self._when: Final = event.when
        self._published: Final = event.published
        self._boundary: Final = boundary
        self._as_of: Final = as_of
        self._present: Final = present
        self._clients = clients
        self._interested: Final = interested
        self.validities: Final = Validities(event)
        self.decided: Final[dict[str, Instant]] = {}
        """Of each client to whom the event is relevant, since when."""

        self.due: Final[list[tuple[Instant, str]]] = []
        """When it will be, to others, if they stay."""

        self.ends: Instant | None = None
        """The last instant at which it can become relevant."""

        self.historical = False

    def run(self) -> Generator[None, None, None]:
        self.ends = expiry(self._when)
        self.historical = self.ends is not None and self.ends <= self._published
        yield
        if self.historical and self._interested is not None:
            self._clients = {who: client for who, client in self._clients.items() if client in self._interested}
        since = first_that_matters(self._when)
        if since is None:
            yield from self._judge(BEGINNING, {identity: KnownContext() for identity in self._clients})
        else:
            since = min(since, self._as_of)
            # Bounds that lie in the future leave nothing to read, and those of now next to nothing.
            changed = yield from self._changes(since)
            initially = yield from self._initially(since, changed)
            yield from self._judge(since, initially)
        for count, client in enumerate(list(self.validities.open)):
            passed = self.validities.passed(client, self._as_of)
            self._note(client, passed.at, passed.next)
            if not count % 1_000:
                yield

    def _note(self, client: str, decided: Instant | None, following: Instant | None) -> None:
        if decided is not None:
            self.decided[client] = max(decided, self.decided.get(client, decided))
        if following is not None:
            self.due.append((following, client))

    def _judge(self, since: Instant, initially: Mapping[str, KnownContext]) -> Generator[None, None, None]:
        """``initially`` was known of those of whom something is recorded afterwards; of the others the present is known."""
        for count, (identity, client) in enumerate(self._clients.items()):
            known = initially[identity] if identity in initially else self._present.get(client)
            if known is not None:
                self._step(client, since, known)
            if not count % 1_000:
                yield
        known_by = {identity: known.copy() for identity, known in initially.items()}
        silent = set(initially) if since == BEGINNING else set()
        for chunk in self._read(since):
            for record in chunk:
                who = record.who  # type: ignore[union-attr]
                known = known_by.get(who)
                if known is not None:
                    silent.discard(who)
                    known.apply(record)  # type: ignore[arg-type]
                    self._step(self._clients[who], time_of(record), known)
            yield
        for who in silent & self._clients.keys():
            # Nothing is recorded of it any more: the present has held since before the journal begins.
            self._step(self._clients[who], since + 1, self._present.get(self._clients[who], KnownContext()))

    def _step(self, client: str, at: Instant, known: KnownContext) -> None:
        decided = self.validities.changed(client, at, known).at
        if decided is not None:
            self._note(client, decided, None)

    def _read(self, since: Instant) -> Generator[list[Record], None, None]:
        first = self._journal.oldest
        while True:
            try:
                when = None if since == BEGINNING else since + 1
                for chunk in self._journal.read(first, self._boundary, since=when, kinds=PRESENCE_RECORDS):
                    yield [record for _, record in chunk]
                    first = chunk[-1][0] + 1
            except OffsetTrimmed as error:
                first = error.oldest
            else:
                return

    # What was known when the stretch that matters begins

    def _changes(self, since: Instant) -> Generator[None, None, dict[str, _Told]]:
        """What is told of each client since then, until it began a new session."""
        changes: dict[str, _Told] = {}
        for chunk in self._read(since):
            for record in chunk:
                who = record.who  # type: ignore[union-attr]
                if who in self._clients:
                    told = changes.setdefault(who, _Told())
                    if type(record) is ClientEntry and record.what == "joined":
                        told.joined = True
                    elif not told.joined:
                        told.present = True
                        if type(record) is not ContextEntry or record.name != IMPLICIT_CONTEXT:
                            told.hear(record)
            yield
        return changes

    def _initially(
        self, since: Instant, changes: Mapping[str, _Told]
    ) -> Generator[None, None, dict[str, KnownContext]]:
        known: dict[str, KnownContext] = {}
        questions: dict[str, _Question] = {}
        for identity, told in changes.items():
            if told.joined:
                # The end of the session before deregistered all that it had: what is not told of was not there.
                known[identity] = KnownContext(present=told.present)
            else:
                now = self._present.get(self._clients[identity], KnownContext())
                others = {name: value for name, value in now.contexts.items() if name not in told.contexts}
                known[identity] = KnownContext(None if told.moved else now.position, others, present=True)
            if told.moved or told.contexts:
                questions[identity] = _Question(known[identity], told.moved, set(told.contexts))
        yield from self._look_back(since, questions)
        return known

    def _look_back(self, since: Instant, questions: dict[str, _Question]) -> Generator[None, None, None]:
        """Find the last word before that time."""
        last, size = self._boundary, FIRST_LOOK
        while questions and last > self._journal.oldest:
            first = max(self._journal.oldest, last - size)
            told: dict[str, _Told] = {}
            try:
                for chunk in self._journal.read(first, last, until=since + 1, kinds=PRESENCE_RECORDS):
                    for _, record in chunk:
                        if record.who in questions:  # type: ignore[union-attr]
                            told.setdefault(record.who, _Told()).hear(record)  # type: ignore[union-attr]
                    yield
            except OffsetTrimmed:
                continue
            for identity, each in told.items():
                if questions[identity].answered(each):
                    del questions[identity]
            last, size = first, size * 4
