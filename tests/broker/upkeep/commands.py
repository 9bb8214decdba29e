"""``nearcast`` as an operator calls it, in a process of its own."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.served import COMMAND
from tests.waiting import PATIENCE


async def nearcast(*arguments: str | Path, status: int = 0) -> str:
    """What it prints; on stderr, if it is to fail."""
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        out, said = await asyncio.wait_for(process.communicate(), PATIENCE)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode == status, (process.returncode, out, said)
    return (said if status else out).decode()
