"""What publishing asks of others: of those who wait for other times, of other brokers, and of who looks on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from mqtt5 import PubAckReasonCode, PublishPacket

from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.router import Target
from nearcast.broker.sessions.session import Session
from nearcast.errors import JournalFailed
from nearcast.journal import EventEntry, Put
from nearcast.model.event import Event

Acknowledge = Callable[[PubAckReasonCode, str | None], None]

FAILURE: Final = 0x80
"""Reason codes from here on say that something was refused."""


class TemporalAddressing(Protocol):
    """Events for whoever was or will be in a context."""

    def check(self, publisher: Session | None, event: Event) -> None:
        """``QuotaExceeded`` if no further one can be waited for."""

    def row(self, entry: EventEntry, offset: int) -> Put:
        """What is to be written with the event, so that a restart does not end the waiting."""

    def publish(self, event: Event, message: Message, publisher: Session | None) -> None:
        """It is on disk."""


class Outbound(Protocol):
    """An event on its way to other brokers."""

    puts: Sequence[Put]
    """What is to be written with the event."""

    concerned: bool
    """Whether there is a broker that it is for."""

    def written(self, failed: JournalFailed | None) -> None:
        """The event is on disk, or need not be; or it could not be written."""

    def after(self, acknowledge: Acknowledge) -> Acknowledge:
        """How to acknowledge it: perhaps not at once."""


class Beyond(Protocol):
    """Other brokers of the same federation."""

    def key(self, publisher: Session | None, event: str) -> str:
        """Under which an event of that id is recognised by all brokers."""

    def outbound(self, event: Event, message: Message, publisher: Session | None, channel: str | None) -> Outbound:
        """Whom else the event concerns; raises ``QuotaExceeded`` if too much waits for them."""

    def after(self, publisher: Session, event: str, acknowledge: Acknowledge) -> Acknowledge:
        """How to acknowledge an event that comes again: perhaps not before the first one is."""

    def came_before(self, publisher: Session, event: str) -> bool:
        """Whether an event of that id came by another broker, and is here already."""

    def pass_on(
        self,
        event: Event,
        message: Message,
        publisher: Session,
        acknowledge: Acknowledge,
        channel: str | None,
        puts: Sequence[Put],
    ) -> None:
        """Such an event, for the other brokers only: the one by which it came may be gone."""

    def plain(self, packet: PublishPacket, topic: str, publisher: Session) -> None:
        """A message of quality 0 that has nothing but a topic."""


class Spectator(Protocol):
    """Somebody who looks on for a while.  Told after the copies have gone out; it is nobody's turn until it returns."""

    def seen(self, event: Event, copies: Sequence[Target]) -> None:
        """One event, and who got it."""

    def seen_plain(self, topic: str, publisher: Session, targets: Sequence[Target]) -> None:
        """A message of quality 0 that has nothing but a topic."""

    def seen_together(
        self, count: int, event: Callable[[int], Event], receivers: Callable[[int], Sequence[int]]
    ) -> None:
        """So many events that went together; each can be asked for, and its receivers by the matcher's numbers."""
