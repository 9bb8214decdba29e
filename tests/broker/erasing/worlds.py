"""People who do things that are recorded, without a broker; and what is to be left when some of them are erased."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from tests.broker.erasing.markers import MARKER

from nearcast.broker.access.users import HASHER
from nearcast.broker.erasing.erasure import Erasure
from nearcast.broker.erasing.offline import offline
from nearcast.broker.erasing.plan import Plan
from nearcast.broker.publishing.retained import RETAINED, RetainedRow
from nearcast.broker.settings import BrokerSettings
from nearcast.journal import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    LateReportEntry,
    Put,
    Record,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.journal.archive import Archive

PEOPLE = ("ada", "bob", "eve")
HASH = HASHER.hash("a password")


def mark(person: str) -> str:
    return f"{MARKER}-{person}"


@dataclass
class Done:
    """A record, and whose it is."""

    record: Record
    owner: str | None
    of: int | None = None
    """The event that it speaks of."""


@dataclass
class World:
    """A data folder, and what was done in it."""

    folder: Path
    done: dict[int, Done] = field(default_factory=dict)
    exported: int = 0
    identities: dict[str, set[str]] = field(default_factory=dict)
    retained: dict[str, str] = field(default_factory=dict)
    """By topic, who said it last."""

    numbers: int = 0

    def prepare(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "users").write_text("".join(f"{mark(person)}:{HASH}\n" for person in PEOPLE))

    @property
    def settings(self) -> BrokerSettings:
        return BrokerSettings(data=self.folder)

    @contextmanager
    def opened(self) -> Iterator[Erasure]:
        with offline(self.settings, 0, lambda *_: None) as erasure:
            yield erasure

    def act(self, erasure: Erasure, person: str, kind: str, others: tuple[str, ...]) -> None:
        """One thing that somebody does, with a marker in it."""
        who = self._identity(erasure, person)
        text, at, offset = mark(person), 1_700_000_000_000_000 + self.numbers, erasure.journal.head
        self.numbers += 1
        receivers = tuple(self._identity(erasure, each) for each in others)
        owed = tuple((each, 1, False, ()) for each in receivers[:1])
        event = EventEntry(
            f"{text}-{self.numbers}", f"news/{text}", at, text.encode() * 20, who, 1, receivers, owed=owed
        )
        events = [number for number, each in self.done.items() if isinstance(each.record, EventEntry)]
        made: list[tuple[Record, str | None, int | None]] = []
        puts: list[Put] = []
        match kind:
            case "event":
                made = [(event, person, None)]
            case "retained":
                made = [(event, person, None)]
                topic = f"kept/{self.numbers % 3}"
                row = RetainedRow(text.encode(), 1, None, 0, None, None, None, (), (), event.id, who)
                puts, self.retained[topic] = [Put(RETAINED, topic, msgspec.msgpack.encode(row))], person
            case "delivery" if events and others:
                of = events[self.numbers % len(events)]
                copy = msgspec.structs.replace(self._event(of), receivers=receivers, owed=owed)
                made = [(DeliveryEntry(at, of, copy), self.done[of].owner, of)]
            case "unpublish" if events:
                of = events[self.numbers % len(events)]
                made = [(UnpublishEntry(at, self._event(of).id, of), self.done[of].owner, of)]
            case "context":
                made = [(ContextEntry(at, who, text, b'{"name": "%s"}' % text.encode()), person, None)]
            case "subscription":
                made = [(SubscriptionEntry(at, who, text, "subscribed", f"{text}/#", "500"), person, None)]
            case "client":
                made = [(ClientEntry(at, who, "joined"), person, None)]
            case "transition":
                made = [(TransitionEntry(at, who, "scheme", "RADIAL", "EGRID"), person, None)]
            case "late":
                made = [(LateReportEntry(at, who, 1.0, 2.0, at), person, None)]
            case _:
                made = [(ReportEntry(at, who, 49.8, 8.6), person, None)]
        erasure.journal.write([record for record, _, _ in made], puts)
        for number, (record, owner, of_event) in enumerate(made, offset):
            self.done[number] = Done(record, owner, of_event)

    def _event(self, offset: int) -> EventEntry:
        record = self.done[offset].record
        assert isinstance(record, EventEntry)
        return record

    def _identity(self, erasure: Erasure, person: str) -> str:
        name = mark(person)
        identity = erasure.identities.of(f"{name}\0{name}-phone-{self.numbers % 2}")
        self.identities.setdefault(person, set()).add(identity)
        if self.numbers % 5 == 0:  # the map forgets clients without an id of their own
            erasure.identities.forget([f"{name}\0{name}-phone-{self.numbers % 2}"])
        return identity

    def export(self, erasure: Erasure) -> None:
        erasure._on_disk()
        Archive(erasure.journal, erasure.lake, 60.0).export()

    def erase(self, erasure: Erasure, person: str) -> None:
        erasure.carry_out(Plan(user=mark(person)))
        self.forget(person)

    def forget(self, person: str) -> None:
        """What the records of others are without that person: the oracle."""
        gone = self.identities.pop(person, set())
        self.done = {
            offset: Done(left, each.owner, each.of)
            for offset, each in self.done.items()
            if each.owner != person and (left := _without(each.record, gone)) is not None
        }
        self.retained = {topic: who for topic, who in self.retained.items() if who != person}

    def records(self) -> dict[int, Record]:
        return {offset: each.record for offset, each in self.done.items()}


def _without(record: Record, gone: set[str]) -> Record | None:
    if isinstance(record, DeliveryEntry):
        event = _without(record.event, gone)
        assert isinstance(event, EventEntry)
        return msgspec.structs.replace(record, event=event) if event.receivers else None
    if isinstance(record, EventEntry):
        return msgspec.structs.replace(
            record,
            receivers=tuple(each for each in record.receivers if each not in gone),
            owed=tuple(each for each in record.owed if each[0] not in gone),
        )
    return record


def stored(erasure: Erasure) -> dict[int, Record]:
    return dict(chain.from_iterable(erasure.journal.read(erasure.journal.oldest)))


def in_lake(folder: Path) -> dict[int, dict[str, Any]]:
    """All rows of the lake, by their offset."""
    import pyarrow.parquet as pq

    files = sorted((folder / "lake").glob("*/date=*/*.parquet"))
    return {
        row["offset"]: {"table": file.parent.parent.name, **row}
        for file in files
        for row in pq.ParquetFile(file).read().to_pylist()
    }
