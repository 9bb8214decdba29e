"""Who is told of whom: ways come in, and whoever watches and may know gets a notice of what happened on them (``model.presence``).

Permission is looked at when there is something to tell.  What somebody may not know leaves no trace at all: no answer, no count and no
error depends on it, only the notice does not come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from nearcast.broker.observation.happenings import CROSS, ENTER, LEAVE, MOMENT, MOMENTS, STAY, Particular, in_order
from nearcast.broker.observation.notices import Notices, Telling
from nearcast.broker.observation.stays import Later, Stays
from nearcast.broker.observation.watches import Moving, Passed, Step, Watch, Watches
from nearcast.broker.presence import Presence, Told
from nearcast.broker.sessions.session import Held, Session
from nearcast.broker.sessions.sessions import Sessions
from nearcast.journal import Journal, Put
from nearcast.matching.fences import Passages
from nearcast.model.evaluation import evaluate
from nearcast.model.presence import Kind, Stay, Way, stays_on
from nearcast.model.time import Instant, to_text
from nearcast.mqtt.observations import Consent

APPEARED: Final = {"reason": "appeared"}
GONE: Final = {"reason": "gone"}
NOWHERE: Final = Way(None, 0, None, 0)


class Audit(Protocol):
    """Whoever keeps account of who observes whom."""

    def observing(self, observer: Session, held: Held) -> None:
        """It asks to be told of others."""

    def notified(self, observer: Session, who: str, kind: str, at: Instant) -> None:
        """It is told of this one."""


@dataclass(frozen=True, slots=True)
class ObservationStatistics:
    watches: int
    fences: int
    notices: int
    """Told so far."""

    waiting: int
    """On disk, for observers that have not confirmed them."""


class Observation:
    def __init__(
        self, journal: Journal, sessions: Sessions, presence: Presence, now: Callable[[], Instant], later: Later
    ) -> None:
        self._journal: Final = journal
        self._sessions: Final = sessions
        self._presence: Final = presence
        self._now: Final = now
        self._watches: Final = Watches()
        self._notices: Final = Notices(journal)
        self._stays: Final = Stays(journal, self._watches, now, later, self.tick)
        self._told = 0
        self._loading = False
        self._closed = False
        self.audit: Audit | None = None
        presence.agreed = self.agreed

    def statistics(self) -> ObservationStatistics:
        return ObservationStatistics(len(self._watches), self._watches.fences, self._told, self._notices.kept)

    # Observers

    def subscribe(self, session: Session, held: Held) -> None:
        watch = Watch.of(session, held)
        around = self._watches.is_around
        self._watches.add(watch)
        self._presence.passing = self.moved
        if self.audit is not None:
            self.audit.observing(session, held)
        if watch.anchor is not None and not self._loading:
            self._place(None if not around else watch.anchor)
        if watch.wanted.stay is not None and not self._loading:
            # Whoever is there already stays from now on: what was before, nobody asked for.
            puts = [put for client, _ in self._presence.fixed_clients() for put in self._begin_stay(watch, client)]
            self._write(puts)

    def unsubscribe(self, session: Session, held: Held) -> None:
        watch = self._watches.remove((session.client, held.subscription.id))
        if watch is not None:
            self._write(self._stays.drop(watch))
        if not len(self._watches):
            self._presence.passing = None

    def forget(self, session: Session) -> list[Put]:
        """Its session is over; what is to be written for that."""
        return self._notices.over(session)

    def load(self) -> None:
        """After a restart, when sessions and subscriptions are back: go on."""
        self._loading = False
        if self._watches.is_around:
            self._place(None)
        self._stays.load()
        self._notices.load(self._sessions.all)

    def begin_loading(self) -> None:
        self._loading = True

    def close(self) -> None:
        """Before the journal is closed."""
        self._closed = True

    # Those observed

    def agreed(self, session: Session, before: Consent | None) -> None:
        """A client lets others observe it than before."""
        client, consent = session.client, self._presence.consent(session.client)
        puts: list[Put] = []
        for watch in self._watches.staying:
            observer = watch.session
            if observer.client == client:
                continue
            may, might = self._consents(consent, observer), self._consents(before, observer)
            if may != might:
                # Whoever may know of it now is told of nothing that was before: a visit begins with the permission.
                puts += self._stays.set(watch, client, None)
                puts += self._begin_stay(watch, client) if may else ()
        self._write(puts)
        if self._watches.is_around:
            self._watches.stands(client, NOWHERE, observable=False)  # how it came there is from before
            self._place(client)
        if before is not None:
            for observer_name in self._notices.observers_of(client):
                other = self._sessions.all.get(observer_name)
                if other is not None and observer_name != client and not self._permits(other, client):
                    self._notices.withdraw(other, client)

    def _consents(self, consent: Consent | None, observer: Session) -> bool:
        return consent is not None and consent.permits(observer.client, self._sessions.users.get(observer.client))

    def _begin_stay(self, watch: Watch, client: str) -> list[Put]:
        position = self._presence.fixed(client)
        if client in watch.stays or position is None or not self._is_open(client):
            return []
        if not watch.wanted.area.covers(position):
            return []
        puts = self._stays.set(watch, client, Stay(self._now()))
        self._stays.arm()
        return puts

    def _place(self, client: str | None) -> None:
        """Say where a client stands, or everybody."""
        if client is None:
            everybody = list(self._presence.fixed_clients())
        else:
            position = self._presence.fixed(client)
            everybody = [] if position is None else [(client, position)]
            if position is None:
                self._watches.stands(client, NOWHERE, observable=False)
        for each, point in everybody:
            self._watches.stands(each, Way(None, 0, point, 0), observable=self._is_open(each))

    def _is_open(self, client: str) -> bool:
        """Whether anybody may be told of it: others, or itself."""
        return self._presence.consent(client) is not None or self._watches.watches_anything(client)

    def silence(self, client: str) -> None:
        """Nobody is told any more of what that client did."""
        for other in self._sessions:
            self._notices.withdraw(other, client)

    def _permits(self, observer: Session, who: str) -> bool:
        if observer.client == who:
            return True
        if not self._consents(self._presence.consent(who), observer):
            return False
        return observer.rights is None or observer.rights.may_observe

    # Ways

    def moved(self, steps: Sequence[Step]) -> Told | None:
        """Ways in their order: tell of them what is to be told, or say what is to be written first."""
        steps = [step for step in steps if self._concerns(*step)]
        if not steps:
            return None
        found: list[Particular] = []
        puts: list[Put] = []
        moving, passed = Moving.of(steps), None
        for each in self._watches.covering(steps):
            self._pass(steps, each, found, puts)
        if moving is not None:
            for each in self._watches.passed(moving):
                self._pass(steps, each, found, puts)
            passed = self._watches.passages(moving)
        if self._watches.is_around:
            for number, (session, way) in enumerate(steps):
                self._meet(number, session.client, way, found)
        self._stays.arm()
        return self._tell(steps, moving, passed, found, puts)

    def _concerns(self, session: Session, way: Way) -> bool:
        """Whether anybody may be told of it."""
        known = way.before is not None or way.after is not None
        return known and (self._is_open(session.client) or self._watches.is_anchor(session.client))

    def _pass(self, steps: Sequence[Step], passed: Passed, found: list[Particular], puts: list[Put]) -> None:
        number, watch, visits = passed
        session, way = steps[number]
        wanted, who = watch.wanted, session.client
        if wanted.who is not None and wanted.who != who:
            return
        more = APPEARED if way.before is None else GONE if way.after is None else None
        for entered, left in visits:  # as ``passages_of``, of which each makes objects
            if entered > 0.0:
                found.append(Particular(number, entered, ENTER, watch, who, "enter", None, more))
            if left < 1.0:
                found.append(Particular(number, left, LEAVE, watch, who, "leave", None, more))
                if entered > 0.0:
                    found.append(Particular(number, left, CROSS, watch, who, "cross", None, more))
        if wanted.stay is not None:
            stays, visit = stays_on(visits, way, wanted.stay, watch.stays.get(who))
            for share, at in stays:
                since = {"since": to_text(at - wanted.stay)}
                found.append(Particular(number, share, STAY, watch, who, "stay", None, since))
            puts += self._stays.set(watch, who, visit)

    def _meet(self, number: int, client: str, way: Way, found: list[Particular]) -> None:
        reason = APPEARED if way.before is None else GONE if way.after is None else {}
        for met in self._watches.met(number, client, way, observable=self._is_open(client)):
            watch = met.watch
            if watch.wanted.who is not None and watch.wanted.who != met.who:
                continue
            more = {"near": watch.anchor, "metres": watch.wanted.metres, **reason}
            for share, moment in ((passage.share, MOMENT[passage.kind.value]) for passage in met.passages):
                place = None if met.who == client else met.other.at(way.at(share))
                found.append(Particular(number, share, moment, watch, met.who, "near", place, more))

    def _tell(
        self,
        steps: Sequence[Step],
        moving: Moving | None,
        passed: Passages[Watch] | None,
        found: Sequence[Particular],
        puts: list[Put],
    ) -> Told | None:
        telling = Telling(self._notices)
        audit = self.audit
        watches: Sequence[Watch | None] = () if passed is None else passed.keys
        current, who, permitted = -1, "", dict[Session, bool]()
        noted = set[tuple[Session, int]]()
        for number, moment, fence, at, lat, lon in in_order(moving, passed, found):
            if number != current:
                current, who = number, steps[number][0].client
                permitted, noted = {}, set()
            if fence < 0:
                told = found[~fence]
                self._tell_particular(telling, steps[number][1], told, permitted if told.who == who else {})
                continue
            watch = watches[fence]
            if watch is None or not watch.moments[moment]:
                continue
            session, what = watch.session, MOMENTS[moment]
            may = permitted.get(session)
            if may is None:
                may = permitted[session] = self._permits(session, who)
            if may and (watch.is_plain or self._may_tell(watch, who)):
                self._told += 1
                telling.add(watch, who, what, what, at, lat, lon)
                if audit is not None and (session, moment) not in noted:
                    noted.add((session, moment))  # once for each way is enough
                    audit.notified(session, who, what, at)
        telling.send()
        puts += telling.puts
        return Told(puts, [session for session, _ in steps], telling.then) if puts else None

    def _tell_particular(self, telling: Telling, way: Way, told: Particular, permitted: dict[Session, bool]) -> None:
        watch, who = told.watch, told.who
        if told.kind != "near" and not watch.moments[told.moment]:
            return
        may = permitted.get(watch.session)
        if may is None:
            may = permitted[watch.session] = self._permits(watch.session, who)
        if not may or not (watch.is_plain or self._may_tell(watch, who)):
            return
        at, place = way.at(told.share), told.place or way.place(told.share)
        self._told += 1
        telling.add(watch, who, told.kind, MOMENTS[told.moment], at, place.lat, place.lon, told.more)
        if self.audit is not None:
            self.audit.notified(watch.session, who, told.kind, at)

    def _may_tell(self, watch: Watch, who: str) -> bool:
        """Whether the observer may know of it where that is, and wants to know of this one."""
        wanted, anchor = watch.wanted.who, watch.anchor
        if wanted is not None and wanted != who:
            return False
        if anchor is not None and anchor != who and not self._permits(watch.session, anchor):
            return False
        where = watch.held.subscription.where
        return where is None or any(evaluate(where, context) is True for _, context in self._presence.known(who).seen())

    # Time

    def tick(self) -> None:
        """Tell of those who have stayed, of whom no report says otherwise."""
        if self._closed:
            return
        self._presence.settle()
        puts: list[Put] = []
        telling = Telling(self._notices)
        for watch, who, visit in self._stays.due():
            length, place = watch.wanted.stay, self._presence.fixed(who)
            if length is None or place is None:
                continue
            puts += self._stays.told(watch, who, visit)
            if Kind.STAY in watch.wanted.kinds and self._permits(watch.session, who) and self._may_tell(watch, who):
                at = visit.since + length
                self._told += 1
                telling.add(watch, who, "stay", "stay", at, place.lat, place.lon, {"since": to_text(visit.since)})
                if self.audit is not None:
                    self.audit.notified(watch.session, who, "stay", at)
        telling.send()
        puts += telling.puts
        self._stays.arm()
        if puts:
            self._journal.write((), puts, lambda _failed: telling.then())

    def _write(self, puts: Sequence[Put]) -> None:
        if puts:
            self._journal.write(puts=puts)
