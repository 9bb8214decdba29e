"""One client's way through the air, in one direction."""

from __future__ import annotations

from random import Random
from typing import Final

from nearcast.model.time import Instant
from nearcast.runtime.simulation.cellular_outages import Coverage
from nearcast.runtime.simulation.cellular_profile import BearerProfile
from nearcast.runtime.simulation.cellular_queue import TransmitQueue

# Why a parcel never arrived, beside the reasons that all networks share.
CELL_OVERLOADED: Final = "cell overloaded"
NO_COVERAGE: Final = "no coverage"
TRANSMISSION_LOST: Final = "transmission lost"

DRAWN_AHEAD: Final = 32
"""Latencies that a bearer draws at a time."""


class Bearer:
    """Latency, queue, and what becomes of transmissions."""

    __slots__ = (
        "_ahead",
        "_latencies",
        "_latency",
        "_latest",
        "_ordered",
        "_random",
        "coverage",
        "hazardous",
        "loss",
        "queue",
    )

    def __init__(self, profile: BearerProfile, coverage: Coverage | None, random: Random, *, ordered: bool) -> None:
        self.queue: Final = TransmitQueue(profile.bandwidth, profile.queue_bytes)
        self.coverage: Final = coverage
        self.loss: Final = profile.loss
        self.hazardous: Final = coverage is not None or profile.loss > 0
        self._latency: Final = profile.latency
        self._random: Final = random
        # What becomes of a transmission is drawn from the same stream, in turns with latencies.
        self._ahead: Final = 1 if self.hazardous else DRAWN_AHEAD
        self._latencies: list[int] = []
        """Microseconds; the next one last."""

        self._ordered: Final = ordered
        self._latest = 0

    def arrival(self, start: Instant) -> Instant:
        """When what sets out at ``start`` is at the other end, by a latency of its own."""
        if not self._latencies:
            drawn = self._latency.samples(self._random, self._ahead)
            self._latencies = [int(seconds * 1e6) for seconds in reversed(drawn)]
        arrival = start + self._latencies.pop()
        if self._ordered:
            arrival = self._latest = max(arrival, self._latest)
        return arrival

    def fate(self, size: int, departure: int) -> str | None:
        """Why the transmission that ends at ``departure`` fails; None: it does not."""
        if self.coverage is not None and self.coverage.lacks(departure - self.queue.duration(size), departure):
            return NO_COVERAGE
        return TRANSMISSION_LOST if self._random.random() < self.loss else None


def cell_queue(profile: BearerProfile) -> TransmitQueue | None:
    """That which all clients share, if they do."""
    if profile.cell_bandwidth is None:
        return None
    return TransmitQueue(profile.cell_bandwidth, profile.cell_queue_bytes)
