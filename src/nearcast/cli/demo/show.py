"""The two ways to show it: moving, for somebody who watches, and as plain lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Console, RenderableType
from rich.live import Live

from nearcast.cli.demo.analyst import Analyst
from nearcast.cli.demo.broker import DemoBroker
from nearcast.cli.demo.browser import open_browser
from nearcast.cli.demo.cost import Cost
from nearcast.cli.demo.ground import kind_of_ground, scenario
from nearcast.cli.demo.play import Play
from nearcast.cli.demo.running import run
from nearcast.cli.demo.stories import Stage, Story, stories
from nearcast.cli.demo.summary import insist, insist_on_right, summary, told
from nearcast.cli.demo.view import CityView, story_panel

if TYPE_CHECKING:
    from nearcast.cli.demo.streets import Streets  # slow to import

FRAME: Final = 0.2
"""Seconds."""
READING: Final = 4.0
"""Seconds for a story."""

DAY: Final = 40.0
"""Seconds of the first day, unless somebody wants another length."""
LATER_DAY: Final = 90.0

Said = Callable[[str], AbstractContextManager[object]]
"""Says what is being waited for, as long as the block lasts."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line says."""

    people: int = 300
    seconds: float | None = None
    """Of the day; then it ends.  Not given: whoever watches gets one day after the other."""

    spark: bool = True
    browser: bool = True
    http_port: int | None = None


@dataclass(frozen=True, slots=True)
class Theatre:
    """All that is there before the play begins."""

    broker: DemoBroker
    streets: Streets
    analyst: Analyst | None

    @property
    def address(self) -> str:
        source = self.streets.attribution
        return f"the live map is at {self.broker.dashboard}" + (f" (streets: {source})" if source else "")


def show(wishes: Wishes) -> None:
    """The living city and the stories; Ctrl-C is how one leaves, and no failure."""
    console = Console()
    try:
        run(_show(console, wishes))
    except KeyboardInterrupt:
        console.print("The demo has ended, and nothing is left of it.")


def summarize(wishes: Wishes) -> None:
    """The same without anything that moves: plain lines for a log."""
    run(_summarize(wishes))


async def _show(console: Console, wishes: Wishes) -> None:
    async with _theatre(wishes, console.status) as theatre:
        console.print(theatre.address, highlight=False)
        if wishes.browser:
            await open_browser(theatre.broker.dashboard)
        endless, day = wishes.seconds is None, 1
        panels: Sequence[RenderableType] = ()
        while True:
            seconds = wishes.seconds or (DAY if day == 1 else LATER_DAY)
            play = Play(
                theatre.broker, theatre.streets, wishes.people, seconds, theatre.analyst, day=day, lenient=endless
            )
            heard: list[Story] = []
            async with play.crowd:
                await _watched(console, play, theatre, panels)
                if day == 1:
                    with console.status("stories, told to the same broker"):
                        heard = await _told(theatre, play)
                    # Drawn while everybody is still there.
                    panels = [
                        story_panel(number, story, play.city, console.width) for number, story in enumerate(heard, 1)
                    ]
                else:
                    panels = ()
            if not endless:
                break
            insist_on_right(play, heard)
            day += 1
    for panel in panels:
        console.print(panel)
        await asyncio.sleep(READING)
    console.print()
    for line in summary(play):
        console.print(line, highlight=False, markup=False)
    insist(play, heard)


async def _watched(console: Console, play: Play, theatre: Theatre, panels: Sequence[RenderableType]) -> None:
    """A day; what is still to be read comes first, while it begins."""
    async with asyncio.TaskGroup() as tasks:
        performing = tasks.create_task(play.perform())
        for panel in panels:
            console.print(panel)
            await asyncio.sleep(READING)
        with Live(CityView(play, theatre.address), console=console, screen=True, auto_refresh=False) as live:
            while not performing.done():
                live.refresh()
                await asyncio.wait([performing], timeout=FRAME)


async def _summarize(wishes: Wishes) -> None:
    def say(line: str) -> AbstractContextManager[object]:
        print(line, flush=True)
        return nullcontext()

    cost = Cost()
    async with _theatre(wishes, say) as theatre:
        cost.ready()
        say(_ascii(theatre.address))
        play = Play(theatre.broker, theatre.streets, wishes.people, wishes.seconds or DAY, theatre.analyst)
        play.told = say
        async with play.crowd:
            await play.perform()
            heard = await _told(theatre, play)
        cost.count("the broker", theatre.broker.pid)
        if theatre.analyst is not None:
            cost.count("Spark", theatre.analyst.pid)
    for line in summary(play):
        print(line)
    for number, story in enumerate(heard, 1):
        for line in told(number, story):
            print(line)
    print(cost.words())
    insist(play, heard)


@asynccontextmanager
async def _theatre(wishes: Wishes, said: Said) -> AsyncIterator[Theatre]:
    ground = kind_of_ground()
    async with _analyst(spark=wishes.spark) as analyst:
        # Beside each other: Spark, the broker and the streets each take some seconds.
        streets = asyncio.create_task(asyncio.to_thread(_streets, ground))
        try:
            broker = DemoBroker(wishes.people, scenario(ground), wishes.http_port)
            with said("starting a broker (the first time, it compiles for half a minute)"):
                await broker.__aenter__()
            try:
                yield Theatre(broker, await streets, analyst)
            finally:
                await broker.__aexit__(None, None, None)
        finally:
            streets.cancel()


def _streets(kind: str) -> Streets:
    from nearcast.cli.demo.streets import read_streets

    return read_streets(kind)


@asynccontextmanager
async def _analyst(*, spark: bool) -> AsyncIterator[Analyst | None]:
    """Before the broker: Spark takes a while to start, and can do so meanwhile."""
    if not spark:
        yield None
        return
    async with Analyst() as analyst:
        yield analyst


async def _told(theatre: Theatre, play: Play) -> list[Story]:
    """The stories, and how the pipeline's plan ended."""
    analyst = None if play.pipeline is None else play.pipeline.analyst
    stage = Stage(theatre.broker.url, play.city, play.crowd, play.witness, analyst)
    heard = [story async for story in stories(stage)]
    if play.pipeline is not None:
        await play.pipeline.look_back()
    return heard


def _ascii(line: str) -> str:
    return line.replace("©", "(c)")
