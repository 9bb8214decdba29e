"""Other ad hoc mechanisms at set times, by the broker's plan: for everybody, or for a few from whom it spreads (BYPASS.KOM 6.3.3, 6.3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.adhoc.carrier import LOCAL
from nearcast.dissemination.broker_settings import EVERYBODY
from nearcast.dissemination.planned_broker import PlannedBroker
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.host import Component, Host
from nearcast.transition.plan import Exchange
from nearcast.transition.specification import MechanismSpec


@dataclass(frozen=True, slots=True)
class AdHocEntry:
    """That mechanism, so many seconds after the start of the timetable."""

    seconds: float
    mechanism: MechanismSpec
    initiators: int | None = None
    """So many clients, drawn at random, are told; none: everybody."""

    proxy: str = LOCAL
    """Which of their mechanisms it is: how events spread, or over what transport."""


class AdHocTimetable(Component):
    """After ``TransitionCoordinator`` and ``PlannedBroker`` among the components of the broker's host, which itself changes nothing."""

    def __init__(self, entries: Sequence[AdHocEntry], start: Instant) -> None:
        """A broker that restarts leaves out what is over."""
        self._entries: Final = entries
        self._start: Final = start

    def start(self, host: Host) -> None:
        broker = host.component(PlannedBroker)
        exchange = broker.exchange
        random = host.random("ad hoc timetable")

        def execute(entry: AdHocEntry) -> None:
            told, change = broker.clients, Exchange(entry.proxy, entry.mechanism)
            if entry.initiators is None:
                exchange.tell([change], told, EVERYBODY)
            else:
                exchange.tell([change], random.sample(told, min(entry.initiators, len(told))))

        elapsed = (host.now() - self._start) / MICROSECONDS
        for entry in self._entries:
            if entry.seconds >= elapsed:
                host.timers.after(entry.seconds - elapsed, lambda entry=entry: execute(entry))  # type: ignore[misc]
