"""What was recorded: the journal, and the lake for what the journal does not have any more.  All of it for worker threads.

Only so much is read for one answer; who asks is told if there was more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from nearcast.errors import OffsetTrimmed, UnknownName
from nearcast.journal import (
    ClientEntry,
    ContextEntry,
    EventEntry,
    Journal,
    Record,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
)
from nearcast.model.time import Instant, to_datetime
from nearcast.model.value_text import attributes_in, value_text
from nearcast.mqtt.positions import ContextReport, context_payload

FIRST_LOOK: Final = 10_000
"""Records of the first look back; every further one is four times as long."""

MOST_READ: Final = 200_000
"""Records that are read for one answer."""

R = TypeVar("R", bound=Record)
Numbered = tuple[int, Record]


def back_from(
    journal: Journal,
    last: int,
    kinds: Sequence[type[Record]],
    since: Instant | None = None,
    until: Instant | None = None,
) -> Iterator[list[Numbered]]:
    """Stretches of the journal, the latest first, each in the order of its records; not more than ``MOST_READ`` in all."""
    size, left = FIRST_LOOK, MOST_READ
    while last > journal.oldest and left > 0:
        size = min(size, left)
        first = max(journal.oldest, last - size)
        try:
            yield [each for chunk in journal.read(first, last, since=since, until=until, kinds=kinds) for each in chunk]
        except OffsetTrimmed:
            continue  # it was there a moment ago: begin where it begins now
        last, size, left = first, size * 4, left - size


def offset_at(journal: Journal, at: Instant) -> int:
    """Where the journal goes on after that time: everything that was recorded by then is below."""
    for chunk in journal.read(journal.oldest, since=at + 1, limit=1):
        return chunk[0][0]
    return journal.stored


def find_event(journal: Journal, lake: Path, name: str) -> tuple[int, EventEntry]:
    """The newest event of that id; ``UnknownName`` if none is found."""
    for stretch in back_from(journal, journal.stored, (EventEntry,)):
        for offset, record in reversed(stretch):
            if isinstance(record, EventEntry) and record.id == name:
                return offset, record
    found = Lake(lake).event(name)
    if found is None:
        raise UnknownName(f"event {name!r:.80} is not recorded, or too long ago; plain messages of quality 0 are not")
    return found


@dataclass(frozen=True, slots=True)
class Lake:
    """The broker's own tables, as it exports them: ``journal.lake``."""

    folder: Path

    def event(self, name: str) -> tuple[int, EventEntry] | None:
        rows = self._rows("events", lambda field: field("event") == name)
        return max((self._event(row) for row in rows), default=None, key=lambda each: each[0])

    def oldest(self) -> Instant | None:
        """The time of the first row of a day that is there."""
        import pyarrow.compute as pc

        days = sorted(self.folder.glob("reports/date=*"))[:1] + sorted(self.folder.glob("events/date=*"))[:1]
        tables = [self._table(day.parent.name, None, day.name, ["time"]) for day in days]
        times = [pc.min(table["time"]).as_py() for table in tables if table is not None and len(table)]
        return min(times, default=None)

    def records(self, at: Instant, seconds: float) -> list[Numbered]:
        """Reports and events of the time until ``at``, in their order."""
        since = at - round(seconds * 1_000_000)

        def then(field: Any) -> Any:
            import pyarrow as pa

            low, high = (pa.scalar(each, pa.timestamp("us", "UTC")) for each in (since, at))
            return (field("time") >= low) & (field("time") <= high)

        days = {to_datetime(each).date().isoformat() for each in (since, at)}
        found: list[Numbered] = []
        for day in sorted(days):
            found += [(row["offset"], _report(row)) for row in self._rows("reports", then, f"date={day}")]
            found += [self._event(row) for row in self._rows("events", then, f"date={day}")]
        return sorted(found, key=lambda each: each[0])

    def of_client(self, identity: str, below: int) -> list[Numbered]:
        """All that is there of one client from before an offset, in its order."""

        def own(field: Any) -> Any:
            return (field("client") == identity) & (field("offset") < below)

        kinds = {"reports": _report, "contexts": _context, "clients": _client, "subscriptions": _subscription}
        found = [(row["offset"], made(row)) for table, made in kinds.items() for row in self._rows(table, own)]
        return sorted(found, key=lambda each: each[0])

    def _rows(self, table: str, wanted: Any = None, day: str = "") -> list[dict[str, Any]]:
        found = self._table(table, wanted, day)
        return [] if found is None else cast("list[dict[str, Any]]", found.to_pylist())

    def _table(self, table: str, wanted: Any = None, day: str = "", columns: list[str] | None = None) -> Any:
        """As Arrow has it, with times as microseconds; none if there is nothing."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        files = sorted(str(file) for file in (self.folder / table).glob(f"{day or 'date=*'}/*.parquet"))
        if not files:
            return None
        try:
            source = ds.dataset(files, format="parquet")
            found = source.head(MOST_READ, columns=columns, filter=None if wanted is None else wanted(pc.field))
        except (OSError, pa.ArrowInvalid):
            return None  # just being replaced; the next look finds it
        for place, column in enumerate(found.schema):
            if pa.types.is_timestamp(column.type):
                instants = found[column.name].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
                found = found.set_column(place, column.name, instants)
        return found

    @staticmethod
    def _event(row: dict[str, Any]) -> tuple[int, EventEntry]:
        attributes = attributes_in(row["attributes"]) if row["attributes"] else {}
        entry = EventEntry(
            row["event"],
            row["topic"],
            row["time"],
            row["payload"] or b"",
            row["publisher"],
            receivers=tuple(row["receivers"] or ()),
            lat=row["lat"],
            lon=row["lon"],
            reach=row["reach_area"],
            to=row["addressing"],
            when=row["timing"],
            lifetime=row["lifetime"],
            attributes=tuple((name, value_text(name, value)) for name, value in attributes.items()),
            tags=tuple(row["tags"] or ()),
        )
        return row["offset"], entry


def _report(row: dict[str, Any]) -> Record:
    return ReportEntry(row["time"], row["client"], row["lat"], row["lon"])


def _client(row: dict[str, Any]) -> Record:
    return ClientEntry(row["time"], row["client"], row["state"])


def _context(row: dict[str, Any]) -> Record:
    text = row["attributes"]
    attributes = None if text is None else context_payload(ContextReport(attributes_in(text)))
    return ContextEntry(row["time"], row["client"], row["name"], attributes)


def _subscription(row: dict[str, Any]) -> Record:
    return SubscriptionEntry(
        row["time"],
        row["client"],
        row["subscription"],
        row["action"],
        row["topic_filter"],
        row["area"],
        row["condition"],
        row["frame_since"],
        row["frame_until"],
        bool(row["no_local"]),
    )


def last_scheme(records: Iterable[Numbered]) -> str | None:
    """To which everybody was brought last."""
    schemes = [
        record.target for _, record in records if isinstance(record, TransitionEntry) and record.host == "broker"
    ]
    return schemes[-1] if schemes else None
