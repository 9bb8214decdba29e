"""Rates per window, smoothed, and what they say: is it worth it? (5.3.2)

Smoothing starts with the first window that was measured as a whole, not with zero: there is no past to remember yet.
"""

from __future__ import annotations

import math


class Rate:
    """How often something happens in a second: counted by window, smoothed over windows (Eq. 5.2 to 5.6)."""

    __slots__ = ("count", "smoothed")

    def __init__(self) -> None:
        self.count = 0
        self.smoothed: float | None = None

    def turn(self, window: float, newest: float) -> float:
        """A window ends; the smoothed rate."""
        rate = self.count / window
        self.count = 0
        self.smoothed = rate if self.smoothed is None else newest * rate + (1 - newest) * self.smoothed
        return self.smoothed


def benefit(gained: float, updates: float) -> float:
    """Messages saved per update (Eq. 5.7, 5.8).

    What needs no updates is worth any message.  If there are neither, there is no answer, and NaN is neither above nor below a threshold.
    """
    if updates > 0:
        return gained / updates
    return math.inf if gained > 0 else math.nan
