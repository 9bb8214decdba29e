"""A simulated network on record: who was where in what context, what was sent to whom, and hop by hop how (``records``).

Only on request, and for small networks: with each message the position of everybody is written down, so that it can be worked
out afterwards who should have got it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from nearcast.model.event import Event
from nearcast.model.history import IMPLICIT_CONTEXT, Context
from nearcast.model.predicate_text import to_text
from nearcast.model.value_text import tree_of_value
from nearcast.overlay.routing.messages import Handle
from nearcast.records.writer import RecordWriter
from nearcast.runtime.observers import Observers
from nearcast.scenario.contextcast.network import RouterNetwork

TABLES: Final = ("hops", "messages", "clients", "contexts", "reports", "events", "notifications")
PATH: Final = "overlay"
_CONTEXT: Final = "context"


@contextmanager
def recording(folder: Path, about: Mapping[str, str | int | float]) -> Iterator[Observers]:
    """Observers to make a network with; what they see is a recording in that folder when all is over."""
    with RecordWriter(folder, about=dict(about)) as writer:
        observers = Observers()
        for table in TABLES:
            observers.record(table, writer.appender(table))
        yield observers


class Told:
    """What the tables of a recording are told of clients; nothing is written if nobody records."""

    def __init__(self, network: RouterNetwork) -> None:
        observers = network.simulation.observers
        self.watched: Final = observers.watched("events")
        self._simulation: Final = network.simulation
        self._clients: Final = observers.emitter("clients")
        self._contexts: Final = observers.emitter("contexts")
        self._reports: Final = observers.emitter("reports")
        self._events: Final = observers.emitter("events")
        self._notifications: Final = observers.emitter("notifications")
        self._owner: Final[dict[Handle, str]] = {}
        self._published: Final[dict[str, int]] = {}
        self._number = 0
        if self.watched:
            network.listen(self._notified)

    def came(self, client: str, handle: Handle) -> None:
        """Into an access network, where it is registered under that handle."""
        if self.watched:
            now = self._simulation.time
            self._owner[handle] = client
            self._clients(now, client, "joined", self._offset())
            self._clients(now, client, "accepting", self._offset())

    def went(self, client: str) -> None:
        """A session that is over leaves a context without a name behind."""
        if self.watched:
            self._contexts(self._simulation.time, client, IMPLICIT_CONTEXT, None, self._offset())

    def context(self, client: str, context: Context) -> None:
        if self.watched:
            tree = {name: tree_of_value(name, value) for name, value in context.items()}
            text = msgspec.json.encode(tree).decode()
            self._contexts(self._simulation.time, client, _CONTEXT, text, self._offset())

    def position(self, client: str, lat: float, lon: float) -> None:
        self._reports(self._simulation.time, client, lat, lon, self._offset())

    def published(self, event: Event) -> None:
        if self.watched:
            assert event.to is not None
            now = self._simulation.time
            self._published[event.id] = now
            nothing = (None,) * 5  # place, reach; then payload, tags and the rest
            self._events(
                now, event.id, None, event.topic, *nothing[:3], 0, None, None, *nothing[:4], to_text(event.to), None, None,
                self._offset(),
            )  # fmt: skip

    def _notified(self, event: Event, handles: frozenset[Handle]) -> None:
        now = self._simulation.time
        for client in sorted({self._owner[handle] for handle in handles}):
            self._notifications(now, event.id, client, PATH, "delivered", now - self._published[event.id], 0)

    def _offset(self) -> int:
        self._number += 1
        return self._number
