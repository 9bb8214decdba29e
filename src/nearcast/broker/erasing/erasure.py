"""Step by step.  Each may be done again: who is interrupted begins anew, and comes to the same end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from nearcast.broker.access.users import remove_user
from nearcast.broker.erasing.plan import Counts, Plan, known_as, write_plan
from nearcast.broker.erasing.state import clients_of, identities_of, rows_of
from nearcast.errors import UnknownName
from nearcast.journal import Journal, Put
from nearcast.journal.erasure import journal as in_journal
from nearcast.journal.erasure import parquet
from nearcast.journal.erasure.subject import Subject
from nearcast.journal.identities import Identities
from nearcast.journal.lake import CORNER

Report = Callable[[str, int, int], None]
"""Told which step is how far."""

_ROWS_AT_ONCE: Final = 1_000


def _nothing(_plan: Plan) -> None: ...


@dataclass(slots=True)
class Erasure:
    """For a worker thread; nobody else erases meanwhile."""

    data: Path
    journal: Journal
    identities: Identities
    lake: Path
    users: Path
    """The file of users."""

    settle: Callable[[], None]
    """Waits until no export is under way that began before."""

    report: Report
    dismiss: Callable[[Plan], None] = _nothing
    """Have the person leave, and all that is in memory of it go; from then on it is not let in."""

    purge: Callable[[Plan], None] = _nothing
    """The journal has nothing of the person any more: forget what was read of it before."""

    def carry_out(self, plan: Plan) -> Plan:
        """Until nothing of it is left in journal, lake and map; gives the plan, for what jobs have made."""
        if plan.done:
            return plan
        if plan.dry:
            plan = self._known(plan)
            return msgspec.structs.replace(plan, counts=self._counted(plan))
        if not plan.named:
            plan = self._named(plan)
        self._forget(plan)
        plan = self._learnt(plan)
        write_plan(self.data, plan)
        self.dismiss(plan)  # once more: what it published is known now, and others may wait for it
        self._on_disk()
        plan = msgspec.structs.replace(self._erased(plan), done=True)
        write_plan(self.data, plan)
        return plan

    def _named(self, plan: Plan) -> Plan:
        """The plan with all its identities.  From then on whoever comes under the same name is somebody else."""
        plan = self._known(plan)
        write_plan(self.data, plan)
        if plan.user is not None:
            _remove(self.users, plan.user)
        self.dismiss(plan)
        self._on_disk()
        plan = msgspec.structs.replace(self._known(plan), named=True)
        write_plan(self.data, plan)
        return plan

    def _known(self, plan: Plan) -> Plan:
        plan = known_as(self.identities, plan)
        identities = identities_of(self.journal, plan.user, plan.subject())
        return msgspec.structs.replace(plan, identities=tuple(sorted({*plan.identities, *identities})))

    def _learnt(self, plan: Plan) -> Plan:
        subject = plan.subject()
        self._learn(subject)
        return plan.learnt(subject)

    def _learn(self, subject: Subject) -> None:
        in_journal.learn(self.journal, subject, self._step("reading the journal"))
        parquet.learn(self.lake, subject, self._step("reading the lake"))

    def _counted(self, plan: Plan) -> Counts:
        subject = plan.subject()
        self._learn(subject)
        clients = clients_of(self.journal, subject)
        counts = Counts(state=sum(1 for _ in rows_of(self.journal, subject, clients, plan.users)))
        counts = counts.with_journal(in_journal.erase(self.journal, subject, self._step("journal"), dry=True))
        files = parquet.files_below(self.lake)
        return counts.with_lake(parquet.erase(files, subject, self._step("lake"), dry=True))

    def _erased(self, plan: Plan) -> Plan:
        subject = plan.subject()
        clients = clients_of(self.journal, subject)
        rows = list(rows_of(self.journal, subject, clients, plan.users))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            self._on_disk(rows[start : start + _ROWS_AT_ONCE])
        counts = Counts(state=len(rows)).with_journal(
            in_journal.erase(self.journal, subject, self._step("erasing from the journal"))
        )
        self.purge(plan)
        # What was read of the journal before may be on its way to the lake.
        self.settle()
        parquet.clear_drafts(self.lake)
        for left in parquet.files_below(self.lake / CORNER):  # of an export that a fall has interrupted
            left.unlink()
        files = parquet.files_below(self.lake)
        counts = counts.with_lake(parquet.erase(files, subject, self._step("erasing from the lake")))
        in_journal.overwrite(self.journal, self._step("overwriting what was there"))
        return msgspec.structs.replace(plan, counts=counts)

    def _forget(self, plan: Plan) -> None:
        """The map's entries, unless somebody else has come by that name since."""
        if plan.user is not None:
            self.identities.erase_user(plan.user)
        else:
            for client in plan.clients:
                if self.identities.known(client) in plan.identities:
                    self.identities.erase(client)

    def _on_disk(self, puts: Sequence[Put] = ()) -> None:
        done: Future[None] = Future()

        def decided(failed: Exception | None) -> None:
            if failed is None:
                done.set_result(None)
            else:
                done.set_exception(failed)

        self.journal.write(puts=puts, then=decided)
        done.result()

    def _step(self, name: str) -> in_journal.Step:
        return lambda done, total: self.report(name, done, total)


def _remove(users: Path, user: str) -> None:
    try:
        remove_user(users, user)
    except UnknownName:
        return  # known by a certificate or a token, or removed before
