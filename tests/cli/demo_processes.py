"""Processes of the live demos, as the system sees them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def meeting_at(group: str, program: str) -> list[str]:
    """Those of a program that meet at a multicast group."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            command = process.read_bytes().decode()
            found += [command] if program in command and f'"{group}"' in command else []
    return found
