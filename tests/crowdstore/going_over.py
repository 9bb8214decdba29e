"""Crowds that can run either mechanism and go over from one to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from tests.crowdstore.crowd import HERE, Crowd

from nearcast.crowdstore.choosing import Choosing, Rule
from nearcast.crowdstore.objects import ObjectKey, SubscriptionKey
from nearcast.runtime.host import Component
from nearcast.runtime.simulation.plane import Plane
from nearcast.transition.specification import MechanismSpec

SIDE: Final = 40.0
LOCAL: Final = MechanismSpec("PL/SG")


def cells(columns: int, rows: int, **parameters: Any) -> MechanismSpec:
    """DCS with so many cells, from the origin on to the north-east."""
    plane = Plane(HERE)
    # Not quite to the end: else a rounding error would add a row.
    low, high = plane.to_point(0.0, 0.0), plane.to_point(columns * SIDE - 0.1, rows * SIDE - 0.1)
    return MechanismSpec.of("DCS", south=low.lat, west=low.lon, north=high.lat, east=high.lon, side=SIDE, **parameters)


class Choosers(Crowd):
    """Each host has a ``Choosing``; with a rule they decide for themselves."""

    def __init__(
        self, places: Sequence[tuple[float, float]], mechanism: MechanismSpec, rule: Rule | None = None, **rest: Any
    ) -> None:
        self.choosers: dict[str, Choosing] = {}
        self._rule = rule
        super().__init__(places, mechanism, further=self._choosing, **rest)

    def _choosing(self, name: str) -> Sequence[Component]:
        self.choosers[name] = Choosing(self._rule)
        return [self.choosers[name]]

    def running(self) -> set[str]:
        """The names of what hosts run that are here."""
        return {self.stores[name].running.name for name, host in self.world.hosts.items() if host.up}

    def heard_of(self) -> Counter[tuple[SubscriptionKey, ObjectKey]]:
        return Counter(self.heard.notified)

    def outcomes(self, operation: str) -> list[str]:
        """How operations of that kind have ended: ``ok``, or why not."""
        return ["ok" if it.ok else str(it.failure) for name, it in self.heard.outcomes if name == operation]
