"""How long those wait who deal with other times than now.  The document gives no numbers but the horizon and the longest life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidSettings
from nearcast.overlay.temporal.messages import FULLY, Depth

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporalSettings:
    interface: str = "wired"
    """The link on which routers reach each other."""

    depth: Depth = FULLY
    """Up to which branching point answers are collected; the document recommends the first (6.4.1)."""

    patience: float = 60.0
    """Seconds for which the first branching point waits for all answers; what comes later is passed on as it is."""

    margin: float = 4.0
    """By so much each further one waits less, so that who waits for it gets at least what it has."""

    resend: float = 1.5
    """Seconds after which a message that is not confirmed is sent again."""

    tries: int = 6
    """How often, before the receiver is thought to be gone."""

    indexed: tuple[str, ...] = ()
    """Attributes by which the past can be asked without a place (``attribute_index``); the same for all routers."""

    buckets: int = 16
    """Among which the values of each are spread."""

    settling: float = 15.0
    """Seconds for which a trusted node waits for further answers before it judges what these could falsify."""

    horizon: float = 3 * 365 * DAY
    """Age after which the archive forgets (6.4.1)."""

    longest_life: float = 60 * DAY
    """Of messages that never expire by themselves (6.3.3)."""

    remembered: float = 3_600.0
    """For so long after its last use it is known who has got a message."""

    lease: float = 30.0
    """Seconds after which a device that says nothing to its trusted node is away: its messages go to the mailbox."""

    kept: float = 30 * DAY
    """For so long a mailbox keeps a message that nobody asks for."""

    def __post_init__(self) -> None:
        if self.patience > DAY:
            raise InvalidSettings("nobody waits longer than a day for an answer")
        times = (self.patience, self.margin, self.resend, self.horizon, self.longest_life, self.remembered, self.lease)
        if min(times) <= 0 or self.settling < 0 or self.tries < 1 or min(self.depth, self.buckets) < 1:
            raise InvalidSettings("times are positive, and so are the depth and the numbers of tries and of buckets")
