"""What a broker knows of its clients, kept apart from the scheme that uses it: that is what a transition can carry over
(BYPASS.KOM 4.2.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from nearcast.model.geometry import Point
from nearcast.model.subscription import Subscription
from nearcast.model.time import Instant

NEVER: Instant = -(2**62)


@dataclass(slots=True)
class ClientContext:
    """One client, as the broker sees it.  A scheme keeps of it what it needs, and forgets the rest."""

    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    measured: Instant = NEVER
    """When the newest of what follows was measured."""

    clock: int = 0
    """The tag under which it was said."""

    position: Point | None = None
    speed: float = 0.0
    heading: float | None = None
    channels: tuple[str, ...] = ()
    """Those it was assigned to, or has joined."""

    own: str | None = None
    """The one of them that it is in itself, if that is known: GRID needs no other, also where positions are forgotten."""

    def radius(self) -> float:
        """Of a circle around the client that holds all its areas of interest; 0 if it has none."""
        return max(
            (sub.area.bounding_radius() for sub in self.subscriptions.values() if sub.area is not None), default=0.0
        )

    def has_area(self) -> bool:
        """Whether it matters where the client is."""
        return any(sub.area is not None for sub in self.subscriptions.values())

    def copy(self) -> ClientContext:
        """For another scheme, which will change it."""
        return replace(self, subscriptions=dict(self.subscriptions))
