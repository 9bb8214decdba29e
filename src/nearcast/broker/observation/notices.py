"""What observers are told, as messages; and what is kept of it for those who are away, until they have confirmed it.

Notices are no events: they stand in no journal and no lake, nobody can ask for those of the past, and those that wait for somebody are
forgotten when they are confirmed, or when the observed client withdraws its permission.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from nearcast.broker.publishing.message import Message
from nearcast.broker.sessions.session import Held, Session
from nearcast.journal import Journal, Put
from nearcast.model.geometry import Point
from nearcast.model.time import Instant, to_text
from nearcast.mqtt.observations import notice_topic

NOTICES: Final = "notices"
JSON: Final = "application/json"


class NoticeRow(msgspec.Struct, frozen=True, array_like=True):
    topic: str
    payload: bytes
    identifiers: tuple[int, ...]


def payload_of(
    who: bytes, what: str, fence: bytes, at: Instant, place: Point, more: Mapping[str, object] | None = None
) -> bytes:
    """``who`` and ``fence`` are JSON already; ten million of a degree are a centimetre."""
    rest = "" if not more else "," + msgspec.json.encode(more)[1:-1].decode()
    return (
        f'{{"who":{who.decode()},"what":"{what}","fence":{fence.decode()},"at":"{to_text(at)}",'
        f'"lat":{place.lat:.7f},"lon":{place.lon:.7f}{rest}}}'
    ).encode()


@dataclass(frozen=True, slots=True, eq=False)
class Notice:
    """One, for one observer."""

    session: Session
    held: Held
    topic: str
    payload: bytes
    number: int | None = None
    """Under which it is kept."""

    @property
    def lasts(self) -> bool:
        return self.held.qos > 0 and self.session.durable


@dataclass(slots=True, eq=False)
class Notices:
    journal: Journal
    _kept: dict[str, set[int]] = field(default_factory=dict)
    """Of each observer, those on disk."""

    _last: int = 0

    @property
    def kept(self) -> int:
        return sum(map(len, self._kept.values()))

    def keep(self, session: Session, held: Held, topic: str, payload: bytes) -> tuple[Notice, Put]:
        """One that is to outlive a restart, and what is to be written for that."""
        self._last += 1
        number = self._last
        self._kept.setdefault(session.client, set()).add(number)
        row = msgspec.msgpack.encode(NoticeRow(topic, payload, held.identifiers))
        return Notice(session, held, topic, payload, number), Put(NOTICES, _key(session.client, number), row)

    def send(self, notice: Notice) -> None:
        session, held = notice.session, notice.held
        if not session.alive or session.forward is not None or session.held.get(held.subscription.id) is not held:
            # It is gone, is with another broker now, or does not want it any more.
            if notice.number is not None:
                self._forget(session.client, notice.number)
            return
        confirmed = None if notice.number is None else self._confirming(session.client, notice.number)
        message = Message(notice.topic, notice.payload, held.qos, payload_format=1, content_type=JSON)
        session.deliver(message, held.qos, held.identifiers, near=False, confirmed=confirmed)

    def _confirming(self, client: str, number: int) -> Callable[[], None]:
        return lambda: self._forget(client, number)

    def _forget(self, client: str, number: int) -> None:
        kept = self._kept.get(client)
        if kept is not None and number in kept:
            kept.discard(number)
            if not kept:
                del self._kept[client]
            self.journal.write(puts=(Put(NOTICES, _key(client, number), None),))

    def withdraw(self, session: Session, who: str) -> None:
        """What waits for an observer of that client does not go out any more."""
        topics = frozenset(notice_topic(kind, who) for kind in ("enter", "leave", "cross", "stay", "near"))
        session.withdraw(lambda message: message.topic in topics)

    def over(self, session: Session) -> list[Put]:
        """Its session is over; what is to be written for that."""
        return [Put(NOTICES, _key(session.client, number), None) for number in self._kept.pop(session.client, ())]

    def load(self, sessions: Mapping[str, Session]) -> None:
        """After a restart: what is owed to somebody goes on waiting for it."""
        for key, data in sorted(self.journal.load(NOTICES).items(), key=lambda item: _number(item[0])):
            client, number = key.rpartition("\0")[0], _number(key)
            self._last = max(self._last, number)
            session = sessions.get(client)
            if session is None:
                self.journal.write(puts=(Put(NOTICES, key, None),))
                continue
            row = msgspec.msgpack.decode(data, type=NoticeRow)
            self._kept.setdefault(client, set()).add(number)
            message = Message(row.topic, row.payload, 1, payload_format=1, content_type=JSON)
            session.deliver(message, 1, row.identifiers, near=False, confirmed=self._confirming(client, number))


def _key(client: str, number: int) -> str:
    return f"{client}\0{number}"


def _number(key: str) -> int:
    return int(key.rpartition("\0")[2])
