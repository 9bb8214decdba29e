"""UNICAST: one hop, to those whom the event is for, one after the other (BYPASS.KOM 4.3.1).

Addressed frames are acknowledged and go out at a faster rate than broadcasts.  Of use where somebody knows who is near: gateways
are told by the broker (4.3.4).  Without targets nothing is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.runtime.ports import Address


class Unicast(Manner, frozen=True, kw_only=True):
    """To those whom it is for, one by one, if they are in range."""

    def mechanism(self, air: Air) -> Spreading:
        return UnicastSpreading(air)


class UnicastSpreading(Spreading):
    def __init__(self, air: Air) -> None:
        self._air: Final = air

    def publish(self, carried: Carried, targets: Sequence[Address]) -> None:
        for target in targets:
            self._air.send(target, carried)
