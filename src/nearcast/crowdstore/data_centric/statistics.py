"""What one host's part in the mechanism says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nearcast.crowdstore.geographic.grid import Cell


@dataclass(frozen=True, slots=True)
class DataCentricStatistics:
    cell: Cell | None
    joined: bool
    entries: int
    """What this host keeps for its cell."""

    under_way: int
    repeated: int
    """Operations that were asked for again."""

    notifications: int
    """That this host sent, for its cell."""

    undelivered: int
    waiting: int
    sent_again: int
    served: int
    differences: int
    handed: int
    router: Any
