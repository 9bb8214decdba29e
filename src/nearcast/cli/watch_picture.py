"""What ``nearcast watch`` shows: a map of the newest events, a list of them, and how many there are."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS, Instant

if TYPE_CHECKING:
    from rich.console import RenderableType

    from nearcast.model.event import Event

_METRES_PER_DEGREE: Final = 111_195.0
_SHOWN: Final = 2_000
"""Events that are kept for the map."""

_FRESH: Final = 5 * MICROSECONDS
_RATE: Final = 10 * MICROSECONDS
_CELL: Final = 2.0
"""A character is about twice as high as wide."""


@dataclass(slots=True, eq=False)
class Picture:
    """Everything that is shown, as it comes in."""

    topic: str
    radius: float
    """Metres from the middle of the map to its nearer edge."""

    centre: Point | None = None
    """Where I am; without that, the map lies around the first event that has a place."""

    me: bool = False
    count: int = 0
    unplaced: int = 0
    _seen: deque[tuple[Instant, Event]] = field(default_factory=lambda: deque(maxlen=_SHOWN))

    def add(self, event: Event, now: Instant) -> None:
        self.count += 1
        self._seen.append((now, event))
        if event.place is None:
            self.unplaced += 1
        elif self.centre is None:
            self.centre = event.place

    def rate(self, now: Instant) -> float:
        """Events per second, of late."""
        return sum(now - at < _RATE for at, _ in self._seen) * MICROSECONDS / _RATE

    def cells(self, columns: int, rows: int, now: Instant) -> dict[tuple[int, int], tuple[int, bool]]:
        """How many events each character of the map stands for, and whether one of them is fresh; (0, 0) is north-west."""
        found: dict[tuple[int, int], tuple[int, bool]] = {}
        for at, event in self._seen:
            cell = None if event.place is None else self.cell(event.place, columns, rows)
            if cell is not None:
                count, fresh = found.get(cell, (0, False))
                found[cell] = count + 1, fresh or now - at < _FRESH
        return found

    def cell(self, place: Point, columns: int, rows: int) -> tuple[int, int] | None:
        """The column and row of a place; none outside the map."""
        centre = self.centre
        if centre is None:
            return None
        step = 2 * self.radius / min(columns, _CELL * rows)
        east = (place.lon - centre.lon + 180) % 360 - 180
        east *= _METRES_PER_DEGREE * math.cos(math.radians(centre.lat))
        north = (place.lat - centre.lat) * _METRES_PER_DEGREE
        column, row = math.floor(columns / 2 + east / step), math.floor(rows / 2 - north / (step * _CELL))
        return (column, row) if 0 <= column < columns and 0 <= row < rows else None

    def drawn(self, columns: int, rows: int, now: Instant) -> RenderableType:
        """One frame."""
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        height = max(rows // 2, 5)
        where = "no event with a place yet" if self.centre is None else f"{self.centre.lat:.5f}, {self.centre.lon:.5f}"
        title = f"{self.topic}: {self.count:,} events, {self.rate(now):.1f}/s"
        plain = f"{self.unplaced:,} without a place" if self.unplaced else ""
        subtitle = "  ".join(part for part in (where, f"{2 * self.radius:,.0f} m wide", plain) if part)
        picture = Panel(self._map(columns - 4, height, now), title=Text(title), subtitle=Text(subtitle))
        return Group(picture, self._list(max(rows - height - 4, 3)))

    def _map(self, columns: int, rows: int, now: Instant) -> RenderableType:
        from rich.text import Text

        cells = self.cells(columns, rows, now)
        text = Text(no_wrap=True)
        mine = self.cell(self.centre, columns, rows) if self.me and self.centre is not None else None
        for row in range(rows):
            for column in range(columns):
                count, fresh = cells.get((column, row), (0, False))
                if (column, row) == mine:
                    text.append("@", "bold cyan")
                elif count:
                    text.append(_sign(count), "bold red" if fresh else "yellow")
                else:
                    text.append(" ")
            text.append("\n" if row < rows - 1 else "")
        return text

    def _list(self, rows: int) -> RenderableType:
        from rich.text import Text

        from nearcast.cli.sub import line

        newest = list(self._seen)[-rows:]
        return Text("\n".join(line(event) for _, event in reversed(newest)), no_wrap=True, overflow="ellipsis")


def _sign(count: int) -> str:
    return str(count) if 1 < count < 10 else "*" if count == 1 else "#"
