"""How the city and its stories look."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from nearcast.cli.demo.analyst import Spot
from nearcast.cli.demo.broker import LADDER
from nearcast.cli.demo.canvas import Canvas
from nearcast.cli.demo.city import KINDS, City
from nearcast.cli.demo.devices import PROXIMITY
from nearcast.cli.demo.meter import Moment
from nearcast.cli.demo.places import HALF, PLACES, metres_of
from nearcast.cli.demo.play import Play, short
from nearcast.cli.demo.stories import Story
from nearcast.cli.demo.witness import RADIUS, Flight
from nearcast.model.explanation import Explanation

STYLES: Final = ("green", "cyan", "blue", "magenta")
"""Of walkers, cyclists, cars and buses."""

_PLURALS: Final = ("on foot", "bikes", "cars", "buses")
SCHEME_STYLES: Final = dict(zip(LADDER, ("bright_cyan", "bright_yellow", "bright_magenta"), strict=True))
_BARS: Final = " ▁▂▃▄▅▆▇█"
_SIDE: Final = 27
_AROUND: Final = 6
"""Lines above and beneath the map, those of the pipeline apart."""

_NEWS: Final = 3
_CIRCLES: Final = 4
"""Of so many events the area is drawn in which they are heard."""

_FRESH: Final = 1.0
"""Seconds for which an event is drawn."""


class CityView:
    """The living city, as large as the terminal allows."""

    def __init__(self, play: Play, address: str = "") -> None:
        """``address``: where else one may look."""
        self.play: Final = play
        self._address: Final = address

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or console.height
        pipeline = list(self._pipeline())
        columns, rows = (
            max(20, width - _SIDE - 1),
            max(6, height - _AROUND - bool(self._address) - len(pipeline) + bool(pipeline)),
        )
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=columns, no_wrap=True)
        grid.add_column(width=_SIDE, no_wrap=True)
        side = list(self._figures())
        if len(side) > rows:
            side = [line for line in side if line.plain][:rows]
        grid.add_row(Group(*self._map(columns, rows)), Group(*side))
        yield _line(
            ("nearcast", "bold"),
            ": a city on MQTT   ",
            ("*", "bold black on yellow"),
            " somebody talks, ",
            ("white dots", "bold bright_white"),
            " hear it",
            ("   Ctrl-C ends it", "dim"),
        )
        if self._address:
            yield _line((self._address, "bold cyan"))
        yield grid
        yield from self._strip(width)
        yield from pipeline
        yield from self._news(_NEWS - bool(pipeline))

    def _map(self, columns: int, rows: int) -> list[Text]:
        city = self.play.city
        canvas = Canvas(columns, rows, -HALF, -HALF, HALF, HALF)
        for kind, style in enumerate(STYLES):
            those = city.present & (city.kind == kind)
            canvas.dots(city.east[those], city.north[those], style)
        fresh = list(self._fresh())
        for point in self._points():
            canvas.circle(*metres_of(point.place), point.radius, "bright_red")
        for flight in fresh[:_CIRCLES]:
            canvas.circle(flight.east, flight.north, RADIUS, "yellow")
        for flight in fresh:
            got = np.array(sorted(flight.arrived), np.int64)
            canvas.dots(city.east[got], city.north[got], "bold bright_white")
            canvas.dots([flight.east], [flight.north], "bold yellow")
        for place in PLACES:
            canvas.text(place.east, place.north, place.name.removeprefix("the "), "bold white on grey23")
        if (ambulance := self.play.devices.ambulance) is not None:
            canvas.circle(*ambulance, PROXIMITY.radius, "bright_blue")
            canvas.text(*ambulance, "+", "bold white on red")
        for flight in fresh[:_CIRCLES]:
            canvas.text(flight.east, flight.north, "*", "bold black on yellow")
        return canvas.lines()

    def _fresh(self) -> Iterator[Flight]:
        """The events of the last second."""
        since = time.monotonic() - _FRESH
        for flight in reversed(self.play.witness.flights.values()):
            if flight.began < since:
                return
            yield flight

    def _figures(self) -> Iterator[Text]:
        meter, city = self.play.meter, self.play.city
        lately, status, seen = meter.lately, meter.status, self.play.witness.statistics()
        connected = len(self.play.crowd.people)
        yield _line((f"{connected} people", "bold"), f" connected, {meter.seconds:.0f} s")
        counts = [int((city.present & (city.kind == number)).sum()) for number in range(len(KINDS))]
        for first in (0, 2):
            yield _line(*((f"● {counts[i]} {_PLURALS[i]} ", STYLES[i]) for i in (first, first + 1)))
        yield Text()
        yield _line((meter.scheme or "-", f"bold {SCHEME_STYLES.get(meter.scheme, 'white')}"), " filters")
        if status is not None:
            followed = f"{status.following - status.waiting} of {status.following} follow it"
            yield Text(followed, "dim" if not status.waiting else "yellow")
        yield Text("per second", "dim")
        yield _figure("published", f"{lately.per_second(lately.published):,.1f}")
        yield _figure("delivered", f"{lately.per_second(lately.delivered):,.0f}")
        yield _figure("dropped, last check", f"{lately.per_second(lately.dropped):,.0f}")
        yield _figure("context messages", f"{lately.per_second(lately.context_messages):,.0f}")
        yield _figure("to people", f"{lately.per_second(lately.bytes_to) / 1e3:,.1f} kB")
        yield _figure("from people", f"{lately.per_second(lately.bytes_from) / 1e3:,.1f} kB")
        yield Text()
        wrong = seen.lost + seen.doubled + seen.strays
        yield Text(f"{seen.lost} lost, {seen.doubled} doubled", "bold red" if wrong else "bold green")
        yield Text(f"of {seen.certain:,} surely due", "dim")
        yield _figure("precision", f"{lately.precision:.2f}")
        yield _figure("bytes per delivery", f"{lately.bytes_per_delivery:,.0f}")

    def _strip(self, width: int) -> Iterator[Text]:
        """How many people there were, in the colour of the scheme that ran; beneath, when it changed."""
        bars = Text(no_wrap=True)
        for moment in _stretched(self.play.meter.moments, width, self.play.length):
            height = min(len(_BARS) - 1, round(moment.people / self.play.people * (len(_BARS) - 1)))
            bars.append(_BARS[max(1, height)], SCHEME_STYLES.get(moment.scheme, "white"))
        yield bars
        changes = [(short(LADDER[0]), SCHEME_STYLES[LADDER[0]])]
        for change in self.play.meter.changes:
            style = SCHEME_STYLES.get(change.after, "white")
            changes += [(f" {change.at:.0f}s→ ", "dim"), (short(change.after), style)]
        yield _line(("transitions ", "dim"), *changes)

    def _points(self) -> tuple[Spot, ...]:
        """Those that Spark saw last."""
        pipeline = self.play.pipeline
        return () if pipeline is None or pipeline.observed is None else pipeline.observed.points

    def _pipeline(self) -> Iterator[Text]:
        """As many lines from the beginning: else the map would jump."""
        if self.play.pipeline is not None:
            sees, planned = self.play.pipeline.words()
            yield _line(("Spark ", "bright_red"), sees)
            yield _line("      ", planned)

    def _news(self, lines: int) -> Iterator[Text]:
        newest = list(self.play.news)[-lines:]
        for number, line in enumerate(newest, 1):
            yield _line((line, "bold" if number == len(newest) else "dim"))


def story_panel(number: int, story: Story, city: City, width: int) -> Group:
    """What was said and who receives it beside a map; beneath, the explanation."""
    columns = min(40, width // 2 - 4)
    canvas = Canvas(columns, 10, *_extent(story.around, columns))
    canvas.dots(city.east[city.present], city.north[city.present], "grey42")
    if story.bright:
        east, north = np.array(story.bright).T
        canvas.dots(east, north, "bold green")
    for circle in story.circles:
        canvas.circle(*circle, "cyan")
    for east, north, mark in story.marks:
        canvas.text(east, north, mark, "bold white on blue")
    words = [Text(line, "cyan") for line in story.said]
    words += [Text(), *(Text(line, "bold") for line in story.answer)]
    verdict = ("as defined", "green") if story.holds else ("NOT as defined", "bold red")
    words += [Text(), Text(*verdict)]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=columns, no_wrap=True)
    grid.add_column()
    grid.add_row(Group(*canvas.lines()), Group(*words))
    title = Text.assemble((f"\n{number}. {story.title}", "bold underline"))
    return Group(title, grid, Text("why?", "dim"), *_explained(story.explanation))


def _explained(explanation: Explanation, depth: int = 0) -> list[Text]:
    """What decides is unfolded; of the rest a failure shows one line each, and a success nothing."""
    style = "green" if explanation.holds else "red"
    lines = [
        _line(
            "  " * depth,
            ("✓ " if explanation.holds else "✗ ", style),
            (explanation.term, "bold"),
            f": {explanation.detail}" if explanation.detail else "",
        )
    ]
    for part in explanation.parts:
        if part.holds == explanation.holds:
            lines += _explained(part, depth + 1)
        elif part.holds:
            lines += _explained(replace(part, parts=()), depth + 1)
    return lines


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _figure(name: str, value: str) -> Text:
    return Text.assemble(f"{name:<{_SIDE - 8}}", (f"{value:>8}", "bold"), no_wrap=True)


def _stretched(moments: list[Moment], width: int, seconds: float) -> Iterator[Moment]:
    """One for each column that is over, if so many seconds fill all of them."""
    if not moments:
        return
    newest = moments[-1].at
    times, column = [moment.at for moment in moments], max(seconds, newest) / width
    for number in range(int(newest / column)):
        yield moments[max(0, bisect_right(times, (number + 1) * column) - 1)]


def _extent(around: tuple[float, float, float], columns: int) -> tuple[float, float, float, float]:
    east, north, half = around
    wide = half * columns / 20
    return east - wide, north - half, east + wide, north + half
