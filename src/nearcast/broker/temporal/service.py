"""Time in the broker, put together: stored events, messages to other times, what is taken back, and announced proximities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.broker.access import Principal
from nearcast.broker.presence import Presence
from nearcast.broker.proximities import Proximities, ProximityStatistics
from nearcast.broker.publishing.retained import Retained
from nearcast.broker.publishing.router import Router
from nearcast.broker.reserved import Answer, Handler
from nearcast.broker.sessions.session import Session
from nearcast.broker.sessions.sessions import Sessions
from nearcast.broker.temporal.addressing import AddressingStatistics, Later, TemporalAddressing
from nearcast.broker.temporal.background import Background, BackgroundStatistics
from nearcast.broker.temporal.replaying import Replaying
from nearcast.broker.temporal.replays import Replays, ReplayStatistics
from nearcast.broker.temporal.unpublishing import Unpublishing, UnpublishingStatistics
from nearcast.errors import Denied, InvalidProperty
from nearcast.journal import Journal, Put, Then
from nearcast.model.time import Instant
from nearcast.mqtt.names import ReservedTopic


@dataclass(frozen=True, slots=True)
class TemporalStatistics:
    replays: ReplayStatistics
    addressing: AddressingStatistics
    unpublishing: UnpublishingStatistics
    proximities: ProximityStatistics
    background: BackgroundStatistics


class TemporalService:
    def __init__(
        self,
        journal: Journal,
        sessions: Sessions,
        router: Router,
        presence: Presence,
        retained: Retained,
        now: Callable[[], Instant],
        later: Later,
    ) -> None:
        self._sessions: Final = sessions
        self.background: Final = Background()
        self.unpublishing: Final = Unpublishing(journal, sessions, retained, self.background, now)
        replaying = Replaying(journal, self.background, self.unpublishing.offsets, now)
        self.replays: Final = Replays(journal, presence, replaying, now)
        self.addressing: Final = TemporalAddressing(journal, sessions, router, presence, self.background, now, later)
        self.proximities: Final = Proximities(journal)
        self.unpublishing.keepers += [self.replays, self.addressing]
        presence.watch = self.addressing.watch

    def statistics(self) -> TemporalStatistics:
        return TemporalStatistics(
            self.replays.statistics(),
            self.addressing.statistics(),
            self.unpublishing.statistics(),
            self.proximities.statistics(),
            self.background.statistics(),
        )

    def handlers(self) -> dict[ReservedTopic, Handler]:
        """Of the reserved topics."""
        return {
            ReservedTopic.UNPUBLISH: self._unpublish,
            ReservedTopic.MORE: self._more,
            ReservedTopic.ENOUGH: self._enough,
            ReservedTopic.ANNOUNCE: self._announce,
        }

    def _unpublish(
        self, session: Session, _principal: Principal, _rest: str, payload: bytes, then: Answer | None
    ) -> None:
        self.unpublishing.unpublish(session, _text(payload, "an event's id"), then or _nobody)

    def _more(self, session: Session, _principal: Principal, rest: str, payload: bytes, then: Then | None) -> None:
        self.replays.more(session, rest, _text(payload, "a name", empty=True), then)

    def _enough(self, session: Session, _principal: Principal, rest: str, payload: bytes, then: Then | None) -> None:
        self.replays.enough(session, rest, _text(payload, "a name", empty=True), then)

    def _announce(self, session: Session, principal: Principal, rest: str, payload: bytes, then: Then | None) -> None:
        if not principal.may_publish(rest):
            raise Denied(f"{principal} may not publish to {rest!r:.80}, and so not announce it either")
        self.proximities.announce(session, rest, payload, then)

    # A session's and the broker's life

    def forget(self, session: Session) -> list[Put]:
        """Its session is over; what is to be written for that."""
        return self.proximities.forget(session)

    def load(self) -> None:
        """After a restart, before messages are restored."""
        self.unpublishing.load()
        self.proximities.load(self._sessions.all)

    def resume(self) -> None:
        """After a restart, when subscriptions and messages are back."""
        self.replays.load(self._sessions.all)
        self.addressing.load()

    def flush(self) -> None:
        self.replays.flush()
        self.unpublishing.tidy()

    def close(self) -> None:
        """Before the journal is closed."""
        self.replays.close()
        self.addressing.close()
        self.unpublishing.close()
        self.background.close()


def _nobody(_failed: Exception | None) -> None: ...


def _text(payload: bytes, what: str, *, empty: bool = False) -> str:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        text = ""
        empty = empty and not payload
    if not text and not empty:
        raise InvalidProperty(f"the payload is {what}, not {payload[:20]!r}")
    return text
