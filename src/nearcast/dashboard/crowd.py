"""Names and kinds of clients by their numbers: what has changed since the last look.

Names are compared at every look, which is one comparison of two lists.  In which scheme somebody is and what role it has takes a look at each
client: a few in every period, those first of whom nothing is known yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nearcast.broker.core import Broker
from nearcast.dashboard.contract import Names
from nearcast.dashboard.positions import MOST, Positions
from nearcast.model.values import Value

A_LOOK: Final = 500
"""Clients whose kind is looked at."""

A_LOOK_AFTER_CHANGES: Final = 2_000
CALM: Final = 20
"""Looks after which nothing of a transition is left to be seen."""

MOST_KINDS: Final = 255
MOST_ROLES: Final = 64
"""Which clients give themselves."""

LONGEST_KIND: Final = 64
"""Characters: a legend is no place for more."""

ROLE: Final = "role"
TRANSPORT: Final = "transport"


class Kinds:
    """Words and their numbers; 0 is the empty one, and also what does not fit."""

    def __init__(self, most: int = MOST_KINDS) -> None:
        self.words: Final = [""]
        self._numbers: Final[dict[object, int]] = {"": 0}
        self._kinds: Final[list[object]] = [""]
        self._most: Final = most

    def number(self, kind: object) -> int:
        number = self._numbers.get(kind)
        if number is None:
            if len(self.words) >= self._most:
                return 0  # and not remembered: clients may think of any number of them
            number = self._numbers[kind] = len(self.words)
            self.words.append(str(kind))
            self._kinds.append(kind)
        return number

    def tidy(self, counts: Sequence[int]) -> tuple[int, int] | None:
        """Forget words that nobody has, the last of them; one in the middle gives its place to the last that somebody has.

        Answers from where to where that one has moved: whoever has it is to be given the new number.  Until all know, it stands in both places.
        """
        while len(self.words) > 1 and not counts[len(self.words) - 1]:
            self.words.pop()
            kind = self._kinds.pop()
            if self._numbers.get(kind) == len(self.words):
                del self._numbers[kind]
        last = len(self.words) - 1
        hole = next((number for number in range(1, last) if not counts[number]), None)
        if hole is None:
            return None
        if self._numbers.get(self._kinds[hole]) == hole:
            del self._numbers[self._kinds[hole]]
        kind = self._kinds[hole] = self._kinds[last]
        self.words[hole] = self.words[last]
        self._numbers[kind] = hole
        return last, hole


class Crowd:
    def __init__(self, broker: Broker, positions: Positions) -> None:
        self._broker: Final = broker
        self._matcher: Final = broker.presence.matcher
        self._positions: Final = positions
        self.schemes: Final = Kinds()
        self.roles: Final = Kinds(MOST_ROLES)
        self._ids: list[str | None] = []
        self.names: Final[dict[int, str]] = {}
        self._new: Final = deque[int]()
        """Of whom nothing is known yet."""

        self._next = 0
        self._transitions = 0
        self._hurry = 0
        self._until_tidy = CALM

    def look(self) -> Names | None:
        """What is new; none if nothing is.  After the positions' look, which makes room for marks."""
        schemes, roles = tuple(self.schemes.words), tuple(self.roles.words)
        add, gone = self._renamed()
        self._positions.show_again(list(add))  # they may be just where those were who had these numbers before
        self._new.extend(add)
        self._mark_some()
        self._tidy()
        other_schemes, other_roles = schemes != tuple(self.schemes.words), roles != tuple(self.roles.words)
        if not (add or gone or other_schemes or other_roles):
            return None
        return Names(
            {str(number): client for number, client in add.items()},
            gone,
            list(self.schemes.words) if other_schemes else None,
            list(self.roles.words) if other_roles else None,
        )

    def _renamed(self) -> tuple[dict[int, str], list[int]]:
        ids = self._matcher.ids[:MOST]
        if ids == self._ids:
            return {}, []
        before, sessions = self._ids, self._broker.sessions.all
        before.extend([None] * (len(ids) - len(before)))
        add: dict[int, str] = {}
        gone = []
        for number, (old, new) in enumerate(zip(before, ids, strict=True)):
            if old != new:
                if self.names.pop(number, None) is not None:
                    gone.append(number)
                    self._positions.mark(number, 0, 0)
                if new is not None and new in sessions:  # else it is a group that shares what it gets
                    add[number] = self.names[number] = new
        self._ids = list(ids)
        return add, gone

    def _mark_some(self) -> None:
        live, size = self._broker.scheming.live, len(self._ids)
        if live.transitions != self._transitions:
            self._transitions, self._hurry = live.transitions, CALM
        self._hurry = max(0, self._hurry - 1)
        most = min(size, A_LOOK_AFTER_CHANGES if self._hurry or self._new else A_LOOK)
        for _ in range(most):
            if self._new:
                number = self._new.popleft()
            else:
                number = self._next = (self._next + 1) % size
            client = self.names.get(number)
            if client is not None:
                self._mark(number, client)

    def _tidy(self) -> None:
        """Now and then; at once where pages know of a word that has moved, but not yet that its old place is gone."""
        self._until_tidy -= 1
        if self._until_tidy > 0:
            return
        columns = (self.schemes, self._positions.schemes), (self.roles, self._positions.roles)
        moved = False
        for kinds, column in columns:
            if len(kinds.words) > 1:
                move = kinds.tidy(np.bincount(column, minlength=len(kinds.words)).tolist())
                if move is not None:
                    self._positions.renumber(column, *move)
                    moved = True
        self._until_tidy = 1 if moved else CALM

    def _mark(self, number: int, client: str) -> None:
        live = self._broker.scheming.live
        scheme = self.schemes.number(live.scheme_of(client)) if live.takes_part(client) else 0
        contexts = self._broker.presence.contexts(client)
        self._positions.mark(number, scheme, self.roles.number(role_of(contexts)) if contexts else 0)


def role_of(contexts: Mapping[str, Mapping[str, Value]]) -> str:
    """What a client is, by one of its contexts: its ``role``, or the last part of its ``transport``."""
    for attributes in contexts.values():
        if ROLE in attributes:
            return str(attributes[ROLE])[:LONGEST_KIND]
    for attributes in contexts.values():
        if TRANSPORT in attributes:
            return str(attributes[TRANSPORT]).rstrip("/").rpartition("/")[2][:LONGEST_KIND]
    return ""
