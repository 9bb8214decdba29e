"""Announced proximities (STEAM, 3): the reach that a producer's events on a topic have, unless they say otherwise.

A relative area moves with its producer: every event gets the reach around the position of that moment (``Publication.event``
anchors it).  An absolute one, or one with ``at``, is stationary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.broker.sessions.session import Session
from nearcast.errors import InvalidArea, QuotaExceeded
from nearcast.journal import Journal, Put, Then
from nearcast.model.area_text import area_in, area_text
from nearcast.model.event import Proximity

PROXIMITIES: Final = "proximities"


@dataclass(frozen=True, slots=True)
class ProximityStatistics:
    stationary: int
    moving: int


@dataclass(slots=True, eq=False, repr=False)
class Proximities:
    journal: Journal
    most: int = 100
    """Topics that one client may announce."""

    _producers: dict[str, Session] = field(default_factory=dict)

    def statistics(self) -> ProximityStatistics:
        areas = [area for session in self._producers.values() for area in session.announced.values()]
        moving = sum(area.is_relative for area in areas)
        return ProximityStatistics(len(areas) - moving, moving)

    def announce(self, session: Session, topic: str, payload: bytes, then: Then | None = None) -> None:
        """An area text, or nothing: unannounced.  That the client may publish there, the caller has checked."""
        if not payload:
            if session.announced.pop(topic, None) is not None and not session.announced:
                del self._producers[session.client]
            self._write(session, topic, None, then)
            return
        try:
            text = payload.decode()
        except UnicodeDecodeError:
            raise InvalidArea(f"{payload[:20]!r} is no area; send its text, such as 500") from None
        proximity = Proximity(topic, area_in(text))
        if topic not in session.announced and len(session.announced) >= self.most:
            raise QuotaExceeded(f"a client may announce {self.most} topics; unannounce one with an empty message")
        session.announced[topic] = proximity.area
        self._producers[session.client] = session
        self._write(session, topic, area_text(proximity.area).encode(), then)

    def forget(self, session: Session) -> list[Put]:
        """Its session is over; what is to be written for that."""
        self._producers.pop(session.client, None)
        topics, session.announced = list(session.announced), {}
        return [Put(PROXIMITIES, _key(session, topic), None) for topic in topics]

    def load(self, sessions: Mapping[str, Session]) -> None:
        """After a restart."""
        for key, data in self.journal.load(PROXIMITIES).items():
            client, _, topic = key.partition("\0")
            session = sessions.get(client)
            if session is None:
                self.journal.write(puts=(Put(PROXIMITIES, key, None),))
            else:
                session.announced[topic] = area_in(data.decode())
                self._producers[client] = session

    def _write(self, session: Session, topic: str, value: bytes | None, then: Then | None) -> None:
        puts = [Put(PROXIMITIES, _key(session, topic), value)] if session.durable else []
        if puts or then is not None:
            self.journal.write(puts=puts, then=then)


def _key(session: Session, topic: str) -> str:
    return f"{session.client}\0{topic}"
