"""Who receives the events of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from nearcast.compiled import kernel
from nearcast.matching.grid import Int32s, Int64s
from nearcast.model.delivery import Delivery

Asked = Callable[[int, int], list[tuple[str, int]]]
"""Ids and qualities of service of the subscriptions that an owner and a mark stand for."""


@dataclass(frozen=True, eq=False, slots=True)
class Pairs:
    """Subscriptions that accept events: those of event i are ``marks[offsets[i]:offsets[i + 1]]``.

    ``owners`` are the clients that hold them; for marks see ``columns.Output``.
    """

    offsets: Int64s
    owners: Int32s
    marks: Int32s

    def events(self) -> Int32s:
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))


@dataclass(frozen=True, eq=False, slots=True)
class Matches:
    """The receivers of every event of a batch, each once.

    Receivers of event i are the numbers ``clients[offsets[i]:offsets[i + 1]]``; ``matches[i]`` gives their ids.
    """

    offsets: Int64s
    clients: Int32s
    pairs: Pairs
    ids: Sequence[str | None]
    asked: Asked

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, event: int) -> list[str]:
        if not -len(self) <= event < len(self):
            raise IndexError(f"event {event} of {len(self)}")
        event %= len(self)
        ids = self.ids
        return [ids[number] for number in self.clients[self.offsets[event] : self.offsets[event + 1]].tolist()]

    def __iter__(self) -> Iterator[list[str]]:
        return (self[event] for event in range(len(self)))

    def events(self) -> Int32s:
        """For each of ``clients``, the event."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.offsets))

    def asked_by(self, event: int, client: int) -> list[str]:
        """The subscriptions by which the client of that number receives the event, sorted; ask before the matcher changes."""
        span = slice(int(self.pairs.offsets[event]), int(self.pairs.offsets[event + 1]))
        marks = self.pairs.marks[span][self.pairs.owners[span] == client].tolist()
        return sorted({name for mark in dict.fromkeys(marks) for name, _ in self.asked(client, mark)})

    def deliveries(self, event: int) -> list[Delivery]:
        """The copies of one event, with the subscriptions that asked for them; ask before the matcher changes."""
        span = slice(int(self.pairs.offsets[event]), int(self.pairs.offsets[event + 1]))
        return deliveries(self[event], self.pairs.owners[span].tolist(), self.pairs.marks[span].tolist(), self.asked)


class Receivers(Sequence[str]):
    """The clients that receive one event, each once.

    ``numbers`` are known at once; ids are looked up when they are asked for (among a million clients that costs as much
    as the matching: every id lies somewhere else in memory).  Ask before the matcher changes.
    """

    __slots__ = ("_asked", "_clients", "_ids", "_marks", "_owners", "numbers")

    def __init__(
        self, numbers: list[int], owners: list[int], marks: list[int], ids: Sequence[str | None], asked: Asked
    ) -> None:
        self.numbers = numbers
        self._owners = owners
        self._marks = marks
        self._ids = ids
        self._asked = asked
        self._clients: list[str] | None = None

    def _names(self) -> list[str]:
        if self._clients is None:
            ids = self._ids
            self._clients = [client for number in self.numbers if (client := ids[number]) is not None]
        return self._clients

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._names()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __repr__(self) -> str:
        return f"Receivers({self._names()!r})"

    def deliveries(self) -> list[Delivery]:
        """One copy for each client, with the subscriptions that asked for it."""
        return deliveries(self._names(), self._owners, self._marks, self._asked)


def deliveries(clients: list[str], owners: list[int], marks: list[int], asked: Asked) -> list[Delivery]:
    """Pairs gathered by their owners, which are ``clients`` in the order of first appearance."""
    gathered: dict[int, dict[str, int]] = {}
    for owner, mark in dict.fromkeys(zip(owners, marks, strict=True)):  # one mark stands for all that look alike
        gathered.setdefault(owner, {}).update(asked(owner, mark))
    return [
        Delivery(client, frozenset(those), max(those.values(), default=0))
        for client, those in zip(clients, gathered.values(), strict=True)
    ]


def grouped(count: int, events: Int32s, owners: Int32s, marks: Int32s) -> Pairs:
    """Pairs in any order, brought into the order of their events."""
    order = np.argsort(events, kind="stable")
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(events, minlength=count), out=offsets[1:])
    return Pairs(offsets, owners[order], marks[order])


@kernel
def once(pairs_offsets: Int64s, owners: Int32s, seen: Int32s, offsets: Int64s, clients: Int32s) -> int:
    """Leave one of several subscriptions of a client; ``seen`` has room for every client and is all -1 before and after."""
    at = 0
    for event in range(len(pairs_offsets) - 1):
        offsets[event] = at
        for i in range(pairs_offsets[event], pairs_offsets[event + 1]):
            if seen[owners[i]] != event:
                seen[owners[i]] = event
                clients[at] = owners[i]
                at += 1
    offsets[len(pairs_offsets) - 1] = at
    for i in range(len(owners)):
        seen[owners[i]] = -1
    return at
