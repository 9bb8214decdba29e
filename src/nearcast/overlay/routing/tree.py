"""What routing needs to know of the tree, and what it wants to be told (``overlay.topology`` does that)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from nearcast.runtime.ports import Address


class TreeView(Protocol):
    """The tree as one of its routers sees it."""

    @property
    def identity(self) -> int:
        """The same for the same routers with the same edges."""

    @property
    def neighbours(self) -> Iterable[Address]: ...

    @property
    def routers(self) -> Iterable[Address]:
        """All that can be reached, this one included."""

    def __contains__(self, router: object) -> bool: ...

    def next_hop(self, router: Address) -> Address | None:
        """The neighbour behind which it lies; none: it is this one, or cannot be reached."""


class NoTree:
    """Before the first tree is known: nobody can be reached."""

    identity = -1
    neighbours: tuple[Address, ...] = ()
    routers: tuple[Address, ...] = ()

    def __contains__(self, router: object) -> bool:
        return False

    def next_hop(self, router: Address) -> Address | None:  # noqa: ARG002 - to nobody
        return None
