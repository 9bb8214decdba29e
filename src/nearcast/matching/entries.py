"""A routing table's question: behind which of its groups does somebody stand whom this message is for?

A *group* is what an entry belongs to: the router where it comes from, or the neighbour that made it.  Entries of one group
with equal contexts share a row: where a hundred clients are known by the area they are in, that area is judged once.
Tables may share their rows (``shared_contexts``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

from nearcast.matching.context_columns import Judge, Questions, questions, surely
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.history import Context

__all__ = ["EntryTable", "GroupTable", "Judge", "Questions", "questions", "surely"]

K = TypeVar("K", bound=Hashable)


class GroupTable(Generic[K]):
    """Contexts by key, each in one group, a number from 0: it knows the groups of what matches, not the keys."""

    def __init__(self, judge: Judge = surely, shared: SharedContexts | None = None) -> None:
        self._shared: Final = SharedContexts(judge, remember=0) if shared is None else shared
        self._number_of: Final[dict[K, int]] = {}
        self._times: Final[dict[int, int]] = {}
        """By number of a context: entries that have it."""

    def __len__(self) -> int:
        return len(self._number_of)

    def __contains__(self, key: object) -> bool:
        return key in self._number_of

    @property
    def rows(self) -> int:
        """Entries that differ."""
        return len(self._times)

    def put(
        self,
        key: K,
        group: int,
        context: Context,
        optional: frozenset[str] = frozenset(),
        known: dict[str, Any] | None = None,
    ) -> None:
        """Take an entry, or replace it; ``known``: what comes with the message that says so (``SharedContexts.take``)."""
        number = self._shared.take(group, context, optional, known)
        before = self._number_of.get(key)
        if before == number:
            self._shared.release(number)
            return
        if before is not None:
            self._drop(key, before)
        self._number_of[key] = number
        self._times[number] = self._times.get(number, 0) + 1

    def remove(self, key: K) -> None:
        """Forget an entry; one that is not there is forgotten already."""
        number = self._number_of.pop(key, None)
        if number is not None:
            self._drop(key, number)

    def _drop(self, key: K, number: int) -> None:  # noqa: ARG002 - for those who keep keys
        left = self._times[number] - 1
        if left:
            self._times[number] = left
        else:
            del self._times[number]
        self._shared.release(number)

    def groups(self, asked: Questions) -> set[int]:
        """Those in which an entry meets one of the conjuncts."""
        held, group_of = self._times, self._shared.group_of
        return {group_of[number] for number in self._shared.met(asked) if number in held} if held else set()

    def meets(self, asked: Questions) -> bool:
        """Whether any entry does."""
        held = self._times
        return bool(held) and not held.keys().isdisjoint(self._shared.met(asked))


class EntryTable(GroupTable[K]):
    """One that knows the keys as well."""

    def __init__(self, judge: Judge = surely, shared: SharedContexts | None = None) -> None:
        super().__init__(judge, shared)
        self._keys: Final[dict[int, dict[K, None]]] = {}

    def items(self) -> Iterator[tuple[K, Context]]:
        for key, number in self._number_of.items():
            yield key, self._shared.context(number)

    def put(
        self,
        key: K,
        group: int,
        context: Context,
        optional: frozenset[str] = frozenset(),
        known: dict[str, Any] | None = None,
    ) -> None:
        super().put(key, group, context, optional, known)
        self._keys.setdefault(self._number_of[key], {})[key] = None

    def _drop(self, key: K, number: int) -> None:
        keys = self._keys[number]
        del keys[key]
        if not keys:
            del self._keys[number]
        super()._drop(key, number)

    def keys(self, asked: Questions) -> list[K]:
        """All entries that meet one of the conjuncts, by the age of their contexts."""
        held = self._keys
        return [key for number in self._shared.met(asked) if number in held for key in held[number]] if held else []
