"""How far a command is: a bar on stderr, if somebody looks at it, which is gone at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from nearcast.cli.printing import console

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn


def progress_bar(*columns: str | ProgressColumn) -> Progress:
    """What is done and how far it is, then these columns; ``disable`` says that nobody looks."""
    from rich.progress import BarColumn, Progress

    return Progress(
        "{task.description}",
        BarColumn(),
        *columns,
        console=console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
