"""Filter schemes in their place in the broker: their messages go by MQTT, their state is on disk, clients come and go."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from nearcast.broker.access import Principal
from nearcast.broker.presence import Presence
from nearcast.broker.publishing.message import Message
from nearcast.broker.schemes.live import NAME, LiveSchemes, SchemePlan
from nearcast.broker.schemes.settings import SchemeSettings
from nearcast.broker.sessions.session import Session
from nearcast.dissemination.cloud_messages import PROXY
from nearcast.errors import InvalidRecord, NearcastError
from nearcast.journal import Journal, Put, Then, TransitionEntry
from nearcast.model.geometry import Point
from nearcast.mqtt.names import ReservedTopic
from nearcast.planning.regional import Region
from nearcast.runtime.live.timers import LiveTimers
from nearcast.runtime.observers import Observers
from nearcast.runtime.ports import Clock

log: Final = logging.getLogger(__name__)
CLIENTS: Final = "scheme clients"
NAMED: Final = "scheme clients by name"
"""Of these, the ones that a plan has brought to their scheme by name."""

PLANS: Final = "scheme plans"
_MEMORY: Final = "memory"
_REGIONS: Final = "regions"


class Scheming:
    """Between the schemes and the rest of the broker."""

    def __init__(
        self,
        settings: SchemeSettings,
        clock: Clock,
        journal: Journal,
        sessions: dict[str, Session],
        presence: Presence,
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._journal: Final = journal
        self._sessions: Final = sessions
        self._presence: Final = presence
        self._soon: Final = soon
        plan = SchemePlan(settings.initial(), settings.ground(), settings.transition_rules())
        self._timers: Final = LiveTimers(clock, _guarded, Observers())
        known = journal.load(PLANS)
        self.live: Final = LiveSchemes(
            clock,
            self._timers,
            plan,
            self._send,
            memory=known.get(_MEMORY),
            regions=known.get(_REGIONS),
            changed=self._later,
        )
        self.live.located = self._located
        self._scheme = str(plan.initial)
        self._plan: str | None = None
        """Whose transitions are being recorded."""

    def load(self) -> None:
        """Before subscriptions are restored."""
        named = self._journal.load(NAMED)
        for client, state in self._journal.load(CLIENTS).items():
            if client in self._sessions:
                try:
                    self.live.restore(client, state, named=client in named)
                except InvalidRecord as error:  # of another version: the client will say anew where it stands
                    log.warning("%s", error)
                    self._journal.write(puts=[Put(NAMED, client, None)])
            else:
                self._journal.write(puts=_forgotten(client))

    def stop(self) -> None:
        self.live.stop()
        self._timers.end()
        self.flush()

    # Clients

    def arrived(self, session: Session, present: bool) -> None:
        if session.speaks_schemes:
            self.live.connected(session.client, session_present=present)

    def departed(self, session: Session) -> None:
        if session.speaks_schemes:
            self.live.disconnected(session.client)

    def forgotten(self, session: Session) -> list[Put]:
        return self.silenced(session) if session.speaks_schemes else []

    def silenced(self, session: Session) -> list[Put]:
        """It does not speak schemes any more, or is gone; what is to be written for that."""
        self.live.forget(session.client)
        return _forgotten(session.client)

    def heard(self, session: Session, _principal: Principal, _rest: str, payload: bytes, then: Then | None) -> None:
        """What came on ``$nearcast/scheme``."""
        self.live.receive(session.client, payload)
        self._journal.write(puts=self._changes(), then=then)

    def _send(self, client: str, payload: bytes) -> None:
        session = self._sessions.get(client)
        if session is not None:
            session.deliver(Message(ReservedTopic.SCHEME.topic, payload, 1), 1, (), near=False)

    def _located(self, client: str, position: Point | None) -> None:
        session = self._sessions.get(client)
        if session is None:
            return
        observes = any(held.observation is not None for held in session.held.values())
        if position is None and (observes or self._presence.consent(client) is not None):
            return  # its scheme knows no better, but it says itself where it is, because others are told
        self._presence.moved(session, position)

    def carry_out(self, plan: str, scheme: str, clients: Sequence[str] | None) -> None:
        """A plan from outside; what it changes is recorded under its id."""
        with self._recorded_under(plan):
            self.live.transition(scheme, clients)

    def carry_out_in(self, plan: str, regions: Sequence[Region], elsewhere: str | None) -> None:
        """The same for regions; with a scheme for everybody elsewhere, these are all there are."""
        with self._recorded_under(plan):
            self.live.transition_in(regions, elsewhere)

    @contextmanager
    def _recorded_under(self, plan: str) -> Iterator[None]:
        self.flush()
        self._plan = plan
        try:
            with self.live.ordered(f"the plan {plan}"):
                yield
        finally:
            self.flush()
            self._plan = None

    # On disk

    def _later(self) -> None:
        """Once for all that changes in this turn of the loop."""
        self._soon(self.flush)

    def flush(self) -> None:
        changes, done = self._changes(), self._new_transitions()
        if changes or done:
            self._journal.write(done, changes)

    def _new_transitions(self) -> list[TransitionEntry]:
        """Those that were not recorded yet."""
        entries = []
        for done in self.live.new_transitions():
            if done.everybody:
                entries.append(TransitionEntry(done.time, NAME, PROXY, self._scheme, str(done.scheme), plan=self._plan))
                self._scheme = str(done.scheme)
        return [*entries, *self._moves()]

    def _moves(self) -> Iterator[TransitionEntry]:
        for moved in self.live.moves():
            session = self._sessions.get(moved.client)
            if session is not None:
                before, after = str(moved.before), str(moved.after)
                yield TransitionEntry(moved.time, session.identity, PROXY, before, after, plan=moved.plan)

    def _changes(self) -> list[Put]:
        changed = self.live.changes()
        known = {_MEMORY: changed.memory, _REGIONS: changed.regions}
        puts = [Put(PLANS, key, value) for key, value in known.items() if value is not None]
        puts += [Put(CLIENTS, client, state) for client, state in changed.clients.items() if self._is_durable(client)]
        puts += [Put(NAMED, client, b"") for client, now in changed.named.items() if now and self._is_durable(client)]
        puts += [Put(NAMED, client, None) for client, now in changed.named.items() if not now]
        return puts

    def _is_durable(self, client: str) -> bool:
        session = self._sessions.get(client)
        return session is not None and session.durable


def _forgotten(client: str) -> list[Put]:
    return [Put(CLIENTS, client, None), Put(NAMED, client, None)]


def _guarded(callback: Callable[..., None], *arguments: object) -> None:
    """A rule that fails must not end the broker: everything else goes on without it."""
    try:
        callback(*arguments)
    except NearcastError:
        log.exception("a timer of the filter schemes failed")
