"""What observers are told, as messages; and what is kept of it for those who are away, until they have confirmed it.

Notices are no events: they stand in no journal and no lake, nobody can ask for those of the past, and those that wait for somebody are
forgotten when they are confirmed, or when the observed client withdraws its permission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from nearcast.broker.publishing.message import Message
from nearcast.broker.sessions.session import Held, Session
from nearcast.journal import Journal, Put
from nearcast.model.time import MICROSECONDS, Instant, to_text
from nearcast.mqtt.observations import notice_topic
from nearcast.mqtt.stream import V311

if TYPE_CHECKING:
    from nearcast.broker.observation.watches import Watch

NOTICES: Final = "notices"
JSON: Final = "application/json"
_NEAR: Final = notice_topic("near", "")


class NoticeRow(msgspec.Struct, frozen=True, array_like=True):
    topic: str
    payload: bytes
    identifiers: tuple[int, ...]


def ending_of(at: Instant, lat: float, lon: float, more: Mapping[str, object] | None = None) -> bytes:
    """When and where something happened; a ten millionth of a degree is a centimetre.  (Bytes are put together in half the time of text.)"""
    rest = b"}" if not more else b"," + msgspec.json.encode(more)[1:]
    second, fraction = divmod(at, MICROSECONDS)
    if fraction:
        return b',"at":"%b.%06dZ","lat":%.7f,"lon":%.7f%b' % (_second(second), fraction, lat, lon, rest)
    return b',"at":"%bZ","lat":%.7f,"lon":%.7f%b' % (_second(second), lat, lon, rest)


@lru_cache(maxsize=4096)
def _second(seconds: int) -> bytes:
    """Most notices of a moment are of the same second."""
    return to_text(seconds * MICROSECONDS)[:-1].encode()


@dataclass(frozen=True, slots=True, eq=False)
class Notice:
    """One, for one observer."""

    session: Session
    held: Held
    topic: str
    payload: bytes
    of: tuple[str, ...]
    """Who must let the observer know: the one who is observed, and the one near which that was."""

    number: int | None = None
    """Under which it is kept."""


@dataclass(slots=True, eq=False)
class Notices:
    journal: Journal
    _kept: dict[str, set[int]] = field(default_factory=dict)
    """Of each observer, those on disk."""

    _told: dict[str, set[str]] = field(default_factory=dict)
    """Of each observer, those of whom something may wait for it: nobody else's permission makes a queue be looked through."""

    _last: int = 0

    @property
    def kept(self) -> int:
        return sum(map(len, self._kept.values()))

    def keep(self, session: Session, held: Held, topic: str, payload: bytes, of: tuple[str, ...]) -> tuple[Notice, Put]:
        """One that is to outlive a restart, and what is to be written for that."""
        self._last += 1
        number = self._last
        self._kept.setdefault(session.client, set()).add(number)
        row = msgspec.msgpack.encode(NoticeRow(topic, payload, held.identifiers))
        return Notice(session, held, topic, payload, of, number), Put(NOTICES, _key(session.client, number), row)

    def send(self, notice: Notice) -> None:
        session, held = notice.session, notice.held
        if not session.alive or session.forward is not None or session.held.get(held.subscription.id) is not held:
            # It is gone, is with another broker now, or does not want it any more.
            if notice.number is not None:
                self._forget(session.client, notice.number)
            return
        confirmed = None if notice.number is None else self._confirming(session.client, notice.number)
        message = Message(notice.topic, notice.payload, held.qos, payload_format=1, content_type=JSON)
        self._tells(session, notice.of)
        session.deliver(message, held.qos, held.identifiers, near=False, confirmed=confirmed)

    def _tells(self, session: Session, of: Iterable[str]) -> None:
        told = self._told.setdefault(session.client, set())
        if not session.queue and not session.in_flight:
            told.clear()  # nothing waits
        told.update(of)

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
        told = self._told.get(session.client)
        if told is None or who not in told:
            return
        told.discard(who)
        topics = frozenset(notice_topic(kind, who) for kind in ("enter", "leave", "cross", "stay", "near"))
        session.withdraw(lambda message: message.topic in topics or _around(message) == who)

    def observers_of(self, client: str) -> list[str]:
        """For whom something of it may wait, also if they have stopped watching since."""
        return [observer for observer, told in self._told.items() if client in told]

    def over(self, session: Session) -> list[Put]:
        """Its session is over; what is to be written for that."""
        self._told.pop(session.client, None)
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
            said = msgspec.json.decode(row.payload, type=_Said)
            self._tells(session, {said.who, said.near or said.who})
            session.deliver(message, 1, row.identifiers, near=False, confirmed=self._confirming(client, number))


