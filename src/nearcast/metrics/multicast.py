"""Cellular multicast as a way of accounting: one downlink for each channel instead of one for each client.

Grid channels could be served by multicast (LCN 2016 III-C2 and VI, BYPASS.KOM 7.2).  Nothing is simulated differently; the
same messages are counted the way such a network would carry them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.metrics.columns import Wholes


@dataclass(frozen=True, slots=True)
class MulticastTotals:
    unicast_bytes: int
    """As sent: once for each client."""

    multicast_bytes: int
    """Once for each event and channel; what has no channel is still sent to each client."""

    unicast_messages: int
    multicast_messages: int

    @property
    def saved(self) -> float | None:
        """The share of bytes that multicast saves; none if there are none."""
        return 1.0 - self.multicast_bytes / self.unicast_bytes if self.unicast_bytes else None


def multicast_charges(event: Wholes, channel: Wholes, size: Wholes) -> Wholes:
    """Bytes that each downlink message is charged with: those of one event in one channel are charged once, to one of them.

    ``event`` and ``channel`` are numbers (of a dictionary-encoded column, for example); a channel below 0 is none: the message
    is charged as it is.  Copies that differ in size, by a piggybacked part, are charged with the largest: all must
    get it.  The charge goes to the first of the largest, so sums over windows or clients can be made of the result.
    """
    _check(event, channel, size)
    leads = _leading(event, channel, size)
    charges = np.zeros(len(size), np.int64)
    charges[leads] = size[leads]
    return charges


def multicast_totals(event: Wholes, channel: Wholes, size: Wholes) -> MulticastTotals:
    """Both ways of counting the same downlink messages of events; see ``multicast_charges``."""
    _check(event, channel, size)
    leads = _leading(event, channel, size)
    return MulticastTotals(
        unicast_bytes=int(size.sum()),
        multicast_bytes=int(size[leads].sum()),
        unicast_messages=len(size),
        multicast_messages=len(leads),
    )


def _leading(event: Wholes, channel: Wholes, size: Wholes) -> Wholes:
    """The messages that are sent: the first of the largest of each event and channel, and all without a channel."""
    order = np.lexsort((-size, event, channel))  # stable: the first of the largest leads
    event, channel = event[order], channel[order]
    leads = np.ones(len(order), np.bool_)
    leads[1:] = (event[1:] != event[:-1]) | (channel[1:] != channel[:-1]) | (channel[1:] < 0)
    return order[leads]


def _check(event: Wholes, channel: Wholes, size: Wholes) -> None:
    if not len(event) == len(channel) == len(size):
        raise InvalidInput(
            f"events, channels and sizes are of the same messages; there are {len(event)}, {len(channel)} and {len(size)}"
        )
