"""What is known of one client at one time, and how the records of the journal change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.journal import ClientEntry, ContextEntry, ReportEntry
from nearcast.model.delivery import addressed_by, within_reach
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT, POSITION, Context
from nearcast.model.values import Value
from nearcast.mqtt.positions import context_in

PresenceRecord = ReportEntry | ContextEntry | ClientEntry
PRESENCE_RECORDS: Final = (ReportEntry, ContextEntry, ClientEntry)


@dataclass(slots=True)
class Known:
    """One client."""

    position: Point | None = None
    contexts: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    present: bool = False

    def copy(self) -> Known:
        return Known(self.position, dict(self.contexts), self.present)

    def seen(self) -> Iterator[tuple[str, Context]]:
        """What constraints are tested against, as ``ClientHistory.contexts_at`` says it."""
        if not self.present:
            return
        own: Context = {} if self.position is None else {POSITION: self.position}
        for name, context in self.contexts.items():
            yield name, {**own, **context}
        if not self.contexts:
            yield IMPLICIT_CONTEXT, own

    def concerned(self, event: Event) -> bool:
        """Whether the event is relevant to a client of whom this is known (``delivery.relevant``)."""
        return within_reach(event.reach, self.position) and (
            event.to is None or addressed_by(event, (context for _, context in self.seen()))
        )

    def apply(self, record: PresenceRecord) -> None:
        """It was recorded next."""
        match record:
            case ReportEntry(lat=float() as lat, lon=float() as lon):
                self.position, self.present = Point(lat, lon), True
            case ReportEntry():
                self.position = None
            case ContextEntry(name=name, attributes=None) if name == IMPLICIT_CONTEXT:  # its session is over
                self.position, self.contexts, self.present = None, {}, False
            case ContextEntry(attributes=None):
                self.contexts.pop(record.name, None)
            case ContextEntry():
                self.contexts[record.name], self.present = context_attributes(record), True
            case ClientEntry(what="joined"):
                # A new session; a broker that was killed had no time to record the end of the one before.
                self.position, self.contexts, self.present = None, {}, True
            case ClientEntry(what="returned"):
                self.present = True
            case _:  # a connection was lost: that ends nothing before the session ends
                pass


def context_attributes(record: ContextEntry) -> Mapping[str, Value]:
    report = context_in(record.attributes or b"{}")
    return {} if report is None else report.attributes
