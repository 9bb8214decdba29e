"""Erasing while the broker works: it finds a plan in its data folder, as ``nearcast erase`` has put it there.

Whoever may write to that folder may erase, running broker or not; nothing of this can be reached from outside.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from nearcast.broker.erasing.erasure import Erasure
from nearcast.broker.erasing.plan import PLAN, PROGRESS, Plan, Progress, read_plan, write_plan
from nearcast.broker.publishing.retained import RETAINED
from nearcast.broker.sessions.session import Session
from nearcast.files import write_whole
from nearcast.journal import Put
from nearcast.journal.erasure.subject import Subject

if TYPE_CHECKING:
    from nearcast.broker.core import Broker

log: Final = logging.getLogger(__name__)
_TELL_EVERY: Final = 0.2
"""Seconds between two words on how far it is."""


@dataclass(frozen=True, slots=True)
class ErasingStatistics:
    erased: int
    """People, since the broker started."""

    under_way: bool


@dataclass(slots=True, eq=False)
class LiveErasing:
    broker: Broker
    purging: list[Callable[[Plan], None]] = field(default_factory=list)
    """Told who was erased when nothing of it stands in the journal any more, by whoever remembers what it has read there."""

    _task: asyncio.Task[None] | None = None
    _erased: int = 0
    _told: float = field(default=0.0)

    def statistics(self) -> ErasingStatistics:
        return ErasingStatistics(self._erased, self._task is not None)

    def look(self) -> None:
        """Once a second: is somebody to be erased?"""
        if self._task is None and (self.broker.settings.data / PLAN).exists():
            self._task = asyncio.get_running_loop().create_task(self._carry_out())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _carry_out(self) -> None:
        data = self.broker.settings.data
        plan: Plan | None = None
        try:
            plan = read_plan(data)
            if plan is None or plan.done or plan.problem is not None:
                return
            done = await asyncio.to_thread(self._erasure().carry_out, plan)
            if plan.dry:
                write_plan(data, msgspec.structs.replace(done, done=True))
            else:
                self._erased += 1
                log.info("a person was erased: %d records, %d rows of the lake", done.counts.records, done.counts.rows)
        except Exception as error:
            # Not what it was about: the log outlives the person.
            log.exception("a person could not be erased; it is tried again when somebody asks")
            if plan is not None:
                write_plan(data, msgspec.structs.replace(read_plan(data) or plan, problem=str(error)))
        finally:
            if plan is not None and plan.user is not None:
                self.broker.access.kept_out.discard(plan.user)
            self._task = None

    def _erasure(self) -> Erasure:
        broker, settings = self.broker, self.broker.settings
        return Erasure(
            settings.data,
            broker.journal,
            broker.identities,
            settings.lake,
            settings.passwords,
            broker.archive.settled,
            self._report,
            lambda plan: self._on_loop(lambda: self._dismiss(plan)),
            lambda plan: self._on_loop(lambda: self._purge(plan)),
        )

    def _purge(self, plan: Plan) -> None:
        for purge in self.purging:
            purge(plan)

    def _on_loop(self, function: Callable[[], None]) -> None:
        """From the worker thread; waits until it is done."""

        async def call() -> None:
            function()

        asyncio.run_coroutine_threadsafe(call(), self.broker.loop).result()

    def _report(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._told >= _TELL_EVERY:
            self._told = now
            write_whole(self.broker.settings.data / PROGRESS, msgspec.json.encode(Progress(step, done, total)), 0o600)

    def _dismiss(self, plan: Plan) -> None:
        """Its connections end, its sessions are over, and nobody gets what it published any more."""
        broker, subject = self.broker, plan.subject()
        if plan.user is not None:
            broker.access.kept_out.add(plan.user)
        broker.batching.settle()
        for session in [each for each in broker.sessions if self._is_of(plan, subject, each)]:
            self._end(session)
        self._unnamed(plan, frozenset(client for client in plan.clients if client not in broker.sessions.all))
        gone = subject.offsets
        retained = broker.retained
        topics = retained.of(subject.is_one)
        for topic in topics:
            retained.forget(topic)
        keepers = broker.temporal.unpublishing.keepers
        puts = [Put(RETAINED, topic, None) for topic in topics]
        puts += [put for keeper in keepers for put in keeper.rows_of(gone)]
        for keeper in keepers:
            keeper.withdraw(gone)
        for session in broker.sessions:
            session.withdraw(lambda message: (message.offset if message.of is None else message.of) in gone)
        broker.temporal.unpublishing.offsets |= gone  # who has read them already gives none of them out
        if broker.federation is not None:
            for key in subject.keys:
                broker.federation.custody.cancel(key)
        broker.journal.write(puts=puts)

    def _unnamed(self, plan: Plan, clients: frozenset[str]) -> None:
        """Nobody is told of it any more, asks to be, or lets it observe: others name it there, and whoever comes under that name is somebody else."""
        broker = self.broker
        for client in clients:
            broker.observation.silence(client)
        for session in list(broker.sessions):
            consent = broker.presence.consent(session.client)
            rest = None if consent is None else consent.without(plan.users, clients)
            if rest is not None and rest is not consent:
                broker.presence.observable(session, rest)
            for held in list(session.held.values()):
                wanted = held.observation
                if wanted is not None and (wanted.who in clients or wanted.around in clients):
                    broker.journal.write(puts=broker.subscribing.end(session, held))

    def _is_of(self, plan: Plan, subject: Subject, session: Session) -> bool:
        user = self.broker.sessions.users.get(session.client)
        if plan.named or subject.is_one(session.identity):
            return subject.is_one(session.identity)
        return user == plan.user if plan.user is not None else user is None and session.client in subject.clients

    def _end(self, session: Session) -> None:
        lifecycle = self.broker.lifecycle
        self.broker.wills.cancelled(session)
        conversation = lifecycle.conversations.get(session.client)
        if conversation is not None:
            conversation.dismissed()
        if session.alive:
            lifecycle.forget(session)
