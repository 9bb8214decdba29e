"""What may be said about a match; the planner finds out the rest."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nearcast.errors import InvalidSettings


class Strategy(StrEnum):
    """How the work is cut."""

    BROADCAST = "broadcast"
    """Nothing changes while events are published, and all that is known fits into every worker: events stay where they are."""
    SLICES = "slices"
    """Slices of time; each gets all that is known at its start and what changes in it."""
    BLOCKS = "blocks"
    """Slices of time and blocks of space; what is known goes to the blocks that it may touch."""


@dataclass(frozen=True, slots=True)
class MatchSettings:
    """Sizes in rows; ``None`` leaves the choice to the planner."""

    strategy: Strategy | None = None
    parallelism: int = 8
    """At least so many tasks, where there is enough to do."""
    group_rows: int = 6_000_000
    """Reports and events of one group: what a worker holds in memory."""
    broadcast_rows: int = 4_000_000
    """Rows of state that every worker may hold a copy of."""
    slices: int | None = None
    blocks: int | None = None
    cells: int = 4096
    """Cells of the grid from which blocks are made."""

    def __post_init__(self) -> None:
        for name in ("parallelism", "group_rows", "cells"):
            if getattr(self, name) < 1:
                raise InvalidSettings(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("slices", "blocks"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSettings(f"{name} must be positive or None, not {value}")
