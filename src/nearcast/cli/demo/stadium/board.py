"""How it is shown: drawn in a terminal, or line by line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from nearcast.cli.demo.stadium.stand import Accounts
from nearcast.cli.printing import console, tell

if TYPE_CHECKING:
    from nearcast.cli.demo.stadium.story import Outcome

LINES: Final = 16
"""Of the story that are seen at a time."""

ROW: Final = 5
"""People of the picture in a row."""


class Show(ABC):
    """To be used with ``with``."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put away."""

    @abstractmethod
    def say(self, text: str, *, seen: bool = False) -> None:
        """Something happens, or what had to come of it was ``seen``."""

    def draw(self, accounts: Accounts) -> None:
        """How everybody is now."""


class Silent(Show):
    def say(self, text: str, *, seen: bool = False) -> None:
        """Only the outcome counts."""


class Log(Show):
    def say(self, text: str, *, seen: bool = False) -> None:
        tell(f"  ✓ {text}" if seen else text)


class Board(Show):
    """The story, and below it the people."""

    def __init__(self) -> None:
        self._story: Final[list[Text]] = []
        self._accounts: Accounts = {}
        self._live: Final = Live(console=console(), refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, text: str, *, seen: bool = False) -> None:
        self._story.append(Text(f"  ✓ {text}", style="green") if seen else Text(text, style="bold"))
        self._live.update(self._picture())

    def draw(self, accounts: Accounts) -> None:
        self._accounts = dict(accounts)
        self._live.update(self._picture())

    def _picture(self) -> RenderableType:
        people = Table.grid(padding=(0, 2))
        row: list[Text] = []
        for name, account in self._accounts.items():
            style = "cyan" if account.mechanism == "DCS" else "yellow"
            row.append(
                Text(f"{name:>5} {account.mechanism:<5} {account.held:>2} copies {len(account.told):>2} told", style)
            )
            if len(row) == ROW:
                people.add_row(*row)
                row = []
        if row:
            people.add_row(*row)
        return Group(*self._story[-LINES:], Text(), people)


def summarize(outcome: Outcome) -> None:
    table = Table(box=None)
    for name in ("process", "mechanism", "published", "copies of others", "told", "doubled"):
        table.add_column(name, justify="left" if name in ("process", "mechanism") else "right")
    for person in outcome.people:
        numbers = (person.published, person.copies, person.told, person.doubled)
        table.add_row(f"{person.name} ({person.pid})", person.mechanism, *map(str, numbers))
    screen = console()
    screen.print(table)
    screen.print(
        f"{len(outcome.people)} processes, {outcome.counted:.1f} by their own count; "
        f"{len(outcome.archived)} objects of the crowd in the broker's archive"
    )
    screen.print(
        f"{len(outcome.checks)} of {len(outcome.checks)} things seen that had to be, in {outcome.seconds:.0f} s"
    )
