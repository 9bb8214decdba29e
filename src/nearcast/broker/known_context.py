"""What is known of one client at one time, and how the records of the journal change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nearcast.journal import ClientEntry, ContextEntry, ReportEntry
from nearcast.model.delivery import addressed_by, within_reach
from nearcast.model.evaluation import evaluate
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import IMPLICIT_CONTEXT, POSITION, Context
from nearcast.model.normal_form import Conjunct
from nearcast.model.predicate import And, properties_of
from nearcast.model.values import Value
from nearcast.mqtt.positions import context_in

PresenceRecord = ReportEntry | ContextEntry | ClientEntry
PRESENCE_RECORDS: Final = (ReportEntry, ContextEntry, ClientEntry)


@dataclass(slots=True)
class KnownContext:
    """One client."""

    position: Point | None = None
    contexts: dict[str, Mapping[str, Value]] = field(default_factory=dict)
    present: bool = False

    def copy(self) -> KnownContext:
        return KnownContext(self.position, dict(self.contexts), self.present)

    def seen(self) -> Iterator[tuple[str, Context]]:
        """What constraints are tested against, as ``ClientHistory.contexts_at`` says it."""
        if not self.present:
            return
        own: Context = {} if self.position is None else {POSITION: self.position}
        for name, context in self.contexts.items():
            yield name, {**own, **context}
        if not self.contexts:
            yield IMPLICIT_CONTEXT, own

    def concerned(self, event: Event, *, located: bool = True) -> bool:
        """Whether the event is relevant to a client of whom this is known (``delivery.relevant``).

        Not ``located``: whether it may be, since where the client is exactly only the client itself knows.
        """
        return (not located or within_reach(event.reach, self.position)) and self.addressed(event, located=located)

    def addressed(self, event: Event, *, located: bool = True) -> bool:
        """Whether one of the contexts is what the event asks for; not ``located``: whether it may be, wherever the client is."""
        if event.to is None:
            return True
        if located:
            return addressed_by(event, (context for _, context in self.seen()))
        anywhere = KnownContext(None, self.contexts, self.present)
        return any(
            evaluate(And(_elsewhere(conjunct, context)), context) is True
            for _, context in anywhere.seen()
            for conjunct in event.conjuncts
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


def _elsewhere(conjunct: Conjunct, context: Context) -> Conjunct:
    """What it asks for apart from the position, of a context that does not bring one of its own."""
    if POSITION in context:
        return conjunct
    return tuple(literal for literal in conjunct if POSITION not in properties_of(literal))


def context_attributes(record: ContextEntry) -> Mapping[str, Value]:
    report = context_in(record.attributes or b"{}")
    return {} if report is None else report.attributes
