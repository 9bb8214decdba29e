"""What several contexts make together, also when one of them leaves: after a few merges, not after one for each.

A binary tree over the members; each inner node is what those below it make.  Who comes or goes only marks the way to the root, and what is
marked is made anew when somebody asks.  That is right in any order, because merging is a join.
"""

from __future__ import annotations

from typing import Final

from nearcast.overlay.handles import Handle
from nearcast.overlay.values.coarse import Coarse, merged
from nearcast.overlay.values.kinds import Limits

_ROOT: Final = 1


class Joins:
    """Members that can be merged, all of them."""

    def __init__(self, limits: Limits) -> None:
        self._limits: Final = limits
        self._slots: Final[dict[Handle, int]] = {}
        self._free: list[int] = [0]
        self._nodes: list[Coarse | None] = [None, None]
        """The children of node i are 2i and 2i + 1; leaves are the second half."""

        self._stale = bytearray(1)
        """By inner node, of which there are as many as leaves, with one that is none; with a node, all above it are stale."""

    def put(self, member: Handle, context: Coarse) -> None:
        slot = self._slots.get(member)
        if slot is None:
            if not self._free:
                self._grow()
            slot = self._slots[member] = self._free.pop()
        self._set(slot, context)

    def remove(self, member: Handle) -> None:
        slot = self._slots.pop(member)
        self._free.append(slot)
        self._set(slot, None)

    def whole(self) -> Coarse:
        """What all of them make; there must be some."""
        self._refresh(_ROOT)
        whole = self._nodes[_ROOT]
        assert whole is not None
        return whole

    def _set(self, slot: int, context: Coarse | None) -> None:
        node = len(self._stale) + slot
        self._nodes[node] = context
        node >>= 1
        while node and not self._stale[node]:
            self._stale[node] = 1
            node >>= 1

    def _refresh(self, node: int) -> None:
        if node >= len(self._stale) or not self._stale[node]:
            return
        self._refresh(2 * node)
        self._refresh(2 * node + 1)
        left, right = self._nodes[2 * node], self._nodes[2 * node + 1]
        if left is None or right is None:
            self._nodes[node] = right if left is None else left
        else:
            self._nodes[node] = merged(left, right, self._limits)
            assert self._nodes[node] is not None, "what was merged with more can be merged with less"
        self._stale[node] = 0

    def _grow(self) -> None:
        leaves = len(self._stale)
        self._nodes = [None] * (2 * leaves) + self._nodes[leaves:] + [None] * leaves
        self._free = list(range(2 * leaves - 1, leaves - 1, -1))
        self._stale = bytearray(b"\1" * (2 * leaves))
