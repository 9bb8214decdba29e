"""Opening the live map, where there is somebody to look at it."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Mapping


def has_display(environment: Mapping[str, str] = os.environ, platform: str = sys.platform) -> bool:
    """Without one, a browser would take over the terminal, or complain in it."""
    return platform in {"darwin", "win32"} or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


async def open_browser(url: str) -> None:
    """If there is one; who has none has been told the address."""
    if has_display():
        await asyncio.to_thread(webbrowser.open, url)
