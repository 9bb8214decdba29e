"""For how long a message for the future is kept (6.3.3, Table 6.2).

Until nothing more can satisfy its predicate (``model.temporal`` says when, for each of them), and a little longer, because what decided it
may still be on its way.  The document lets *starts in* and *contains* expire at b, before the end that proves them can be seen; here the
predicate is true at b of whoever is still there, so nothing has to be seen after it.  What never expires by itself, *after* and
*excludes*, ends with the longest life that an operator allows, or is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidEvent, InvalidSettings
from nearcast.model.event import Event
from nearcast.model.temporal import expiry
from nearcast.model.time import MICROSECONDS, Instant

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    longest: float = 60 * DAY
    """Seconds after its publication for which any message is kept: the document's example."""

    grace: float = 60.0
    """Seconds after its end for which a message stays.  The document: as long as nearly all messages need to cross the network."""

    unending: bool = True
    """Whether messages are taken that never expire by themselves."""

    def __post_init__(self) -> None:
        if not self.longest > 0 or not self.grace >= 0:
            raise InvalidSettings("messages are kept for some time, and for no less than nothing afterwards")

    def ends(self, event: Event) -> Instant:
        """The last instant at which it can become relevant to somebody."""
        assert event.when is not None
        last = event.published + round(self.longest * MICROSECONDS)
        if event.lifetime is not None:
            last = min(last, event.published + event.lifetime - 1)
        expires = expiry(event.when)
        return last if expires is None else min(last, expires)

    def forgotten(self, event: Event) -> Instant:
        """From when on it is not kept any more."""
        return self.ends(event) + 1 + round(self.grace * MICROSECONDS)

    def check(self, event: Event) -> None:
        assert event.when is not None
        if not self.unending and event.lifetime is None and expiry(event.when) is None:
            raise InvalidEvent(
                f"event {event.id!r} would wait for ever: {event.when.relation!r} never expires; give it a lifetime"
            )
