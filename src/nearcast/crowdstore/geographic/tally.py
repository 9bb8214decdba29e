"""What a router did."""

from __future__ import annotations

from dataclasses import dataclass

from nearcast.crowdstore.geographic.grid import Cell


@dataclass(slots=True)
class RouterTally:
    """What a router did."""

    beacons: int = 0
    sent: int = 0
    """Packets of this host, one for each first hop."""

    forwarded: int = 0
    """Packets of others, one for each copy."""

    forwarded_bytes: int = 0
    """Of their payloads."""

    told: int = 0
    """Broadcasts in the own cell."""

    arrived: int = 0
    duplicates: int = 0
    refused: int = 0
    """Said to sources that a node is not here."""

    undeliverable: int = 0
    retried: int = 0
    """Sent another way, because the link said that the first was in vain."""

    lost: int = 0
    """Given up: nobody to send it to, or too many hops."""


@dataclass(frozen=True, slots=True)
class RouterStatistics:
    cell: Cell | None
    heard: int
    """Hosts that were heard lately."""

    tally: RouterTally
