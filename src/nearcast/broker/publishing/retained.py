"""The last message of each topic, for whoever subscribes later (MQTT 5, 3.3.1.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from nearcast.broker.publishing.message import Message, size_of_kept
from nearcast.journal import Journal, Put
from nearcast.model.time import Instant
from nearcast.model.topic import topic_matches

RETAINED: Final = "retained"
AT_ONCE: Final = 500
"""Topics that are looked at in one turn of the loop: about a millisecond."""


class RetainedRow(msgspec.Struct, frozen=True, array_like=True):
    payload: bytes
    qos: int
    expires: Instant | None
    payload_format: int
    content_type: str | None
    response_topic: str | None
    correlation: bytes | None
    properties: tuple[tuple[str, str], ...]
    near_properties: tuple[tuple[str, str], ...]
    event: str | None
    publisher: str | None = None
    """Its virtual identity: the message goes with the person."""


_DECODER: Final = msgspec.msgpack.Decoder(RetainedRow)


@dataclass(slots=True, eq=False)
class Unwritten:
    """A topic of which something was set that is not on disk yet."""

    on_disk: Message | None
    writes: int = 0


@dataclass(slots=True, eq=False)
class Retained:
    """Kept in memory and on disk."""

    journal: Journal
    now: Callable[[], Instant]
    messages: dict[str, Message] = field(default_factory=dict)
    _size: int = 0
    _unwritten: dict[str, Unwritten] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def size(self) -> int:
        """Bytes of all of them, with what is said beside the payload."""
        return self._size

    def without(self, topic: str) -> tuple[int, int]:
        """How many there are apart from that topic, and their bytes."""
        old = self.messages.get(topic)
        return len(self.messages) - (old is not None), self._size - (0 if old is None else size_of_kept(old))

    def set(self, message: Message) -> Put:
        """Keep it, or with an empty payload forget what there is; what is to be written for that.

        Whether that could be written is to be said afterwards, with ``written``.
        """
        topic = message.topic
        self._unwritten.setdefault(topic, Unwritten(self.messages.get(topic))).writes += 1
        self._take_out(topic)
        if not message.payload:
            return Put(RETAINED, message.topic, None)
        # A copy: who is given it later is not owed what stands at the offset that the message itself will get.
        self._keep(replace(message, offset=None, _encoded={}))
        row = RetainedRow(
            message.payload,
            message.qos,
            message.expires,
            message.payload_format,
            message.content_type,
            message.response_topic,
            message.correlation,
            message.properties,
            message.near_properties,
            message.event,
            message.publisher,
        )
        return Put(RETAINED, message.topic, msgspec.msgpack.encode(row))

    def written(self, topic: str, kept: Message | None, *, failed: bool) -> None:
        """What was set as ``kept`` is on disk; if that has failed, what is there holds again, unless something else was set since."""
        unwritten = self._unwritten[topic]
        unwritten.writes -= 1
        if not unwritten.writes:
            del self._unwritten[topic]
        if not failed:
            unwritten.on_disk = kept
        elif self.messages.get(topic) is kept:
            self._take_out(topic)
            if unwritten.on_disk is not None:
                self._keep(unwritten.on_disk)

    def matching(self, topic_filter: str) -> Iterator[list[Message]]:
        """What is there and has not expired, a few topics at a time; between two steps anything may change."""
        wild = "+" in topic_filter or "#" in topic_filter
        topics = list(self.messages) if wild else [topic_filter]
        for start in range(0, len(topics), AT_ONCE):
            now = self.now()
            few = [topic for topic in topics[start : start + AT_ONCE] if not wild or topic_matches(topic_filter, topic)]
            found = [message for message in map(self.messages.get, few) if message is not None]
            yield [message for message in found if message.expires is None or message.expires > now]

    def expire(self) -> list[Put]:
        now = self.now()
        gone = [topic for topic, each in self.messages.items() if each.expires is not None and each.expires <= now]
        for topic in gone:
            self.forget(topic)
        return [Put(RETAINED, topic, None) for topic in gone]

    def of(self, is_one: Callable[[str | None], bool]) -> list[str]:
        """The topics of what these publishers said."""
        return [topic for topic, message in self.messages.items() if is_one(message.publisher)]

    def load(self) -> None:
        for topic, data in self.journal.load(RETAINED).items():
            row = _DECODER.decode(data)
            self._keep(
                Message(
                    topic,
                    row.payload,
                    row.qos,
                    True,
                    row.expires,
                    row.payload_format,
                    row.content_type,
                    row.response_topic,
                    row.correlation,
                    row.properties,
                    row.near_properties,
                    row.event,
                    publisher=row.publisher,
                )
            )

    def _keep(self, message: Message) -> None:
        self.messages[message.topic] = message
        self._size += size_of_kept(message)

    def forget(self, topic: str) -> None:
        """In memory; what is to be written for that is the caller's business."""
        self._take_out(topic)
        if topic in self._unwritten:
            self._unwritten[topic].on_disk = None

    def _take_out(self, topic: str) -> None:
        message = self.messages.pop(topic, None)
        if message is not None:
            self._size -= size_of_kept(message)
