"""What the radio engine counts."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.runtime.simulation.radio.reports import Loss, Outcome


@dataclass(frozen=True, slots=True)
class RadioStatistics:
    """Counts of one station, or the sums over all of them.

    Frames: ``handed_in`` is the sum of ``outcomes``, ``queue_full``, ``station_off`` and ``pending``.
    Receptions: over all stations, ``potential_receptions`` is the sum of ``received``, ``losses`` and ``undecided``;
    for a single station the former counts who could hear it, the latter what it heard itself.
    """

    handed_in: int
    outcomes: dict[Outcome, int]
    queue_full: int
    station_off: int
    pending: int
    """Queued or in the midst of being sent."""

    data_sent: int
    rts_sent: int
    cts_sent: int
    ack_sent: int
    bytes_sent: int
    """On air, headers included; as ``bytes_received``."""

    potential_receptions: int
    """Of frames of all kinds, by everybody within interference range of their senders."""
    received: int
    losses: dict[Loss, int]
    undecided: int
    """Receptions under way."""
    bytes_received: int
    delivered: int
    """Data frames received by those they were for."""
    duplicates: int

    @property
    def transmissions(self) -> int:
        return self.data_sent + self.rts_sent + self.cts_sent + self.ack_sent
