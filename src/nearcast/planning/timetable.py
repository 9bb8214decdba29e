"""Transitions at set times: what the experiments of the documents do, and operators who know their day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.transition.specification import MechanismSpec


@dataclass(frozen=True, slots=True)
class TimetableEntry:
    """That scheme, so many seconds after the start of the timetable."""

    seconds: float
    scheme: MechanismSpec
    share: float = 1.0
    """Of the clients, drawn at random; below 1 newcomers stay with the scheme that there was."""


class Timetable(Component):
    """After ``PlannedBroker`` among the components of the broker's host."""

    def __init__(self, entries: Sequence[TimetableEntry], start: Instant | None = None) -> None:
        """``start``: now, if not given.  A broker that restarts leaves out what is over, and remembers what came of it."""
        self._entries: Final = entries
        self._start: Final = start

    def start(self, host: Host) -> None:
        broker, random = host.component(PlannedBroker), host.random("timetable")

        def execute(entry: TimetableEntry) -> None:
            if entry.share >= 1.0:
                broker.transition(entry.scheme)
            else:
                clients = broker.clients
                broker.transition(entry.scheme, random.sample(clients, round(entry.share * len(clients))))

        elapsed = 0.0 if self._start is None else (host.now() - self._start) / MICROSECONDS
        for entry in self._entries:
            if entry.seconds >= elapsed:
                host.timers.after(entry.seconds - elapsed, lambda entry=entry: execute(entry))  # type: ignore[misc]
