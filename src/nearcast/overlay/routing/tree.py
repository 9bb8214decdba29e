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


class Follower(Protocol):
    """Whoever wants to be told of the tree beside a router (``overlay.topology.topology`` `TreeListener` says of what)."""

    def tree_changed(self, tree: TreeView) -> None: ...

    def joined(self, neighbour: Address) -> None: ...

    def left(self, neighbour: Address) -> None: ...

    def news(self, neighbour: Address) -> bytes: ...

    def heard(self, neighbour: Address, news: bytes) -> None: ...


class NoTree:
    """Before the first tree is known: nobody can be reached."""

    identity = -1
    neighbours: tuple[Address, ...] = ()
    routers: tuple[Address, ...] = ()

    def __contains__(self, router: object) -> bool:
        return False

    def next_hop(self, router: Address) -> Address | None:  # noqa: ARG002 - to nobody
        return None


def packed(parts: Iterable[bytes]) -> bytes:
    """News of several in one, each with its length before it; nothing if nobody has any."""
    parts = list(parts)
    return b"".join(len(part).to_bytes(2, "little") + part for part in parts) if any(parts) else b""


def unpacked(news: bytes) -> list[bytes]:
    """What ``packed`` was given; of what it did not make, whatever that is."""
    parts = []
    while news:
        end = 2 + int.from_bytes(news[:2], "little")
        parts.append(news[2:end])
        news = news[end:]
    return parts or [b""]
