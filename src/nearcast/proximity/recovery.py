"""Events that were missed behind a partition: asked for by their numbers, and sent again (STEAM 4.3)."""

from __future__ import annotations

from typing import Final, Protocol

from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.proximity.discovery import Discovery, Relevant
from nearcast.proximity.messages import Missed
from nearcast.proximity.nucleus import Local, Nucleus
from nearcast.proximity.outbox import Outbox
from nearcast.proximity.relay import Relay


class Spread(Protocol):
    def __call__(self, event: Event, number: int, local: Local, copy: int) -> None:
        """Send the event, as the copy of that number."""


class Recovery:
    """Both sides of it: who was cut off, and who kept what it missed."""

    def __init__(self, nucleus: Nucleus, discovery: Discovery, relay: Relay, outbox: Outbox, spread: Spread) -> None:
        self._nucleus: Final = nucleus
        self._discovery: Final = discovery
        self._relay: Final = relay
        self._outbox: Final = outbox
        self._spread: Final = spread
        self.sent_again = 0

    def catch_up(self, relevant: Relevant, latest: int) -> None:
        """A beacon said how far the producer is: who lacks something asks for it; who is new here has missed nothing."""
        numbers = self._nucleus.numbers(relevant.stream)
        if numbers.since is None:
            numbers.since = latest
        elif relevant.announcement.event_type.attributes.persistence:
            me, now = self._nucleus.host.name, self._nucleus.host.now()
            for first, last in numbers.missing(latest):
                self._outbox.send(Missed(relevant.group, me, now, *relevant.stream, first, last, relevant.relay))

    def asked(self, missed: Missed, here: Point) -> None:
        """The producer answers to the whole group; members on the way pass the question on."""
        local = self._nucleus.locals.get(missed.subject)
        if missed.producer == self._nucleus.host.name and local is not None and local.group == missed.group:
            now = self._nucleus.host.now()
            for number, event in self._nucleus.cache.again(missed.subject, missed.first, missed.last, now):
                self.sent_again += 1
                self._spread(event, number, local, self.sent_again)
            return
        known = self._discovery.find(missed.producer, missed.subject)
        member = known is not None and known.group == missed.group and missed.subject in self._nucleus.interests
        if missed.relay and member:
            self._relay.forward(lambda: self._outbox.send(missed), here)
