"""Position reports as they come in: some late, some twice, some from clocks that are wrong, some vague.

A report may say when its position was fixed and how accurate that is (metres around it, within which the client probably is).  What
becomes of it follows from what the client said before, and nothing else:

- **ahead**: its time lies more than a tolerance after the broker's.  That clock is wrong, and so is the order of all that it says: refused.
- **duplicate**: the same time and the same place as one of the newest few.  Nothing happens.
- **late**: a time before the newest one that the client has said.  It is recorded, but the client has been elsewhere since: it does not move.
- **vague**: less accurate than is asked for.  The client moves as far as deliveries are concerned, which have nothing better; for presence it
  stays where it was, since a position that may be anywhere within a kilometre would enter and leave every fence in between.
- **plain**: everything else.  Of two places at one time the one that came later counts.

A report without a time is one of this moment: it is in the order in which it comes, and has no part in the order of those that say one.
What is told of a time that is ahead, but within the tolerance, is the time at which it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nearcast.errors import InvalidPosition
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant, duration_text, to_text

REMEMBERED: Final = 8
"""So many of the newest fixes of a client are recognised when they come again."""


class Treatment(StrEnum):
    PLAIN = "plain"
    VAGUE = "vague"
    LATE = "late"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class FixRules:
    ahead: int = 30 * MICROSECONDS
    """Microseconds by which a client's clock may be ahead of the broker's."""

    accuracy: float = 100.0
    """Metres: what is worse is vague."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A position as it was reported."""

    point: Point
    said: Instant | None = None
    """When it was fixed, by the client's clock."""

    accuracy: float | None = None
    """Metres; not said: as good as can be."""

    def at(self, came: Instant) -> Instant:
        """When the client was there."""
        return came if self.said is None else min(self.said, came)


@dataclass(slots=True, eq=False)
class FixOrder:
    """What is remembered of the times that one client has said."""

    newest: Instant | None = None
    recent: tuple[tuple[Instant, Point], ...] = ()

    def treat(self, fix: Fix, came: Instant, rules: FixRules) -> Treatment:
        """What becomes of the next report; ``InvalidPosition`` if its clock is wrong."""
        if fix.said is not None:
            if fix.said > came + rules.ahead:
                raise InvalidPosition(
                    f"the position was fixed at {to_text(fix.said)}, which is {duration_text(fix.said - came)} ahead of the broker's "
                    f"clock and may be at most {duration_text(rules.ahead) if rules.ahead else '0s'}: set the client's clock, or leave the time out"
                )
            if (fix.said, fix.point) in self.recent:
                return Treatment.DUPLICATE
            self.recent = (*self.recent[1 - REMEMBERED :], (fix.said, fix.point))
            if self.newest is not None and fix.said < self.newest:
                return Treatment.LATE
            self.newest = fix.said
        vague = fix.accuracy is not None and fix.accuracy > rules.accuracy
        return Treatment.VAGUE if vague else Treatment.PLAIN
