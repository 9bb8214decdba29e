"""What a router knows of the contexts behind its neighbours: the interface of all strategies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from nearcast.matching.entries import Judge, surely
from nearcast.model.history import Context
from nearcast.model.time import Instant
from nearcast.overlay.handles import Handle
from nearcast.overlay.routing.tree import TreeView
from nearcast.overlay.routing.wire import Routed
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Timers

Learnt = Callable[[Address, Context | None, frozenset[str]], None]
"""``learnt(neighbour, context, optional)``: this, as far as is told, lies behind that neighbour now; none: less is known than before."""


def _nobody_waits(neighbour: Address, context: Context | None, optional: frozenset[str]) -> None:
    """Messages are sent on at once, or never."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a strategy may use."""

    me: Address
    now: Callable[[], Instant]
    timers: Timers
    random: Random
    send: Callable[[Address, Message], None]
    """To a neighbour in the tree."""

    learnt: Learnt = _nobody_waits
    """For messages that wait for somebody to come."""

    lost: Learnt = _nobody_waits
    """The same of what is not there any more: a message may be on its way to it."""


@dataclass(frozen=True, slots=True)
class KnowledgeStatistics:
    entries: int
    """Contexts, or parts of them, that it was told."""

    rows: int
    """Of these that differ."""

    updates_sent: int
    """Messages to neighbours about contexts."""

    resent: int
    """Of these because something was new or missing."""

    invalidations_sent: int = 0
    composites_held: int = 0
    composites_sent: int = 0
    prunes: int = 0
    """Messages not sent on, because of a composite or of aggregates."""

    reaggregated: int = 0
    """Aggregates that were dissolved, because they brought too many messages in vain."""

    absences_heard: int = 0
    """What neighbours said that nobody behind them meets, and is so."""

    absences_told: int = 0


class Knowledge(ABC):
    """One for each router, and one router's alone."""

    kinds: ClassVar[tuple[type[Message], ...]]
    """Messages that it understands."""

    judge: Judge
    """What counts as a match."""

    @property
    def coarse(self) -> bool:
        """Whether it asks of what it was told what is possible: coarse contexts are safe with it."""
        return self.judge is not surely

    @abstractmethod
    def start(self, surroundings: Surroundings) -> None: ...

    @abstractmethod
    def local(self, handle: Handle, context: Context | None) -> None:
        """A context that is registered here, as the network may know it; none: it is gone."""

    @abstractmethod
    def heard(self, neighbour: Address, message: Message) -> None: ...

    @abstractmethod
    def tree_changed(self, tree: TreeView) -> None: ...

    @abstractmethod
    def joined(self, neighbour: Address) -> None:
        """It knows nothing of what was said before."""

    @abstractmethod
    def left(self, neighbour: Address) -> None: ...

    @abstractmethod
    def towards(self, message: Routed, came_from: Address | None) -> list[Address]:
        """The neighbours that are to get the message, in order."""

    def judged(self, message: Routed, came_from: Address | None, *, useful: bool) -> None:
        """What became of a message: passed on or delivered, or neither."""

    @abstractmethod
    def news(self, neighbour: Address) -> bytes:
        """For the next heartbeat: enough to see that something is missing."""

    @abstractmethod
    def heard_news(self, neighbour: Address, news: bytes) -> None: ...

    @abstractmethod
    def statistics(self) -> KnowledgeStatistics: ...
