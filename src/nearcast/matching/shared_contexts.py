"""Contexts that one or several tables hold, each of them once, and what a message finds among them.

A thousand simulated routers know nearly the same of each other: what a message asks is asked once for all of them, and again
only of what has come since.  A table of its own has a store of its own, and remembers nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nearcast.matching.context_columns import ContextColumns, Judge, Questions, surely
from nearcast.matching.growing import grown
from nearcast.model.history import Context
from nearcast.model.values import likeness

REMEMBERED: Final = 8_192
"""Questions whose answers are kept: those of all messages that are on their way."""

_FREE: Final = -1


@dataclass(slots=True)
class _Answer:
    asked: Questions
    """Kept, so that no other gets its identity."""

    up_to: int = 0
    """The newest context that was asked."""

    met: list[int] = field(default_factory=list)


class SharedContexts:
    """Contexts by number; a number is never used again.  Each belongs to a group, which is a part of what it is."""

    def __init__(self, judge: Judge = surely, *, remember: int = REMEMBERED) -> None:
        self.group_of: Final[dict[int, int]] = {}
        self.judge: Final = judge
        self.columns: Final = ContextColumns(judge)
        self.key: Final = f"number {id(self)}"
        """Under which a message keeps the number of its context, if several tables get it."""

        self._remember: Final = remember
        self._groups: Final[dict[str, int]] = {}
        self._names: Final[list[str]] = []
        self._numbers: npt.NDArray[np.int64] = np.full(16, _FREE, np.int64)
        """By row of the columns."""

        self._rows: Final[dict[int, int]] = {}
        self._uses: Final[dict[int, int]] = {}
        self._alike: Final[dict[Any, int]] = {}
        self._likeness: Final[dict[int, Any]] = {}
        self._newest = 0
        self._answers: Final[OrderedDict[int, _Answer]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def group(self, name: str) -> int:
        """The number of a group that has a name."""
        number = self._groups.get(name)
        if number is None:
            number = self._groups[name] = len(self._groups)
            self._names.append(name)
        return number

    def name_of(self, group: int) -> str:
        return self._names[group]

    def context(self, number: int) -> Context:
        return self.columns.contexts[self._rows[number]] or {}

    def take(
        self, group: int, context: Context, optional: frozenset[str] = frozenset(), known: dict[str, Any] | None = None
    ) -> int:
        """The number of a context, which stays until it was released as often as it was taken; ``known``: where it may be noted."""
        uses = self._uses
        number: int | None = None if known is None else known.get(self.key)
        if number is None or number not in uses:
            alike = _alike(group, context, optional)
            number = None if alike is None else self._alike.get(alike)
            if number is None:
                number = self._added(group, context, optional, alike)
            if known is not None:
                known[self.key] = number
        uses[number] = uses.get(number, 0) + 1
        return number

    def release(self, number: int) -> None:
        left = self._uses[number] - 1
        if left:
            self._uses[number] = left
            return
        del self._uses[number], self.group_of[number]
        alike = self._likeness.pop(number, None)
        if alike is not None:
            del self._alike[alike]
        row = self._rows.pop(number)
        self._numbers[row] = _FREE
        self.columns.remove(row)

    def met(self, asked: Questions) -> list[int]:
        """The contexts that meet one of the conjuncts, and perhaps some that are no more."""
        if not self._remember:
            return self._judged(asked, 0)
        answer = self._answers.get(id(asked))
        if answer is None:
            answer = self._answers[id(asked)] = _Answer(asked)
            if len(self._answers) > self._remember:
                self._answers.popitem(last=False)
        if answer.up_to < self._newest:
            answer.met += self._judged(asked, answer.up_to)
            answer.up_to = self._newest
        return answer.met

    def _judged(self, asked: Questions, after: int) -> list[int]:
        """Of those that came after that one, in the order in which they came."""
        rows = np.flatnonzero(self._numbers > after)
        met = [self.columns.met(conjunct, rows) for conjunct in asked]
        found = met[0] if len(met) == 1 else np.unique(np.concatenate(met)) if met else rows[:0]
        numbers: list[int] = np.sort(self._numbers[found]).tolist()
        return numbers

    def _added(self, group: int, context: Context, optional: frozenset[str], alike: Any) -> int:
        self._newest += 1
        number = self._newest
        row = self.columns.add(context, optional)
        self._numbers = grown(self._numbers, row + 1, _FREE)
        self._numbers[row] = number
        self._rows[number] = row
        self.group_of[number] = group
        if alike is not None:
            self._alike[alike] = number
            self._likeness[number] = alike
        return number


def _alike(group: int, context: Context, optional: frozenset[str]) -> Any:
    """Equal for contexts that cannot be told apart; none for what cannot be compared."""
    try:
        alike = group, optional, likeness(context)
        hash(alike)
    except TypeError:
        return None
    return alike
