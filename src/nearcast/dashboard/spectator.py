"""A sample of what is published, with its receivers: a few events in every period, and how long they took.

While the sample of a period is full, nobody looks on: ``Publishing.spectator`` is empty, and a publish costs what it always costs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from nearcast.broker.publishing.publishing import Publishing
from nearcast.broker.publishing.router import Target
from nearcast.broker.sessions.session import Session
from nearcast.dashboard.contract import ShownEvent
from nearcast.dashboard.shapes import area_shape
from nearcast.model.event import Event
from nearcast.model.time import Instant

log: Final = logging.getLogger(__name__)
A_SECOND: Final = 50
"""Events that are shown."""

MOST_RECEIVERS: Final = 200
"""Of one event, by name; all are counted."""


class Sample:
    """Looks on while there is room."""

    def __init__(self, publishing: Publishing, now: Callable[[], Instant], most: int) -> None:
        self._publishing: Final = publishing
        self._now: Final = now
        self._most: Final = most
        self._number: Final = publishing.router.matcher.number
        self._events: list[ShownEvent] = []
        self._delays: list[int] = []
        self._open = False

    def begin(self) -> None:
        """There is room again."""
        self._open = True
        self._publishing.spectator = self

    def end(self) -> None:
        self._open = False
        if self._publishing.spectator is self:
            self._publishing.spectator = None

    def taken(self) -> list[ShownEvent]:
        """Those since this was last asked for."""
        events, self._events = self._events, []
        return events

    def delays(self) -> list[int]:
        """The same: microseconds."""
        delays, self._delays = self._delays, []
        return delays

    # Spectator.  Whatever goes wrong here must not stop what is looked at.

    def seen(self, event: Event, copies: Sequence[Target], *, timed: bool = True) -> None:
        try:
            numbers = [self._number(target.session.client) for target in copies[:MOST_RECEIVERS]]
            self._add(event, [number for number in numbers if number is not None], len(copies))
            if timed:
                self._delays.append(self._now() - event.published)
        except Exception:
            log.exception("what was published cannot be shown")
            self.end()

    def seen_plain(self, topic: str, publisher: Session, targets: Sequence[Target]) -> None:
        # Nobody has noted when it came in, which would cost more than sending it on: it says nothing of delays.
        self.seen(Event("-", topic, self._now(), publisher=publisher.client), targets, timed=False)

    def seen_together(
        self, count: int, event: Callable[[int], Event], receivers: Callable[[int], Sequence[int]]
    ) -> None:
        try:
            for number in range(min(count, self._most - len(self._events))):
                numbers = receivers(number)
                shown = event(number)
                self._add(shown, list(numbers[:MOST_RECEIVERS]), len(numbers))
                self._delays.append(self._now() - shown.published)
        except Exception:
            log.exception("what was published cannot be shown")
            self.end()

    def _add(self, event: Event, receivers: list[int], count: int) -> None:
        place = event.place
        self._events.append(
            ShownEvent(
                event.id,
                event.topic,
                event.published,
                None if place is None else place.lat,
                None if place is None else place.lon,
                area_shape(event.reach, place),
                event.publisher,
                receivers,
                count,
            )
        )
        if len(self._events) >= self._most:
            self.end()
