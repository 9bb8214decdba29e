"""Composite contexts: what lies behind a link, as far as it concerns some attributes (Def. 5.1, 5.2).

The document leaves out what has none of the attributes.  A filter can ask for what is missing (``IS NULL``), so here an
empty partial context stands for all of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

from nearcast.matching.entries import GroupTable, Judge
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.history import Context
from nearcast.model.values import likeness
from nearcast.overlay.routing.benefit import Rate
from nearcast.overlay.routing.messages import Attributes, Everything, Partials, Stream, attributes_tree, context_of

Partial = tuple[Context, frozenset[str]]
"""Attributes of somebody, or of several; and those that some of these lack."""

Change = tuple[int, Partial | None]
"""A number within the composite, and what it stands for now; none: nothing any more."""

Names = frozenset[str]
_READ: Final = "partials read"


def projected(partial: Partial, names: Names) -> Partial:
    context, optional = partial
    return {name: value for name, value in context.items() if name in names}, optional & names


def in_order(names: Names) -> Attributes:
    return tuple(sorted(names))


class Rows:
    """Changes of a composite, written once for all neighbours that are told of them."""

    def __init__(self, changes: Iterable[Change], hops: tuple[int, ...] = ()) -> None:
        self.hops: Final = hops
        self.changes: Final = list(changes)
        self.written: Final = tuple(
            (each, None, ()) if partial is None else (each, attributes_tree(partial[0]), in_order(partial[1]))
            for each, partial in self.changes
        )

    def message(self, names: Names, tree: int, number: int, *, whole: bool) -> Partials:
        """A composite, or what has changed in it, as it is sent."""
        said = Partials(
            tree=tree, number=number, names=in_order(names), whole=whole, partials=self.written, hops=self.hops
        )
        said.__dict__[_READ] = self.changes
        return said


def partials_in(message: Partials) -> list[Change]:
    """The rows of such a message, unpacked; kept with it."""
    found: list[Change] | None = message.__dict__.get(_READ)
    if found is None:
        found = message.__dict__[_READ] = [
            (number, None if attributes is None else (context_of(attributes), frozenset(optional)))
            for number, attributes, optional in message.partials
        ]
    return found


def read(message: Stream) -> None:
    """Whether all of it can be read: raises ``InvalidInput`` if not."""
    for composite in message.composites if isinstance(message, Everything) else (message,):
        if isinstance(composite, Partials):
            partials_in(composite)


class Condensed(ABC):
    """The partial contexts of a composite that is sent: as they are, or fewer that stand for them (Def. 4.3)."""

    @abstractmethod
    def add(self, partial: Partial) -> list[Change]: ...

    @abstractmethod
    def remove(self, partial: Partial) -> list[Change]:
        """One that was added."""

    @abstractmethod
    def all(self) -> list[tuple[int, Partial]]: ...


Condense = Callable[[Names], Condensed]
"""Makes one for a composite of these attributes."""


class Listed(Condensed):
    """A plain list of those that differ."""

    def __init__(self, _names: Names = frozenset()) -> None:
        self._numbers: Final[dict[Any, int]] = {}
        self._kept: Final[dict[int, tuple[Partial, int]]] = {}
        self._next = 0

    def add(self, partial: Partial) -> list[Change]:
        key = key_of(partial)
        number = self._numbers.get(key)
        if number is not None:
            self._kept[number] = partial, self._kept[number][1] + 1
            return []
        number = self._numbers[key] = self._next
        self._next += 1
        self._kept[number] = partial, 1
        return [(number, partial)]

    def remove(self, partial: Partial) -> list[Change]:
        key = key_of(partial)
        number = self._numbers[key]
        times = self._kept[number][1] - 1
        if times:
            self._kept[number] = partial, times
            return []
        del self._numbers[key], self._kept[number]
        return [(number, None)]

    def all(self) -> list[tuple[int, Partial]]:
        return [(number, partial) for number, (partial, _) in self._kept.items()]


def key_of(partial: Partial) -> Any:
    """The same for those that say the same."""
    context, optional = partial
    return likeness(context), optional


class Held:
    """A composite that a neighbour sent."""

    def __init__(self, names: Names, judge: Judge, shared: SharedContexts | None = None) -> None:
        self.names: Final = names
        self.partials: Final[dict[int, Partial]] = {}
        self.table: Final[GroupTable[int]] = GroupTable(judge, shared)
        self.updates: Final = Rate()
        self.prunes: Final = Rate()
        self.measured = False
        """Whether it was there when this window began: a part of one says little."""

    def put(self, number: int, partial: Partial | None) -> tuple[Partial | None, Partial | None]:
        """What it stood for before, and what it stands for now."""
        before = self.partials.pop(number, None)
        if partial is None:
            self.table.remove(number)
        else:
            self.partials[number] = partial
            self.table.put(number, 0, *partial)
        return before, partial


class Sent:
    """A composite that is kept up to date at a neighbour."""

    def __init__(self, names: Names, condensed: Condensed) -> None:
        self.names: Final = names
        self.condensed: Final = condensed
        self.sources: dict[str, Names] = {}
        """By neighbour: the composite of its that went into this one."""

    def changed(self, before: Partial | None, after: Partial | None) -> list[Change]:
        """Somebody whom it stands for is another now."""
        old = None if before is None else projected(before, self.names)
        new = None if after is None else projected(after, self.names)
        if old is not None and new is not None and key_of(old) == key_of(new):
            return []
        # First the new one: what stands for both is then never without members.
        changes = [] if new is None else self.condensed.add(new)
        if old is not None:
            changes += self.condensed.remove(old)
        return changes
