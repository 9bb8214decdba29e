"""Transitions at set times: what the experiments of the documents do, and operators who know their day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nearcast.dissemination.cloud_broker import CloudBroker
from nearcast.runtime.host import Component, Host
from nearcast.transition.specification import MechanismSpec


@dataclass(frozen=True, slots=True)
class TimetableEntry:
    """That scheme, so many seconds after the broker has started."""

    seconds: float
    scheme: MechanismSpec
    share: float = 1.0
    """Of the clients, drawn at random; below 1 newcomers stay with the scheme that there was."""


class Timetable(Component):
    """After ``CloudBroker`` among the components of the broker's host."""

    def __init__(self, entries: Sequence[TimetableEntry]) -> None:
        self._entries: Final = entries

    def start(self, host: Host) -> None:
        broker, random = host.component(CloudBroker), host.random("timetable")

        def execute(entry: TimetableEntry) -> None:
            if entry.share >= 1.0:
                broker.transition(entry.scheme)
            else:
                clients = broker.clients
                broker.transition(entry.scheme, random.sample(clients, round(entry.share * len(clients))))

        for entry in self._entries:
            host.timers.after(entry.seconds, lambda entry=entry: execute(entry))  # type: ignore[misc]
