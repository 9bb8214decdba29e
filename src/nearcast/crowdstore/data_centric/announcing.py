"""Whoever has downloaded an object has a copy for others, and says so where its metadata is (THYME 5.2.2, 5.2.3).

That is a hint: whoever is not told of this copy gets the object from another one.  So nobody answers it, hints wait for each other, and where
a copy in the same cell is known already there is nothing to say.
"""

from __future__ import annotations

from typing import Final

from nearcast.crowdstore.data_centric.desk import Desk, batches
from nearcast.crowdstore.data_centric.entries import Item
from nearcast.crowdstore.data_centric.messages import Replicated
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.runtime.messages import encoded
from nearcast.runtime.ports import Cancellable


class Announcing:
    def __init__(self, desk: Desk, wait: float) -> None:
        self._desk: Final = desk
        self._wait: Final = wait
        self._waiting: Final[dict[Cell, dict[ObjectKey, None]]] = {}
        self._timer: Cancellable | None = None

    def has(self, item: Item) -> None:
        """This host has downloaded it."""
        here = self._desk.here
        if here != item.active and here not in [place.cell for place in item.replicas]:
            self.tell(item.metadata)

    def tell(self, metadata: Metadata) -> None:
        """There is a copy here that nobody knows of."""
        for home in self._desk.homes(metadata.tags):
            self._waiting.setdefault(home, {})[metadata.key] = None
        if self._timer is None:
            self._timer = self._desk.host.timers.after(self._wait, self._say)

    def _say(self) -> None:
        self._timer = None
        desk, waiting = self._desk, dict(self._waiting)
        self._waiting.clear()
        for home, found in waiting.items():
            keys, start = tuple(found), 0
            for count in batches(len(encoded(_hint(desk, (key,)))) for key in keys):
                desk.to_cells([home], _hint(desk, keys[start : start + count]))
                start += count

    def stop(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _hint(desk: Desk, keys: tuple[ObjectKey, ...]) -> Replicated:
    return Replicated(keys, desk.router.address, *desk.here, desk.now())
