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
from itertools import groupby
from typing import Final

from nearcast.errors import InvalidInput
from nearcast.matching.entries import Judge, Questions
from nearcast.model.history import Context
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.absences import Absences, AbsenceSettings, literals_in
from nearcast.overlay.routing.composites import Partial, partials_in, read
from nearcast.overlay.routing.knowledge import Knowledge, Surroundings
from nearcast.overlay.routing.messages import STREAM, Absence, Again, Everything, Partials, Somebody, Stream
from nearcast.overlay.routing.streams import MOST_WAITING, Incoming
from nearcast.overlay.routing.tree import NoTree, TreeView
from nearcast.overlay.routing.wire import Routed
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address

_NONE: Final[frozenset[int]] = frozenset()


class HopLocal(Knowledge):
    kinds = (*STREAM, Again)

    """``absences``: whether neighbours also tell each other who is *not* behind them."""

    def __init__(self, judge: Judge, absences: AbsenceSettings | None = None) -> None:
        self.judge = judge
        self._absences: Final = (
            None if absences is None else Absences(absences, judge, self._possible, self._say_absence)
        )
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

    def start(self, surroundings: Surroundings) -> None:
        self._around = surroundings
        if self._absences is not None:
            window = self._absences.settings.window
            first = surroundings.random.uniform(0.5, 1.5) * window
            surroundings.timers.every(window, self._absences.window_ends, first=first)

    # What a strategy does

    @abstractmethod
    def _possible(self, neighbour: Address, asked: Questions) -> bool:
        """Whether by what that neighbour said somebody there could match, or nobody knows."""

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

    # Who is not there

    def local(self, handle: Handle, context: Context | None) -> None:
        if self._absences is not None:
            self._absences.local(handle, context)

    def judged(self, message: Routed, came_from: Address | None, *, useful: bool) -> None:
        if self._absences is not None and not useful and came_from is not None:
            self._absences.came_in_vain(came_from, message)

    def _excluded(self, neighbour: Address, message: Routed) -> frozenset[int]:
        """Which conjuncts of the message nobody there meets, as that neighbour said."""
        return _NONE if self._absences is None else self._absences.excluded(neighbour, message)

    def _knows_less(self, neighbour: Address) -> None:
        """Something that was known of that neighbour's side is not any more."""
        if self._absences is not None:
            self._absences.changed(neighbour)
            self._around.learnt(neighbour, None, frozenset())

    def _say_absence(self, neighbour: Address, kind: type[Absence], conjunct: str) -> None:
        self._updates += 1
        tree, number = self._next(neighbour)
        self._say(neighbour, kind(tree=tree, number=number, conjunct=conjunct))

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
            if isinstance(message, Absence):
                literals_in(message)
        except InvalidInput:
            # What it was about is not known: nothing that was said before counts any more.
            self._forget(neighbour)
            # Who asks for everything at once, and cannot read that, either, would ask without end; heartbeats do it in time.
            if not isinstance(message, Everything):
                self._around.send(neighbour, Again(self._tree.identity))
            self._say_everything(neighbour)  # what it was told was forgotten here as well
            raise
        said = self._incoming[neighbour].take(message)
        for absences, messages in groupby(said, lambda each: isinstance(each, Absence)):
            if absences:
                self._hear_absences(neighbour, list(messages))
            else:
                self._hear(neighbour, list(messages))

    def _hear_absences(self, neighbour: Address, said: list[Stream]) -> None:
        for message in said:
            if self._absences is not None and isinstance(message, Absence):
                self._absences.hear(neighbour, message)
                if isinstance(message, Somebody):
                    self._around.learnt(neighbour, None, frozenset())

    def _hear(self, neighbour: Address, said: list[Stream]) -> None:
        absences = self._absences
        if absences is not None and any(isinstance(message, Everything) for message in said):
            absences.forget_heard(neighbour)
        self._understand(neighbour, said)
        if absences is not None:
            absences.changed(neighbour, _additions(said))

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
        if self._absences is not None:
            self._absences.forget_told(neighbour)
        tree, number = self._next(neighbour)
        composites = self._everything(neighbour, tree, number)
        self._say(neighbour, Everything(tree=tree, number=number, composites=composites))

    # The tree, and what is lost

    def tree_changed(self, tree: TreeView) -> None:
        if tree.identity != self._tree.identity:
            self._incoming = {neighbour: Incoming() for neighbour in sorted(tree.neighbours)}
            self._tree = tree
            self._told.clear()
            if self._absences is not None:
                self._absences.open(self._incoming)
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
            if self._absences is not None:
                self._absences.forget_heard(neighbour)
            self._close(neighbour)
            self._knows_less(neighbour)

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


def _additions(said: list[Stream]) -> list[Partial] | None:
    """If these only add to all that is known of a side, or take from it: what they add."""
    found: list[Partial] = []
    for message in said:
        if not isinstance(message, Partials) or message.whole or message.names:
            return None
        found += [partial for _, partial in partials_in(message) if partial is not None]
    return found
