"""What neighbours tell each other of one link, in one tree: the common part of strategies whose entries mean "behind me".

Such entries say nothing of where a context lies but on which side, so another tree makes all of them void: with it everything
begins anew.  What goes round in a loop while trees differ is of another tree, and is not listened to; what is of a tree that is
not known here yet waits for it.

Within a tree, what is said of a link is numbered.  It is understood in order, whatever the wires do; neighbours tell with
their heartbeats how much they have said, and who has heard less asks for everything again.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.overlay.routing.composites import read
from nearcast.overlay.routing.knowledge import Knowledge, Surroundings
from nearcast.overlay.routing.messages import STREAM, Again, Everything, Partials, Stream
from nearcast.overlay.routing.streams import MOST_WAITING, Incoming
from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address


class HopLocal(Knowledge):
    kinds = (*STREAM, Again)

    def __init__(self) -> None:
        self._incoming: dict[Address, Incoming[Stream]] = {}
        """By neighbour."""

        self._updates = self._resent = 0
        self._around: Surroundings
        self._tree: TreeView = NoTree()
        self._numbers: Final[dict[Address, int]] = {}
        """Of the next message to each neighbour."""

        self._told: Final[set[Address]] = set()
        """Neighbours that joined in this tree."""

        self._early: dict[Address, list[Stream]] = {}
        """Of a tree that is not known here yet."""

    # What a strategy does

    @abstractmethod
    def _open(self) -> None:
        """There is another tree, with these neighbours (``_incoming``): they have said nothing, and nothing was said to them."""

    @abstractmethod
    def _close(self, neighbour: Address) -> None:
        """Forget what that neighbour said, and what it was told."""

    @abstractmethod
    def _understand(self, neighbour: Address, said: list[Stream]) -> None:
        """Messages of a neighbour, in their order."""

    @abstractmethod
    def _everything(self, neighbour: Address, tree: int, number: int) -> tuple[Partials, ...]:
        """All that the neighbour is to know."""

    # What neighbours say

    def heard(self, neighbour: Address, message: Message) -> None:
        if isinstance(message, Again):
            if message.tree == self._tree.identity and neighbour in self._incoming:
                self._say_everything(neighbour)
        elif isinstance(message, Stream):
            if message.tree == self._tree.identity and neighbour in self._incoming:
                self._listen(neighbour, message)
            else:
                early = self._early.setdefault(neighbour, [])
                if len(early) < MOST_WAITING:
                    early.append(message)

    def _listen(self, neighbour: Address, message: Stream) -> None:
        try:
            read(message)
        except InvalidInput:
            # What it was about is not known: nothing that was said before counts any more.
            self._forget(neighbour)
            self._around.send(neighbour, Again(self._tree.identity))
            raise
        said = self._incoming[neighbour].take(message)
        if said:
            self._understand(neighbour, said)

    # What they are told

    def _next(self, neighbour: Address) -> tuple[int, int]:
        """The tree and the number of the next message."""
        number = self._numbers.get(neighbour, 0)
        self._numbers[neighbour] = number + 1
        return self._tree.identity, number

    def _say(self, neighbour: Address, message: Stream) -> None:
        self._around.send(neighbour, message)

    def _say_everything(self, neighbour: Address) -> None:
        self._resent += 1
        self._updates += 1
        tree, number = self._next(neighbour)
        composites = self._everything(neighbour, tree, number)
        self._say(neighbour, Everything(tree=tree, number=number, composites=composites))

    # The tree, and what is lost

    def tree_changed(self, tree: TreeView) -> None:
        if tree.identity != self._tree.identity:
            self._incoming = {neighbour: Incoming() for neighbour in sorted(tree.neighbours)}
            self._tree = tree
            self._told.clear()
            self._open()
            for neighbour in self._incoming:
                self._begin(neighbour)
        self._tree = tree
        early, self._early = self._early, {}
        for neighbour, messages in early.items():
            for message in messages:
                if message.tree == tree.identity and neighbour in self._incoming:
                    with suppress(InvalidInput):
                        self._listen(neighbour, message)

    def joined(self, neighbour: Address) -> None:
        """Also one that was there in this tree before: then nobody knows what it has forgotten."""
        if neighbour in self._told:
            self._forget(neighbour)
            self._begin(neighbour)
        self._told.add(neighbour)

    def left(self, neighbour: Address) -> None:
        self._forget(neighbour)

    def _forget(self, neighbour: Address) -> None:
        if neighbour in self._incoming:
            self._incoming[neighbour] = Incoming()
            self._close(neighbour)

    def _begin(self, neighbour: Address) -> None:
        """Numbers go on from the clock, above all that were used before: who comes back to a tree may not seem to repeat itself."""
        self._numbers[neighbour] = max(self._numbers.get(neighbour, 0), self._around.now())
        self._say_everything(neighbour)

    def news(self, neighbour: Address) -> bytes:
        said = self._numbers.get(neighbour, 0)
        return self._tree.identity.to_bytes(8, "little", signed=True) + said.to_bytes(8, "little")

    def heard_news(self, neighbour: Address, news: bytes) -> None:
        incoming = self._incoming.get(neighbour)
        if (
            incoming is None
            or len(news) != 16
            or int.from_bytes(news[:8], "little", signed=True) != self._tree.identity
        ):
            return
        if incoming.lacks(int.from_bytes(news[8:], "little")):
            self._around.send(neighbour, Again(self._tree.identity))
