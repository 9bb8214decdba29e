"""The same announcements, subscriptions and events by way of a broker, which knows who stands in which proximity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nearcast.model.event import Event
from nearcast.proximity.event_type import Attributes
from nearcast.proximity.mechanism import Dissemination
from nearcast.proximity.messages import number_of
from nearcast.proximity.nucleus import FOREIGN, Interest, Local, Nucleus
from nearcast.proximity.uplink import Uplink
from nearcast.runtime.ports import Cancellable
from nearcast.transition.mechanism import Silence


class ThroughUplink(Dissemination):
    def __init__(self, nucleus: Nucleus, silence: Silence, uplink: Uplink) -> None:
        self._nucleus: Final = nucleus
        self._uplink: Final = uplink
        self._publish: Final[Callable[[Event], None]] = silence.guarded(uplink.publish)
        self._reports: Cancellable | None = None

    def bootstrap(self) -> None:
        if self._reports is not None:  # it was stopped a moment ago, and has not been closed yet
            return
        host, settings = self._nucleus.host, self._nucleus.settings
        self._uplink.open(self._arrived)
        for local in self._nucleus.locals.values():
            self._uplink.announce(local.announcement)
        for subject in self._nucleus.interests:
            self._subscribe(subject)
        self._report()
        self._reports = host.timers.every(settings.report_every, self._report)

    def close(self) -> None:
        if self._reports is not None:
            self._reports.cancel()
            self._reports = None
            self._uplink.close()

    def announced(self, local: Local) -> None:
        if not local.announcement.wanted:
            self._uplink.announce(local.announcement)

    def withdrawn(self, local: Local) -> None:
        if not local.announcement.wanted:
            self._uplink.withdraw(local.announcement)

    def interested(self, interest: Interest) -> None:
        self._report()
        self._subscribe(interest.subject)

    def uninterested(self, interest: Interest) -> None:
        if interest.subject in self._nucleus.interests:
            self._subscribe(interest.subject)
        else:
            self._uplink.unsubscribe(interest.subject)

    def carry(self, event: Event, number: int, local: Local) -> None:  # noqa: ARG002 - the id has the number
        self._publish(event)

    def _subscribe(self, subject: str) -> None:
        interests = self._nucleus.interests[subject]
        self._uplink.subscribe(subject, tuple(each.area for each in interests if each.area is not None))

    def _report(self) -> None:
        position = self._nucleus.position()
        if position is not None:
            self._uplink.moved(position)

    def _arrived(self, event: Event, attributes: Attributes) -> None:
        if event.publisher == self._nucleus.host.name:
            return
        try:
            number = number_of(event)
        except ValueError:
            self._nucleus.counts[FOREIGN] += 1  # an event of somebody who knows nothing of proximities
            return
        self._nucleus.arrived(event, number, attributes)
