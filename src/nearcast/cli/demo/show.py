"""The two ways to show it: moving, for somebody who watches, and as plain lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Final

from rich.console import Console
from rich.live import Live

from nearcast.cli.demo.analyst import Analyst
from nearcast.cli.demo.broker import DemoBroker
from nearcast.cli.demo.play import Play
from nearcast.cli.demo.running import run
from nearcast.cli.demo.stories import Stage, Story, stories
from nearcast.cli.demo.summary import insist, summary, told
from nearcast.cli.demo.view import CityView, story_panel

FRAME: Final = 0.2
"""Seconds."""
READING: Final = 4.0
"""Seconds for a story."""

Said = Callable[[str], AbstractContextManager[object]]
"""Says what is being waited for, as long as the block lasts."""


def show(people: int, seconds: float, *, spark: bool) -> None:
    """The living city, then the stories."""
    run(_show(Console(), people, seconds, spark=spark))


def summarize(people: int, seconds: float, *, spark: bool) -> None:
    """The same without anything that moves: plain lines for a log."""
    run(_summarize(people, seconds, spark=spark))


async def _show(console: Console, people: int, seconds: float, *, spark: bool) -> None:
    async with _analyst(spark=spark) as analyst, _ready(people, console.status) as broker:
        play = Play(broker, people, seconds, analyst)
        async with play.crowd:
            with Live(CityView(play), console=console, screen=True, auto_refresh=False) as live:
                async with asyncio.TaskGroup() as tasks:
                    drawing = tasks.create_task(_draw(live))
                    await play.perform()
                    drawing.cancel()
            with console.status("stories, told to the same broker"):
                heard = await _told(broker, play)
            # Drawn while everybody is still there.
            panels = [story_panel(number, story, play.city, console.width) for number, story in enumerate(heard, 1)]
    for panel in panels:
        console.print(panel)
        await asyncio.sleep(READING)
    console.print()
    for line in summary(play):
        console.print(line, highlight=False, markup=False)
    insist(play, heard)


async def _draw(live: Live) -> None:
    while True:
        live.refresh()
        await asyncio.sleep(FRAME)


async def _summarize(people: int, seconds: float, *, spark: bool) -> None:
    def say(line: str) -> AbstractContextManager[object]:
        print(line, flush=True)
        return nullcontext()

    async with _analyst(spark=spark) as analyst, _ready(people, say) as broker:
        play = Play(broker, people, seconds, analyst)
        play.told = say
        async with play.crowd:
            await play.perform()
            heard = await _told(broker, play)
    for line in summary(play):
        print(line)
    for number, story in enumerate(heard, 1):
        for line in told(number, story):
            print(line)
    insist(play, heard)


@asynccontextmanager
async def _ready(people: int, said: Said) -> AsyncIterator[DemoBroker]:
    broker = DemoBroker(people)
    with said("starting a broker (the first time, it compiles for half a minute)"):
        await broker.__aenter__()
    try:
        yield broker
    finally:
        await broker.__aexit__(None, None, None)


@asynccontextmanager
async def _analyst(*, spark: bool) -> AsyncIterator[Analyst | None]:
    """Before the broker: Spark takes a while to start, and can do so meanwhile."""
    if not spark:
        yield None
        return
    async with Analyst() as analyst:
        yield analyst


async def _told(broker: DemoBroker, play: Play) -> list[Story]:
    """The stories, and how the pipeline's plan ended."""
    analyst = None if play.pipeline is None else play.pipeline.analyst
    stage = Stage(broker.url, play.city, play.crowd, play.witness, analyst)
    heard = [story async for story in stories(stage)]
    if play.pipeline is not None:
        await play.pipeline.look_back()
    return heard
