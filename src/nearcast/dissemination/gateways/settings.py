"""How a broker uses gateways, and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from nearcast.dissemination.gateways.count import Count, Share
from nearcast.dissemination.gateways.messages import AGAIN
from nearcast.errors import InvalidInput
from nearcast.transition.specification import MechanismSpec

SKC_LEACH: Final = MechanismSpec("SKC-LEACH")
"""What the document uses where it compares other things (BYPASS.KOM 6.3.2)."""


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    selection: MechanismSpec = SKC_LEACH
    """The algorithm, at first; afterwards what the proxy says."""

    count: Count = field(default_factory=Share)
    """How many gateways for these candidates."""

    schemes: frozenset[str] | None = None
    """Only clients in these filter schemes: ATTRACT, at attraction points (5.3.2); none: everybody."""

    addressed: bool = False
    """Whether gateways send to each member (UNICAST): then they need addresses, and relays are larger (6.4.2)."""

    reach: float | None = None
    """Metres: members that are farther from their gateway are told directly at once.  None, as in the document: nobody is; and right where
    events go on for several hops."""

    acknowledged: bool = True
    """Whether members acknowledge, so that those who were missed can be told directly; the document has nothing of that kind."""

    # What is here for acknowledgements is read when the broker starts.
    window: float = 0.25
    """Seconds for which a client collects acknowledgements."""

    deadline: float = 1.0
    """Seconds from the relay to when the last acknowledgement should have come: two cellular links, the local one and the window."""

    doubt: float = 10.0
    """Seconds for which those are told directly, and are no gateways, who were missed again and again, or have reached nobody."""

    oldest: float = 30.0
    """Seconds: who is where, it may have said that long ago."""

    renewed: float = 3 * AGAIN
    """Seconds: who has not registered again for so long is no candidate any more.  Cellular links do not keep the order: a registration
    may come after the goodbye, and nobody would say goodbye for it again."""

    most: int = 200
    """Candidates that are considered together; more are divided, by place."""

    @property
    def unwanted_too(self) -> bool:
        """Whether members acknowledge also what they do not want.  Who is known by a channel is told of much that it does not want: it would
        be taken for missed, told in vain, and soon for one who cannot be reached.
        """
        return self.schemes is not None

    def __post_init__(self) -> None:
        if not 0 < self.window < self.deadline < math.inf:
            raise InvalidInput(
                f"acknowledgements collected for {self.window!r} s cannot come within {self.deadline!r} s; "
                "the deadline must be later than the window"
            )
        if not (self.doubt >= 0 and self.oldest > 0 and self.renewed > 0 and self.most >= 2):
            raise InvalidInput(
                "doubts last no negative time, positions and registrations have some age, and two at least are considered together"
            )
        if self.reach is not None and not self.reach >= 0:
            raise InvalidInput(f"a reach is a number of metres, or none, not {self.reach!r}")


@dataclass(frozen=True, slots=True)
class GatewayStatistics:
    registered: int
    """Clients that can be gateways, or be served by one."""

    events: int
    """That gateways were to pass on."""

    gateways: int
    """How often clients were chosen; also those who had nobody to serve."""

    members: int
    """How often clients were to be reached by a gateway."""

    directly: int
    """How often clients were told directly at once, gateways without members among them."""

    acknowledged: int
    missed: int
    """Members who had not acknowledged by the deadline, and were told directly."""

    waiting: int
    """Events for which the deadline is still to come."""

    doubtful: int
