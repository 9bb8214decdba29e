"""GOSSIP: whoever hears an event for the first time tosses a coin, and sends it on or does not (BYPASS.KOM 4.3.1).

At ``p = 1`` it is FLOODING, frame by frame: the coin has a stream of random numbers of its own.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from nearcast.dissemination.adhoc.flooding import FloodingSpreading
from nearcast.dissemination.adhoc.hesitating import HESITATION, Hesitation
from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.model.geometry import Point
from nearcast.transition.declarations import Parameter

Chance = Annotated[float, Meta(ge=0, le=1, description="with what probability a host sends an event on")]


class Gossip(Manner, frozen=True, kw_only=True):
    """Everybody sends it on with the same probability."""

    p: Chance = 0.4
    hesitation: Hesitation = HESITATION

    def mechanism(self, air: Air) -> Spreading:
        return GossipSpreading(air, self.p, self.hesitation)


class GossipSpreading(FloodingSpreading):
    p: Annotated[Chance, Parameter()]

    def __init__(self, air: Air, p: float, hesitation: float) -> None:
        super().__init__(air, hesitation)
        self.p = p
        self._coin: Final = air.random("coin").random

    def heard(self, carried: Carried, _place: Point | None) -> None:
        if self._coin() < self.p:
            self._hold(carried, self._wait() * self.hesitation)
