"""The contexts that are registered at a router, exactly."""

from __future__ import annotations

from typing import Final

from nearcast.matching.entries import EntryTable, Questions
from nearcast.matching.shared_contexts import SharedContexts
from nearcast.model.event import checked_attributes
from nearcast.model.history import Context
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.reporting import Reporting, alike


class LocalContexts:
    """What is registered, and what the network knows of it."""

    def __init__(self, reporting: Reporting, shared: SharedContexts | None = None) -> None:
        self._reporting: Final = reporting
        self._table: Final[EntryTable[Handle]] = EntryTable(shared=shared)
        self._exact: Final[dict[Handle, Context]] = {}
        self._reported: Final[dict[Handle, Context]] = {}

    def __len__(self) -> int:
        return len(self._exact)

    def __contains__(self, handle: object) -> bool:
        return handle in self._exact

    def exact(self, handle: Handle) -> Context:
        return self._exact[handle]

    def reported(self, handle: Handle) -> Context | None:
        return self._reported.get(handle)

    def put(self, handle: Handle, context: Context) -> Context | None:
        """What the network is to be told; none: nothing."""
        exact = checked_attributes(context, frozenset())
        self._exact[handle] = exact
        self._table.put(handle, 0, exact)
        last = self._reported.get(handle)
        report = self._reporting.reported(exact, last)
        if alike(report, last):
            return None
        self._reported[handle] = report
        return report

    def remove(self, handle: Handle) -> bool:
        if self._exact.pop(handle, None) is None:
            return False
        self._table.remove(handle)
        del self._reported[handle]
        return True

    def addressed(self, asked: Questions) -> frozenset[Handle]:
        return frozenset(self._table.keys(asked)) if self._exact else frozenset()
