"""What an application may choose."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.proximity.announcement import identifier
from nearcast.transition.specification import MechanismSpec

AIR: Final = MechanismSpec("AIR")
UPLINK: Final = MechanismSpec("UPLINK")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProximitySettings:
    """Times are seconds, lengths metres."""

    mechanism: MechanismSpec = AIR
    """The one to start with."""

    interface: str = "wifi"
    port: int = 20
    transmission_range: float = 200.0
    """T_R, of the own radio (STEAM 5)."""

    beacon_period: float = 1.0
    """Shorter: proximities are found sooner, for more messages (STEAM 4.5)."""

    forgotten_after: float = 3.0
    """Beacon periods of a producer that moves after which it is taken for gone; the paper waits for a beacon that may never come."""

    forwards: bool = True
    gossip: float = 1.0
    """The chance to pass an event on, beyond the transmission range of its producer (STEAM 5.4: 0.8)."""

    jitter: float = 0.005
    """Who passes something on waits up to that long, so that neighbours do not speak all at once."""

    patience: float = 1.0
    """How long ordered events wait for one that is missing."""

    overlap: float = 3.0
    """How long the old mechanism goes on beside the new one: longer than a beacon period, and than a broker takes to answer."""

    report_every: float = 1.0
    """How often a broker is told where this device is."""

    identify: Callable[[str], int] = identifier

    def __post_init__(self) -> None:
        for name in ("transmission_range", "beacon_period", "forgotten_after", "report_every"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} must be positive, not {getattr(self, name)!r}")
        for name in ("jitter", "patience", "overlap"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{name} must be 0 or more, not {getattr(self, name)!r}")
        if not 0 <= self.gossip <= 1:
            raise InvalidInput(f"gossip is a probability, not {self.gossip!r}")
        if self.mechanism not in (AIR, UPLINK):
            raise InvalidInput(f"events go by {AIR} or {UPLINK}, not by {self.mechanism}")
