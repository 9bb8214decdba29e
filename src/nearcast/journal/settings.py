"""What an operator may choose about the journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nearcast.errors import InvalidValue

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """How long records stay, where they go afterwards, and how the journal treats its disk."""

    keep_for: int | None = None
    """Microseconds after which records may go; none: they stay."""

    keep_bytes: int | None = None
    """Records beyond so many bytes may go, the oldest first; a twentieth more may stay for a while.  None: they stay."""

    lake: Path | None = None
    """Where closed stretches are exported to; records that are not there yet are never deleted.  None: no export."""

    export_every: float = 60.0
    """Seconds between exports."""

    retry_every: float = 1.0
    """Seconds between attempts to write while the disk refuses, and between looks at what may be deleted."""

    checkpoint_bytes: int = 16 * MEGABYTE
    """When the write-ahead log is that long, it is moved into the database and begins again."""

    def __post_init__(self) -> None:
        for name in ("keep_for", "keep_bytes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise InvalidValue(f"journal.{name} must be positive, not {value}; leave it out to keep everything")
        for name in ("export_every", "retry_every"):
            if not getattr(self, name) > 0:
                raise InvalidValue(f"journal.{name} must be a positive number of seconds, not {getattr(self, name)}")
        if self.checkpoint_bytes < MEGABYTE:
            raise InvalidValue(f"journal.checkpoint_bytes must be at least {MEGABYTE}, not {self.checkpoint_bytes}")
