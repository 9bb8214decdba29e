"""Writes that will be committed together."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from nearcast.errors import InvalidRecord, JournalFailed
from nearcast.journal.entries import BITS, Record, encoder, time_of
from nearcast.model.time import LARGEST, Instant

Then: TypeAlias = Callable[[JournalFailed | None], None]
"""Called on the loop's thread when a write is on disk (none), or has failed."""

MOST_RECORDS: Final = 8_192
MOST_BYTES: Final = 4_000_000
"""A group that is as large takes no further write: those behind it would wait for too much."""

_HEADER: Final = 5
"""Bytes of a msgpack array's head: 0xdd and 32 bits of length, filled in when the group is closed."""


@dataclass(frozen=True, slots=True)
class Put:
    """A value of the broker's durable state; none deletes it."""

    table: str
    key: str
    value: bytes | None


class Group:
    """Records are encoded at once, by who writes: so a bad one is refused there, and the writer thread only hands bytes to SQLite."""

    __slots__ = ("body", "count", "first", "first_time", "kinds", "last_time", "puts", "thens", "writes")

    def __init__(self, first: int) -> None:
        self.first = first
        self.count = 0
        self.first_time: Instant = 0
        self.last_time: Instant = 0
        self.kinds = 0
        self.body = bytearray(_HEADER)
        self.puts: dict[tuple[str, str], bytes | None] = {}
        """The last put of a key wins."""
        self.thens: list[Then] = []
        self.writes = 0

    @property
    def end(self) -> int:
        return self.first + self.count

    @property
    def full(self) -> bool:
        return self.count >= MOST_RECORDS or len(self.body) >= MOST_BYTES or len(self.puts) >= MOST_RECORDS

    def add(self, records: Sequence[Record], puts: Sequence[Put], then: Then | None) -> None:
        for put in puts:
            _check_key(put)
        if records:
            self._encode(records)
        for put in puts:
            self.puts[put.table, put.key] = put.value
        if then is not None:
            self.thens.append(then)
        self.writes += 1

    def _encode(self, records: Sequence[Record]) -> None:
        body = self.body
        size = len(body)
        earliest, latest, kinds = self.first_time, self.last_time, self.kinds
        if not self.count:
            earliest = latest = time_of(records[0])
        try:
            for record in records:
                kinds |= BITS[type(record)]
                time = time_of(record)
                if time < earliest:
                    earliest = time
                elif time > latest:
                    latest = time
                encoder.encode_into(record, body, -1)
            if not -LARGEST < earliest <= latest < LARGEST:
                raise OverflowError("beyond the year 9999")
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
            del body[size:]
            raise InvalidRecord(f"a record that the journal cannot keep: {record!r} ({error!r})") from error
        self.first_time, self.last_time, self.kinds = earliest, latest, kinds
        self.count += len(records)

    def row(self, latest: Instant) -> dict[str, object]:
        """As it stands in the table of stretches; ``latest`` is the latest time of all before it."""
        self.body[:_HEADER] = b"\xdd" + self.count.to_bytes(4, "big")
        return {
            "first": self.first,
            "count": self.count,
            "first_time": self.first_time,
            "last_time": self.last_time,
            "latest": max(latest, self.last_time),
            "kinds": self.kinds,
            "size": len(self.body),
            "checksum": zlib.crc32(self.body),
            "body": self.body,
        }


def _check_key(put: Put) -> None:
    # Refused here, so that it does not fail all that shares its commit.
    if not put.key.isascii():
        try:
            put.key.encode()
        except UnicodeEncodeError as error:
            raise InvalidRecord(f"a key of {put.table} that is no Unicode text: {put.key!r} ({error})") from None
