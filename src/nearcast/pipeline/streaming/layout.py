"""The layout of the state, as a checkpoint says it: also where the state cannot, since none is found in it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nearcast.files import write_whole
from nearcast.pipeline.streaming.store import LAYOUT, other_layout

MARK: Final = "nearcast-layout"
_BEGUN: Final = "offsets"
"""What Spark makes with the first batch."""


def check_layout(checkpoint: Path) -> None:
    """Say in a new checkpoint which layout it is of.

    Raises:
        InvalidSettings: a stream of another layout has left it; it would go on as if nothing were known of anybody.

    """
    mark = checkpoint / MARK
    if (checkpoint / _BEGUN).exists():
        written = mark.read_text().strip() if mark.exists() else "0"
        if written != str(LAYOUT):
            raise other_layout(str(checkpoint), written)
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    write_whole(mark, f"{LAYOUT}\n")
