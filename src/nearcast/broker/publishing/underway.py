"""An event between the choice of its receivers and the last of its copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nearcast.broker.publishing.message import Message
from nearcast.broker.publishing.ports import Acknowledge, Outbound
from nearcast.broker.publishing.router import Target
from nearcast.broker.sessions.session import Session
from nearcast.model.event import Event
from nearcast.model.time import Instant


@dataclass(slots=True, eq=False)
class Underway:
    event: Event
    message: Message
    publisher: Session | None
    sender: str | None
    """Of whom it is; none if nobody is known."""

    copies: Sequence[Target]
    outbound: Outbound | None
    acknowledge: Acknowledge
    retained: Message | None
    """What its topic retains with it."""

    matched: Instant
    """When its copies were chosen, for its trace."""

    lasting: Sequence[Target] = ()
    """Those of the copies that are owed whatever happens."""

    @property
    def unheard(self) -> bool:
        """Nobody gets it, here or elsewhere, now or later."""
        elsewhere = self.outbound is not None and self.outbound.concerned
        return not self.copies and self.event.when is None and not elsewhere

    @property
    def told_unheard(self) -> bool:
        """It is so, and the publisher may be told.

        Of what is for a place or for certain people that would say whether somebody is there, which those who are there have not agreed to.
        """
        if not self.unheard:
            return False
        rights, event = None if self.publisher is None else self.publisher.rights, self.event
        general = event.place is None and event.reach is None and event.to is None
        return general or rights is None or rights.unrestricted


def fresh(copies: list[Target], key: str) -> list[Target]:
    """Without those who had it already, from the broker where they were before."""
    return [target for target in copies if target.session.had is None or target.session.had.add(key)]


def forget(copies: Sequence[Target], key: str | None) -> None:
    """They did not get it."""
    for target in copies:
        if target.session.had is not None and key is not None:
            target.session.had.pop(key, None)
