"""Keeps account of who is told of whom (``broker.observation``), by virtual identities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nearcast.broker.audit.audit import Audit
from nearcast.broker.sessions.session import Held, Session
from nearcast.model.time import Instant


@dataclass(frozen=True, slots=True)
class ObservationAudit:
    audit: Audit
    sessions: Mapping[str, Session]

    def observing(self, observer: Session, _held: Held) -> None:
        """Who asks for it stands in the journal as a subscription; what counts here is of whom it is told."""

    def notified(self, observer: Session, who: str, kind: str, _at: Instant) -> None:
        observed = self.sessions.get(who)
        self.audit.observed(observer.identity, () if observed is None else (observed.identity,), (kind,))
