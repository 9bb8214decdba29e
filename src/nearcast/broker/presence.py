"""Where clients are and what their contexts say, as they reported it; kept on disk and through restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.known_context import KnownContext
from nearcast.broker.sessions.session import Session
from nearcast.errors import JournalFailed
from nearcast.journal import ClientEntry, ContextEntry, Journal, LateReportEntry, Put, ReportEntry, Then
from nearcast.matching import Matcher
from nearcast.model.event import Event
from nearcast.model.fixes import FixOrder, FixRules, Treatment
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT
from nearcast.model.presence import Way
from nearcast.model.time import Instant
from nearcast.model.values import Value
from nearcast.mqtt.observations import Consent, consent_in
from nearcast.mqtt.positions import ContextReport, PositionReport, context_in, context_payload

PRESENCE: Final = "presence"


class PresenceRow(msgspec.Struct, frozen=True, array_like=True):
    lat: float | None
    lon: float | None
    contexts: dict[str, bytes]
    accepts: bool
    newest: Instant | None = None
    """Of the times that it said with its positions."""

    fixed: tuple[float, float, Instant] | None = None
    """Where it was last for sure, and when."""

    observable: bytes = b""
    """Who may observe it, as it said; nothing: nobody."""

    recent: tuple[tuple[Instant, float, float], ...] = ()
    """Its newest fixes, to be recognised when they come again; rows of earlier versions have none."""


@dataclass(slots=True, eq=False)
class Present:
    """One client."""

    position: Point | None = None
    contexts: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    fixed: Point | None = None
    """Where it was last for sure: its position, unless that is vague (``model.fixes``)."""

    fixed_at: Instant = 0
    order: FixOrder | None = None
    """Of the times that it says; most say none."""

    consent: Consent | None = None
    """Who may observe it; none: nobody."""


@dataclass(frozen=True, slots=True)
class PresenceStatistics:
    clients: int
    located: int
    contexts: int
    reports: int
    late: int
    duplicates: int
    vague: int


Watch = Callable[[str, Instant], None]
"""Told of every client of which something has changed."""


@dataclass(frozen=True, slots=True)
class Told:
    """What follows from ways that somebody watches: to be written with them, and to be done when that is on disk."""

    puts: Sequence[Put]
    of: Sequence[Session]
    """Whose ways these were."""

    then: Callable[[], None]


Passing = Callable[[Sequence[tuple[Session, Way]]], Told | None]
"""Told of ways in their order, while somebody watches."""


def _nobody(_client: str, _at: Instant) -> None: ...


def _nothing() -> None: ...


def _nothing_of(_client: str) -> None: ...


@dataclass(slots=True, eq=False)
class Presence:
    journal: Journal
    matcher: Matcher
    now: Callable[[], Instant]
    watch: Watch = _nobody
    settle: Callable[[], None] = _nothing
    """Called before anything changes: what was published before is for those who were there then."""

    rules: FixRules = field(default_factory=FixRules)
    """What becomes of reports that say when, and how accurate they are."""

    willing: Callable[[str], None] = _nothing_of
    """Told of every client that begins or ends to take what is addressed to it without a subscription."""

    passing: Passing | None = None
    agreed: Callable[[Session, Consent | None], None] | None = None
    """Told of every client that lets itself be observed by others than before, or by nobody, and what held before."""

    accepting: set[str] = field(default_factory=set)
    """Who takes what is addressed to it without a subscription."""

    _present: dict[str, Present] = field(default_factory=dict)
    _dirty: dict[str, Session] = field(default_factory=dict)
    _reports: int = 0
    _late: int = 0
    _duplicates: int = 0
    _vague: int = 0

    def statistics(self) -> PresenceStatistics:
        everyone = self._present.values()
        return PresenceStatistics(
            len(self._present),
            sum(each.position is not None for each in everyone),
            sum(len(each.contexts) for each in everyone),
            self._reports,
            self._late,
            self._duplicates,
            self._vague,
        )

    @property
    def reports(self) -> int:
        """``statistics().reports``, for who asks often: that counts everybody."""
        return self._reports

    def position(self, client: str) -> Point | None:
        present = self._present.get(client)
        return None if present is None else present.position

    def fixed(self, client: str) -> Point | None:
        """Where it was last for sure."""
        present = self._present.get(client)
        return None if present is None else present.fixed

    def consent(self, client: str) -> Consent | None:
        """Who may observe it; none: nobody."""
        present = self._present.get(client)
        return None if present is None else present.consent

    def fixed_clients(self) -> Iterator[tuple[str, Point]]:
        """Everybody of whom it is known for sure where it was last."""
        return ((client, present.fixed) for client, present in self._present.items() if present.fixed is not None)

    def takes_addressed(self, client: str) -> bool:
        """Whether it takes what is addressed to it without a subscription."""
        return client in self.accepting

    def contexts(self, client: str) -> Mapping[str, Mapping[str, Value]]:
        present = self._present.get(client)
        return {} if present is None else present.contexts

    def known(self, client: str) -> KnownContext:
        """All that is known of a client that has a session, as ``delivery`` asks for it."""
        present = self._present.get(client)
        return (
            KnownContext(present=True)
            if present is None
            else KnownContext(present.position, present.contexts, present=True)
        )

    def addressed(self, client: str, event: Event, *, located: bool) -> bool:
        """Whether one of its contexts is what the event asks for; not ``located``: whether it may be, wherever the client is."""
        return self.known(client).addressed(event, located=located)

    # What clients report

    def judged(self, session: Session, report: PositionReport) -> PositionReport | None:
        """What is left of a report that says when it was made, or how accurate it is (``model.fixes``): nothing, if it moves nobody.

        Of one that does, the time is that which counts, and there is an accuracy only if it is not enough.
        """
        present, now = self._of(session), self.now()
        if present.order is None:
            present.order = FixOrder()
        fix = report.fix
        match present.order.treat(fix, now, self.rules):
            case Treatment.DUPLICATE:
                self._duplicates += 1
                return None
            case Treatment.LATE:
                assert report.time is not None
                self._late += 1
                point = report.point
                late = LateReportEntry(now, session.identity, point.lat, point.lon, report.time, report.accuracy)
                self.journal.write((late,), (self._row(session),))  # it is recognised if it comes again after a fall
                return None
            case Treatment.VAGUE:
                self._vague += 1
                return PositionReport(report.point, None, None, fix.at(now), report.accuracy)
            case _:
                return PositionReport(report.point, None, None, fix.at(now))

    def reported(self, session: Session, report: PositionReport | None, then: Then | None = None) -> None:
        """A position as its client said it; none: it is to be forgotten."""
        self.settle()
        if report is not None and not report.is_plain:
            report = self.judged(session, report)
            if report is None:
                if then is not None:
                    self.journal.write(then=then)  # when what was said before is on disk
                return
        self._move(session, report, then)

    def moved(self, session: Session, position: Point | None, then: Then | None = None) -> None:
        """It is there now."""
        self.settle()
        self._move(session, None if position is None else PositionReport(position), then)

    def _move(self, session: Session, report: PositionReport | None, then: Then | None) -> None:
        present, at = self._of(session), self.now()
        before, left = present.fixed, present.fixed_at
        if report is None:
            present.position = position = None
            if session.client in self.matcher:
                self.matcher.forget_position(session.client)
            present.fixed = present.order = None
        else:
            present.position = position = report.point
            self.matcher.move(session.client, position.lat, position.lon)
            if report.accuracy is None:
                present.fixed = position
                # Time never goes back for whoever is told, even if a client says it sometimes, and sometimes not.
                present.fixed_at = at if report.time is None else max(report.time, present.fixed_at)
        self._reports += 1
        entry = ReportEntry(at, session.identity, *(_degrees(position)))
        told = None
        if self.passing is not None and not (report is not None and report.accuracy is not None):
            told = self.passing(((session, Way(before, left, present.fixed, present.fixed_at if report else at)),))
        if told is None:
            self._write(session, entry, then)
        else:
            self._write_told([entry], told, then)
        self.watch(session.client, at)

    def _write_told(self, entries: Sequence[ReportEntry], told: Told, then: Then | None) -> None:
        """Together with where everybody is: after a restart nothing is told twice of the same way, and nothing never."""

        def written(failed: JournalFailed | None) -> None:
            told.then()  # it has happened, and memory holds it, even if the disk does not
            if then is not None:
                then(failed)

        rows = [self._row(session) for session in told.of]
        self.journal.write(entries, [*rows, *told.puts], written)

    def moved_one_by_one(self, reports: Iterable[tuple[Session, PositionReport]]) -> None:
        """As ``moved_together``, which is worth it for more of them."""
        for session, report in reports:
            self.settle()
            self._move(session, report, None)

    def moved_together(self, reports: Sequence[tuple[Session, PositionReport]]) -> None:
        """Many at once in their order, all of them ``judged``, and nobody waits for the disk."""
        at, dirty = self.now(), self._dirty
        last: dict[str, Point] = {}
        entries = []
        ways: list[tuple[Session, Way]] | None = None if self.passing is None else []
        for session, report in reports:
            client, position = session.client, report.point
            present = self._of(session)
            present.position = position
            if report.accuracy is None:
                time = at if report.time is None else max(report.time, present.fixed_at)
                if ways is not None:
                    ways.append((session, Way(present.fixed, present.fixed_at, position, time)))
                present.fixed, present.fixed_at = position, time
            dirty[client] = session
            last[client] = position
            entries.append(ReportEntry(at, session.identity, position.lat, position.lon))
        # Nobody published anything between two reports of one client: where it was before its last one matters for its way alone.
        points = last.values()
        self.matcher.move_together(list(last), [point.lat for point in points], [point.lon for point in points])
        self._reports += len(entries)
        told = self.passing(ways) if self.passing is not None and ways else None
        if told is None:
            self.journal.write(entries)
        else:
            self._write_told(entries, told, None)
        for client in last:
            self.watch(client, at)

    def registered(
        self, session: Session, name: str, attributes: Mapping[str, Value] | None, then: Then | None = None
    ) -> None:
        """A context, or none of that name any more."""
        self.settle()
        present = self._of(session)
        if attributes is not None:
            self.matcher.register_context(session.client, name, attributes)
            present.contexts[name] = dict(attributes)
        elif present.contexts.pop(name, None) is not None:
            self.matcher.deregister_context(session.client, name)
        at = self.now()
        self._write(
            session, ContextEntry(at, session.identity, name, None if attributes is None else _packed(attributes)), then
        )
        self.watch(session.client, at)

    def accepts(self, session: Session, accepts: bool, then: Then | None = None) -> None:
        """Whether it takes what is addressed to it without a subscription."""
        self.settle()
        if accepts:
            self.accepting.add(session.client)
        else:
            self.accepting.discard(session.client)
        self.matcher.accept_addressed(session.client, accepts)
        entry = ClientEntry(self.now(), session.identity, "accepting" if accepts else "declining")
        self._write(session, entry, then)
        self.willing(session.client)

    def observable(self, session: Session, consent: Consent, then: Then | None = None) -> None:
        """Who may observe it."""
        self.settle()
        present = self._of(session)
        before, present.consent = present.consent, None if consent.is_empty else consent
        if self.agreed is not None and present.consent != before:
            self.agreed(session, before)
        self.journal.write((), (self._row(session),), then)

    def forget(self, session: Session) -> list[Put]:
        """Its session is over: the contexts are deregistered with it (product.md)."""
        self.settle()
        self._dirty.pop(session.client, None)
        self.accepting.discard(session.client)
        at = self.now()
        known = self._present.get(session.client)
        if self.passing is not None and known is not None and known.fixed is not None:
            told = self.passing(((session, Way(known.fixed, known.fixed_at, None, at)),))
            if told is not None:
                self.journal.write((), told.puts, lambda _failed: told.then())
        present = self._present.pop(session.client, None) or Present()
        # The last one says that nothing is known any more, not even that it is there.
        entries = [ContextEntry(at, session.identity, name, None) for name in (*present.contexts, IMPLICIT_CONTEXT)]
        gone = [ReportEntry(at, session.identity, None, None)] if present.position is not None else []
        self.journal.write([*gone, *entries])
        self.watch(session.client, at)
        return [Put(PRESENCE, session.client, None)]

    def _of(self, session: Session) -> Present:
        present = self._present.get(session.client)
        if present is None:
            present = self._present[session.client] = Present()
        return present

    # On disk

    def _write(self, session: Session, entry: ReportEntry | ContextEntry | ClientEntry, then: Then | None) -> None:
        if then is None:
            # Nobody waits for it: the row follows with the next flush, once for many reports.
            self._dirty[session.client] = session
            self.journal.write((entry,))
        else:
            self.journal.write((entry,), (self._row(session),), then)

    def flush(self) -> None:
        changed, self._dirty = self._dirty, {}
        if changed:
            self.journal.write(puts=[self._row(session) for session in changed.values() if session.durable])

    def _row(self, session: Session) -> Put:
        return Put(PRESENCE, session.client, self.packed(session) if session.durable else None)

    def packed(self, session: Session) -> bytes:
        """All that is known of a client."""
        present = self._of(session)
        contexts = {name: _packed(attributes) for name, attributes in present.contexts.items()}
        order = present.order or FixOrder()
        row = PresenceRow(
            *_degrees(present.position),
            contexts,
            session.client in self.accepting,
            order.newest,
            None if present.fixed is None else (present.fixed.lat, present.fixed.lon, present.fixed_at),
            b"" if present.consent is None else present.consent.payload(),
            tuple((said, point.lat, point.lon) for said, point in order.recent),
        )
        return msgspec.msgpack.encode(row)

    def load(self, sessions: Mapping[str, Session]) -> None:
        """After a restart: as it was last reported."""
        for client, data in self.journal.load(PRESENCE).items():
            if client not in sessions:
                self.journal.write(puts=(Put(PRESENCE, client, None),))
                continue
            self._take(client, data)

    def take_over(self, session: Session, data: bytes) -> None:
        """What another broker knew of the client (``packed``)."""
        self.settle()
        self._take(session.client, data)
        present, at = self._of(session), self.now()
        reports = [ReportEntry(at, session.identity, *_degrees(present.position))] if present.position else []
        contexts = [
            ContextEntry(at, session.identity, name, _packed(attributes))
            for name, attributes in present.contexts.items()
        ]
        self.journal.write([*reports, *contexts], [self._row(session)])
        self.watch(session.client, at)

    def _take(self, client: str, data: bytes) -> None:
        row = msgspec.msgpack.decode(data, type=PresenceRow)
        present = self._present[client] = Present()
        if row.lat is not None and row.lon is not None:
            present.position = Point(row.lat, row.lon)
            self.matcher.move(client, row.lat, row.lon)
            if row.newest is not None:
                recent = tuple((said, Point(lat, lon)) for said, lat, lon in row.recent)
                present.order = FixOrder(row.newest, recent or ((row.newest, present.position),))
        if row.fixed is not None:
            present.fixed, present.fixed_at = Point(*row.fixed[:2]), row.fixed[2]
        consent = consent_in(row.observable)
        present.consent = None if consent.is_empty else consent
        for name, text in row.contexts.items():
            present.contexts[name] = _unpacked(text)
            self.matcher.register_context(client, name, present.contexts[name])
        if row.accepts:
            self.accepting.add(client)
            self.matcher.accept_addressed(client)


def _degrees(position: Point | None) -> tuple[float | None, float | None]:
    return (None, None) if position is None else (position.lat, position.lon)


def _packed(attributes: Mapping[str, Value]) -> bytes:
    return context_payload(ContextReport(attributes))


def _unpacked(data: bytes) -> Mapping[str, Value]:
    report = context_in(data)
    assert report is not None
    return report.attributes
