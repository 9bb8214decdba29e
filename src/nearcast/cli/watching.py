"""Reading events and drawing them, side by side."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from rich.console import Console
from rich.live import Live

from nearcast.cli.watch_picture import Picture
from nearcast.client.client import Client
from nearcast.client.events import Events
from nearcast.runtime.live.clock import LiveClock

_FRAMES_PER_SECOND: Final = 4
_PLAIN_SIZE: Final = (100, 30)
now: Final = LiveClock().now


async def watching(client: Client, events: Events, picture: Picture, headless: float | None) -> None:
    """Read and draw until one of them ends."""
    async with client, events:
        reading = asyncio.create_task(_read(events, picture))
        try:
            if headless is None and sys.stdout.isatty():
                drawing = asyncio.create_task(_draw_live(Console(), picture))
            else:
                drawing = asyncio.create_task(_print(Console(width=_PLAIN_SIZE[0]), picture, headless))
            done, _ = await asyncio.wait([reading, drawing], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (reading, drawing):
                task.cancel()
            await asyncio.gather(reading, drawing, return_exceptions=True)


async def _read(events: Events, picture: Picture) -> None:
    async for event in events:
        picture.add(event, now())


async def _draw_live(console: Console, picture: Picture) -> None:
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(picture.drawn(*console.size, now()), refresh=True)
            await asyncio.sleep(1 / _FRAMES_PER_SECOND)


async def _print(console: Console, picture: Picture, seconds: float | None) -> None:
    """Frames for whoever is no terminal; without an end, until interrupted."""
    left = float("inf") if seconds is None else seconds
    while left > 0:
        await asyncio.sleep(min(left, 1.0))
        left -= 1.0
        console.print(picture.drawn(*_PLAIN_SIZE, now()))
