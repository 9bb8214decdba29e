"""A routing table's question: behind which of its groups does somebody stand whom this message is for?

A *group* is what an entry belongs to: the router where it comes from, or the neighbour that made it.  Entries of one group
with equal contexts share a row: where a hundred clients are known by the area they are in, that area is judged once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from nearcast.matching.areas import Bools
from nearcast.matching.context_columns import ContextColumns, Indexes, Judge, Questions, questions, surely
from nearcast.matching.growing import grown
from nearcast.model.history import Context
from nearcast.model.values import likeness

__all__ = ["EntryTable", "Judge", "Questions", "questions", "surely"]

K = TypeVar("K", bound=Hashable)
_NO_GROUP: Final = -1


class EntryTable(Generic[K]):
    """Contexts by key, each in one group, a number from 0."""

    def __init__(self, judge: Judge = surely) -> None:
        self._columns: Final = ContextColumns(judge)
        self._group: npt.NDArray[np.int32] = np.full(16, _NO_GROUP, np.int32)
        self._row_of: Final[dict[K, int]] = {}
        self._keys: Final[dict[int, dict[K, None]]] = {}
        self._shared: Final[dict[Any, int]] = {}
        self._alike: Final[dict[int, Any]] = {}

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, key: object) -> bool:
        return key in self._row_of

    @property
    def rows(self) -> int:
        """Entries that differ."""
        return len(self._columns)

    def items(self) -> Iterator[tuple[K, Context]]:
        for key, row in self._row_of.items():
            yield key, self._columns.contexts[row] or {}

    def put(self, key: K, group: int, context: Context, optional: frozenset[str] = frozenset()) -> None:
        """Take an entry, or replace it."""
        alike = _likeness(group, context, optional)
        row = self._row_of.get(key)
        if row is not None:
            if alike is not None and self._alike.get(row) == alike:
                return
            self.remove(key)
        row = None if alike is None else self._shared.get(alike)
        if row is None:
            row = self._columns.add(context, optional)
            self._group = grown(self._group, row + 1, _NO_GROUP)
            self._group[row] = group
            self._keys[row] = {}
            if alike is not None:
                self._shared[alike], self._alike[row] = row, alike
        self._row_of[key] = row
        self._keys[row][key] = None

    def remove(self, key: K) -> None:
        """Forget an entry; one that is not there is forgotten already."""
        row = self._row_of.pop(key, None)
        if row is None:
            return
        keys = self._keys[row]
        del keys[key]
        if not keys:
            del self._keys[row]
            alike = self._alike.pop(row, None)
            if alike is not None:
                del self._shared[alike]
            self._group[row] = _NO_GROUP
            self._columns.remove(row)

    def groups(self, asked: Questions, among: Bools) -> Indexes:
        """Those of the groups (``among``: by group, whether it is of interest) in which an entry meets one of the conjuncts."""
        met = np.zeros(len(among) + 1, np.bool_)
        wanted = np.append(among, False)  # what _NO_GROUP, the last one, stands for
        for conjunct in asked:
            rows = np.flatnonzero(wanted[self._group])
            found = self._group[self._columns.met(conjunct, rows)]
            met[found] = True
            wanted[found] = False
        return np.flatnonzero(met)

    def keys(self, asked: Questions) -> list[K]:
        """All entries that meet one of the conjuncts, in the order in which they came."""
        met: dict[int, None] = {}
        rows = np.flatnonzero(self._group != _NO_GROUP)
        for conjunct in asked:
            met.update(dict.fromkeys(self._columns.met(conjunct, rows).tolist()))
        return [key for row in met for key in self._keys[row]]


def _likeness(group: int, context: Context, optional: frozenset[str]) -> Any:
    """Equal for entries that cannot be told apart; none for what cannot be compared."""
    try:
        alike = group, optional, likeness(context)
    except TypeError:
        return None
    return alike
