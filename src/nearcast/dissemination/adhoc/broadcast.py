"""BROADCAST: one hop, to whoever is in range (BYPASS.KOM 4.3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.spreading import Air, Manner, Spreading
from nearcast.runtime.ports import Address


class Broadcast(Manner, frozen=True, kw_only=True):
    """To whoever is in range; nobody sends it on."""

    def mechanism(self, air: Air) -> Spreading:
        return BroadcastSpreading(air)


class BroadcastSpreading(Spreading):
    def __init__(self, air: Air) -> None:
        self._air: Final = air

    def publish(self, carried: Carried, _targets: Sequence[Address]) -> None:
        self._air.broadcast((carried,))
