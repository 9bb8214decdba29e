"""How long routers remember, and when adaptive propagation thinks that something pays."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.errors import InvalidSettings
from nearcast.overlay.assurance import AssuranceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSettings:
    interface: str = "wired"
    """The link on which routers reach each other."""

    tombstone: float = 600.0
    """Seconds for which a removal is remembered: longer than any message is on its way."""

    unreachable: float = 3600.0
    """Seconds for which contexts of a router out of reach are kept: the partition may heal."""

    assurance: AssuranceSettings | None = None
    """Whether messages are acknowledged hop by hop, and until then sent again; what routers say of contexts heals anyway."""

    tell_unreachable: bool = False
    """Whether a new neighbour is told of routers out of reach as well: where messages are kept for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveSettings:
    """Parameters of 5.3; their values are those of the document's examples."""

    window: float = 10.0
    """t_w, in seconds."""

    newest: float = 0.8
    """β: the weight of the newest window."""

    propagate_above: float = 1.3
    """B_th,P."""

    invalidate_below: float = 0.9
    """B_th,I: below the other, so that what hovers between the two causes no traffic."""

    def __post_init__(self) -> None:
        if not self.window > 0 or not 0 < self.newest <= 1:
            raise InvalidSettings("a window needs a length, and the weight of the newest lies between 0 and 1")
        if not 0 <= self.invalidate_below < self.propagate_above:
            raise InvalidSettings(
                f"a composite would be propagated above {self.propagate_above} and invalidated below {self.invalidate_below}; "
                "the second must be smaller"
            )
