"""How the city and its stories look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from nearcast.cli.demo.canvas import Canvas
from nearcast.cli.demo.city import HALF_HEIGHT, HALF_WIDTH, KINDS, PLACES, SIREN, City
from nearcast.cli.demo.stories import Story
from nearcast.cli.demo.tally import Tally
from nearcast.model.area import Circle
from nearcast.model.explanation import Explanation
from nearcast.model.time import to_text

STYLES: Final = ("green", "cyan", "yellow", "magenta")
"""Of walkers, cyclists, cars and buses."""
AMBULANCE: Final = "bold red"
_SIDE: Final = 26
_LOG: Final = 4


class CityView:
    """The living city, as large as the terminal allows."""

    def __init__(self, city: City, tally: Tally) -> None:
        self.city, self.tally = city, tally

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or console.height
        columns, rows = max(20, options.max_width - _SIDE - 2), max(6, height - _LOG - 3)
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=columns, no_wrap=True)
        grid.add_column(width=_SIDE, no_wrap=True)
        grid.add_row(Group(*self._map(columns, rows)), Group(*self._counters()))
        yield Text.assemble(("nearcast ", "bold"), "a city centre at work", ("   Ctrl-C ends it", "dim"), no_wrap=True)
        yield grid
        yield Text("the last events", style="dim")
        yield from self._log(options.max_width)

    def _map(self, columns: int, rows: int) -> list[Text]:
        city = self.city
        canvas = Canvas(columns, rows, -HALF_WIDTH, -HALF_HEIGHT, HALF_WIDTH, HALF_HEIGHT)
        for kind, style in enumerate(STYLES):
            those = city.kind == kind
            canvas.dots(city.east[those], city.north[those], style)
        told = _numbers(self.tally.told)
        canvas.dots(city.east[told], city.north[told], AMBULANCE)
        assert isinstance(SIREN.area, Circle)
        canvas.circle(*city.ambulance, SIREN.area.radius, "red")
        for name, (east, north) in PLACES.items():
            canvas.text(east, north, name.removeprefix("the "), "bold white on grey23")
        canvas.text(*city.ambulance, "✚", "bold white on red")
        return canvas.lines()

    def _counters(self) -> list[Text]:
        city, tally = self.city, self.tally
        lines = [Text(to_text(city.now).replace("T", " "), "bold")]
        for kind, style in zip(KINDS, STYLES, strict=True):
            count = int((city.kind == KINDS.index(kind)).sum())
            lines.append(Text.assemble(("● ", style), f"{count:,} {kind.name}{'es' if kind.name == 'bus' else 's'}"))
        lines.append(Text.assemble(("● ", AMBULANCE), f"{len(tally.told)} warned by siren"))
        per_second = tally.events / tally.matching_seconds if tally.matching_seconds else 0.0
        verdict = "green" if tally.equal == tally.checked else "bold red"
        lines += [
            Text(),
            Text(f"{tally.events:,} events"),
            Text(f"{tally.deliveries:,} deliveries"),
            Text(f"{tally.microseconds_per_event:,.0f} µs to match one"),
            Text(f"({per_second:,.0f} events/s)"),
            Text(f"{tally.equal:,} of {tally.checked:,} checked", verdict),
            Text("equal the definition", verdict),
        ]
        return lines

    def _log(self, width: int) -> list[Text]:
        lines = []
        for event, count in list(self.tally.latest)[-_LOG:]:
            said = " ".join(f"{name}={value}" for name, value in event.attributes.items())
            bounds = f" reach {event.reach.radius:.0f} m" if isinstance(event.reach, Circle) else ""
            line = Text.assemble(
                (f"{event.topic:<18}", "cyan"), f"{said:<24}{bounds:<13}", (f"→ {count} receivers", "bold")
            )
            line.truncate(width)
            lines.append(line)
        return lines


def story_panel(number: int, story: Story, city: City, width: int) -> Group:
    """What was said and who receives it beside a map; beneath, the explanation."""
    columns = min(40, width // 2 - 4)
    canvas = Canvas(columns, 10, *_extent(story.around, columns))
    hearing = _numbers(sorted(story.receivers))
    canvas.dots(city.east, city.north, "grey42")
    canvas.dots(city.east[hearing], city.north[hearing], "bold green")
    for circle in story.circles:
        canvas.circle(*circle, "cyan")
    for east, north, mark in story.marks:
        canvas.text(east, north, mark, "bold white on blue")
    words = [Text(line, "cyan") for line in story.said]
    words += [Text(), *(Text(line, "bold") for line in story.answer)]
    words += [
        Text(),
        Text("as counted by hand" if story.holds else "NOT as counted by hand", "green" if story.holds else "bold red"),
    ]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=columns, no_wrap=True)
    grid.add_column()
    grid.add_row(Group(*canvas.lines()), Group(*words))
    title = Text.assemble((f"\n{number}. {story.title}", "bold underline"))
    return Group(title, grid, Text("why?", "dim"), *_explained(story.explanation))


def _explained(explanation: Explanation, depth: int = 0) -> list[Text]:
    """What decides is unfolded; of the rest a failure shows one line each, and a success nothing."""
    style = "green" if explanation.holds else "red"
    line = Text.assemble(
        "  " * depth,
        ("✓ " if explanation.holds else "✗ ", style),
        (explanation.term, "bold"),
        f": {explanation.detail}" if explanation.detail else "",
        no_wrap=True,
        overflow="ellipsis",
    )
    lines = [line]
    for part in explanation.parts:
        if part.holds == explanation.holds:
            lines += _explained(part, depth + 1)
        elif part.holds:
            lines += _explained(replace(part, parts=()), depth + 1)
    return lines


def _numbers(ids: Sequence[str]) -> NDArray[np.int64]:
    """Of an id such as ``car-12``, the 12."""
    return np.array([int(name.rpartition("-")[2]) for name in ids if "-" in name], np.int64)


def _extent(around: tuple[float, float, float], columns: int) -> tuple[float, float, float, float]:
    east, north, half = around
    wide = half * columns / 20
    return east - wide, north - half, east + wide, north + half
