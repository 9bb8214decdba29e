"""The two ways to show it: moving, for somebody who watches, and as a short summary."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Console
from rich.live import Live

from nearcast.cli.demo.city import STEP, City
from nearcast.cli.demo.stories import Story, reason, stories
from nearcast.cli.demo.tally import Tally
from nearcast.cli.demo.view import CityView, story_panel
from nearcast.errors import NearcastError

TEN_MINUTES: Final = 600 // STEP
"""Steps that the last story looks back."""
FRAME: Final = 0.1
"""Seconds."""
READING: Final = 4.0
"""Seconds for a story."""
_CHECKS_WITHOUT_WATCHER: Final = 2


def show(people: int, seconds: float) -> None:
    """The living city, then the stories."""
    console = Console()
    with console.status("compiling the matcher (once; it takes ten to twenty seconds)"):
        city, tally = _ready(people)
    view = CityView(city, tally)
    with Live(view, console=console, screen=True, auto_refresh=False) as live:
        end = time.monotonic() + seconds
        while (start := time.monotonic()) < end:
            tally.advance(city)
            live.refresh()
            time.sleep(max(0.0, FRAME - (time.monotonic() - start)))
    with console.status("ten minutes of the city's life"):
        while city.steps < TEN_MINUTES:
            tally.advance(city)
        told = list(stories(city))
    for number, story in enumerate(told, 1):
        console.print(story_panel(number, story, city, console.width))
        time.sleep(READING if seconds else 0.0)
    console.print()
    for line in summary(city, tally):
        console.print(line, highlight=False)
    _insist(tally, told)


def summarize(people: int) -> None:
    """The same without anything that moves: plain lines for a log."""
    city, tally = _ready(people)
    while city.steps < TEN_MINUTES:
        tally.advance(city, _CHECKS_WITHOUT_WATCHER)
    told = list(stories(city))
    for line in summary(city, tally):
        print(line)
    for number, story in enumerate(told, 1):
        print(f"{number}. {story.title}: {' '.join(story.said)}")
        print(
            "  ",
            "; ".join(line.rstrip(",") for line in story.answer),
            "(as counted by hand)" if story.holds else "(WRONG)",
        )
        print("   why:", story.explanation.detail, "-", reason(story.explanation))
    _insist(tally, told)


def summary(city: City, tally: Tally) -> list[str]:
    subscriptions, minutes = city.matcher.statistics().subscriptions, city.steps * STEP // 60
    return [
        f"{len(city.ids):,} people, {subscriptions:,} subscriptions, {minutes} minutes of their time",
        f"{tally.events:,} events, {tally.deliveries:,} deliveries, {tally.microseconds_per_event:,.0f} us to match one",
        f"checked {tally.equal} of {tally.checked} equal the definition of delivery",
    ]


def _ready(people: int) -> tuple[City, Tally]:
    """A city whose kernels are compiled, and a tally that has not counted that."""
    city = City(people)
    Tally().advance(city, checks=0)
    return city, Tally()


def _insist(tally: Tally, told: list[Story]) -> None:
    """A demonstration that shows something wrong has failed."""
    if tally.equal != tally.checked or not all(story.holds for story in told):
        raise NearcastError("the demo found answers that differ from the definition of delivery; please report this")
