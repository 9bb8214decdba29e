"""The contexts of clients, and the addressing of events against them (how: ``context_columns``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from nearcast.errors import InvalidContext, UnknownName
from nearcast.matching.areas import Bools
from nearcast.matching.context_columns import ContextColumns, questions
from nearcast.matching.grid import Floats, Int32s
from nearcast.model.event import checked_attributes
from nearcast.model.history import Context
from nearcast.model.normal_form import Conjunct

NO_CONTEXT: Final = 0
"""The row of all clients that registered no context: nothing but their position."""


class ContextTable:
    """The present contexts of clients, which are known here by their numbers."""

    def __init__(self) -> None:
        self._columns = ContextColumns()
        self._of_client: dict[int, dict[str, int]] = {}
        no_context = self._columns.add({})
        assert no_context == NO_CONTEXT

    def __len__(self) -> int:
        return len(self._columns) - 1

    def contexts(self, client: int) -> dict[str, Context]:
        rows = self._of_client.get(client, {})
        return {name: self._columns.contexts[row] or {} for name, row in rows.items()}

    def register(self, client: int, name: str, attributes: Mapping[str, object]) -> None:
        """Register a context or replace it."""
        if not name:
            raise InvalidContext("a context needs a name")
        checked = checked_attributes(attributes, frozenset())
        rows = self._of_client.setdefault(client, {})
        row = rows.get(name)
        if row is None:
            rows[name] = self._columns.add(checked)
        else:
            self._columns.put(row, checked)

    def deregister(self, client: int, name: str) -> None:
        row = self._of_client.get(client, {}).pop(name, None)
        if row is None:
            raise UnknownName(f"the client has registered no context {name!r}")
        self._columns.remove(row)
        if not self._of_client[client]:
            del self._of_client[client]

    def forget(self, client: int) -> None:
        for row in self._of_client.pop(client, {}).values():
            self._columns.remove(row)

    def addressed(self, conjuncts: tuple[Conjunct, ...], clients: Int32s, lat: Floats, lon: Floats) -> Bools:
        """For each client whether one conjunct holds within one of its contexts.  ``lat``, ``lon``: of these clients."""
        rows_of = [list(self._of_client.get(client, {}).values()) or [NO_CONTEXT] for client in clients.tolist()]
        owner = np.repeat(np.arange(len(clients)), [len(rows) for rows in rows_of])
        rows = np.array([row for rows in rows_of for row in rows], np.int64)
        met = np.zeros(len(clients), np.bool_)
        for conjunct in questions(conjuncts):
            alive = np.flatnonzero(~met[owner])
            for question in conjunct:
                if not len(alive):
                    break
                at = owner[alive]
                alive = alive[self._columns.judge(question, rows[alive], (lat[at], lon[at]))]
            met[owner[alive]] = True
        return met