class Telling:
    """Notices that are told together: those that nobody keeps go out to each observer with one write, the others when they are on disk."""

    def __init__(self, notices: Notices) -> None:
        self.puts: Final[list[Put]] = []
        self._notices: Final = notices
        self._lasting: Final[list[Notice]] = []
        self._packets: Final[dict[Session, list[bytes]]] = {}
        self._beginnings: Final[dict[tuple[str, str, str], tuple[bytes, bytes]]] = {}

    def add(
        self,
        watch: Watch,
        who: str,
        kind: str,
        what: str,
        at: Instant,
        lat: float,
        lon: float,
        more: Mapping[str, object] | None = None,
    ) -> None:
        session, held = watch.session, watch.held
        beginning = self._beginnings.get((who, kind, what))
        if beginning is None:
            beginning = self._beginnings[who, kind, what] = _beginning(who, kind, what)
        topic, payload = beginning[0], beginning[1] + watch.fence + ending_of(at, lat, lon, more)
        if not held.qos:
            packets = self._packets.get(session)
            if packets is None:
                packets = self._packets[session] = []
            properties = watch.properties if session.version > V311 else b""
            packets.append(_opening(len(topic) + len(properties) + len(payload)) + topic + properties + payload)
            return
        name, of = notice_topic(kind, who), (who,) if watch.anchor is None else (who, watch.anchor)
        if session.durable:
            notice, put = self._notices.keep(session, held, name, payload, of)
            self._lasting.append(notice)
            self.puts.append(put)
        else:
            self._notices.send(Notice(session, held, name, payload, of))

    def send(self) -> None:
        """What nobody keeps."""
        for session, packets in self._packets.items():
            session.deliver_made(packets)

    def then(self) -> None:
        """What is kept, and is on disk now."""
        for notice in self._lasting:
            self._notices.send(notice)


def _beginning(who: str, kind: str, what: str) -> tuple[bytes, bytes]:
    """The topic as it stands in packets, and the payload up to the name of the fence: the same for all that one client does at once."""
    topic = notice_topic(kind, who).encode()
    return len(topic).to_bytes(2) + topic, b'{"who":%b,"what":"%b","fence":' % (msgspec.json.encode(who), what.encode())


@lru_cache(maxsize=4096)
def _opening(length: int) -> bytes:
    """Of a PUBLISH of quality 0 (MQTT 5, 3.3): as ``stream.encode`` makes it.  Notices differ in length by some bytes at most."""
    return b"\x30" + variable_length(length)


def variable_length(length: int) -> bytes:
    """MQTT 5, 1.5.5."""
    encoded = bytearray()
    while True:
        length, low = divmod(length, 128)
        encoded.append(low | 128 if length else low)
        if not length:
            return bytes(encoded)


def properties_of(identifiers: tuple[int, ...]) -> bytes:
    """Of a notice (MQTT 5, 3.3.2.3): text, JSON, and the subscriptions that asked for it."""
    content_type = JSON.encode()
    rest = b"\x01\x01" + b"\x03" + len(content_type).to_bytes(2) + content_type
    for identifier in identifiers:
        rest += b"\x0b" + variable_length(identifier)
    return variable_length(len(rest)) + rest


def _around(message: Message) -> str | None:
    """The client near which somebody was: its permission is needed as well."""
    if not message.topic.startswith(_NEAR):
        return None
    return msgspec.json.decode(message.payload, type=_Said).near


class _Said(msgspec.Struct):
    who: str
    near: str | None = None


def _key(client: str, number: int) -> str:
    return f"{client}\0{number}"


def _number(key: str) -> int:
    return int(key.rpartition("\0")[2])
