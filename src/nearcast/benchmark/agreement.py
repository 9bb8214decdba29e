"""Whether a system answers what the definition of delivery says, outside a border band of 0.1 % of the radius.

Systems round positions and take the earth for slightly different spheres; within the band both answers count as
right, everywhere else a difference is a difference and is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from nearcast.benchmark.bare_kernel import BareKernel
from nearcast.benchmark.peers.peer import Pairs
from nearcast.benchmark.plane import great_circle
from nearcast.benchmark.workload import RADIUS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nearcast.benchmark.workload import City

BAND: Final = 0.001


@dataclass(frozen=True, slots=True)
class Agreement:
    """``lacking`` answers were not given, ``superfluous`` ones should not have been."""

    answers: int
    lacking: int
    superfluous: int

    def __add__(self, other: Agreement) -> Agreement:
        return Agreement(
            self.answers + other.answers, self.lacking + other.lacking, self.superfluous + other.superfluous
        )


class Truth:
    """The exact answers for the first events of a city, by the haversine formula over every possible pair."""

    def __init__(self, world: City, events: int) -> None:
        self.clients, self.events = len(world.ids), events
        x, y, event_x, event_y = world.plane()
        kernel = BareKernel.build(x, y, RADIUS * (1 + 2 * BAND))
        offsets, receivers = kernel.room(events)
        total = kernel.match(*kernel.locate(event_x[:events], event_y[:events]), offsets, receivers)
        client = receivers[:total].astype(np.int64)
        event = np.repeat(np.arange(events, dtype=np.int64), np.diff(offsets))
        metres = great_circle(world.lat[client], world.lon[client], world.events.lat[event], world.events.lon[event])
        accepted = self._accepted(world)
        self._keys = event * self.clients + client
        self._surely = metres <= RADIUS * (1 - BAND)
        self._possibly = metres <= RADIUS * (1 + BAND)
        self._wanted = accepted[world.interest[client], event]
        self._accepted_by_interest, self._interest = accepted, world.interest

    def check(self, pairs: Pairs, first: int, stop: int, *, filtered: bool) -> Agreement:
        """Compare answers for events ``first`` to ``stop``; ``filtered`` if topics and predicates are applied."""
        low, high = np.searchsorted(self._keys // self.clients, (first, stop))
        part = slice(int(low), int(high))
        counts = self._wanted[part] if filtered else np.ones(part.stop - part.start, np.bool_)
        given = np.sort((pairs.event + first) * self.clients + pairs.client)
        sure = self._keys[part][self._surely[part] & counts]
        possible = self._keys[part][self._possibly[part] & counts]
        repeated = int((np.diff(given) == 0).sum())
        return Agreement(
            answers=len(given),
            lacking=int((~np.isin(sure, given)).sum()),
            superfluous=int((~np.isin(given, possible)).sum()) + repeated,
        )

    def filtered(self, pairs: Pairs, first: int) -> Pairs:
        """What is left of purely spatial answers when topics and predicates are applied."""
        wanted = self._accepted_by_interest[self._interest[pairs.client], pairs.event + first]
        return Pairs(pairs.event[wanted], pairs.client[wanted])

    def _accepted(self, world: City) -> NDArray[np.bool_]:
        events = world.events.part(0, self.events)
        return np.stack([interest.accepts(events) for interest in world.interests])
