"""Who was there? The way of a question to all nodes that may know, and of their answers (Alg. 6.1, 6.4).

A router from which a question goes more than one way, its own archive being one, is a *branching point*.  Answers are collected from
the ``depth``-th branching point on: at the first one (FCH, the same as PCH1), at the n-th (PCHn), or nowhere (SH).  Nodes that have
fewer branching points before them resolve by themselves.

The document leaves open what happens when answers are lost.  Here each hop is confirmed and repeated (``confirming``); who cannot pass a
question on asks once more, along the tree as it is then; and who waits in vain answers with what it has, as not whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from nearcast.model.time import MICROSECONDS
from nearcast.overlay.routing.wire import Routed
from nearcast.overlay.temporal.messages import Answer, Confirmed, Depth, Question, Span
from nearcast.runtime.ports import Address, Cancellable, Timers

_ATTEMPTS: Final = 2
_REMEMBERED: Final = 60.0
"""Seconds for which late answers are passed on."""

_Key = tuple[str, int]
"""A message, and which attempt to ask for it."""


class Places(Protocol):
    """Which ways a question goes from here (``areas``)."""

    def here(self, message: Routed) -> bool: ...

    def towards(self, message: Routed, came_from: Address | None) -> list[Address]: ...


class Keeper(Protocol):
    """Whoever keeps messages that wait for somebody to come (``future``): it keeps what questions bring by."""

    def asked(self, message: Routed, came_from: Address | None) -> None:
        """The question has come here, and will be answered."""

    def asking(self, message: Routed, neighbour: Address) -> None:
        """It goes there."""

    def asked_in_vain(self, message: Routed, neighbour: Address) -> None:
        """Nobody there has confirmed it."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a lookup may use."""

    me: Address
    timers: Timers
    tell: Callable[[Address, Confirmed, Callable[[], None] | None], None]
    """To a router, until it is confirmed; or call back that it failed."""

    new: Callable[[str], bool]
    """Whether that is heard for the first time."""

    search: Callable[[Routed], Iterable[Span]]
    """In the own archive."""

    resolve: Callable[[Routed, Iterable[Span], bool], None]
    """``resolve(message, spans, whole)``: send them to the trusted nodes."""


@dataclass(slots=True)
class _Collection:
    """At a branching point: what has come so far."""

    question: Question
    missing: set[Address]
    spans: list[Span]
    timer: Cancellable
    whole: bool = True


@dataclass(slots=True)
class LookupStatistics:
    """Counts; copied by who asks."""

    questions: int = 0
    """Sent to neighbours."""

    answers: int = 0
    searched: int = 0
    branched: int = 0
    """Times at which this router was a branching point."""

    given_up: int = 0
    """Collections that ended without some answers."""

    late: int = 0
    """Answers that came after that."""


class Lookup:
    """Of one router."""

    def __init__(self, around: Around, places: Places, margin: float) -> None:
        self._around: Final = around
        self._places: Final = places
        self._margin: Final = round(margin * MICROSECONDS)
        self._collections: Final[dict[_Key, _Collection]] = {}
        self._ended: Final[dict[_Key, Question]] = {}
        """Collections that are over: what comes now is passed on as it is."""

        self.keeper: Keeper | None = None
        self.statistics: Final = LookupStatistics()

    def ask(self, message: Routed, depth: Depth, patience: float) -> None:
        """From here."""
        self._hear(None, Question(message=message, depth=depth, patience=round(patience * MICROSECONDS)))

    def hear(self, sender: Address, question: Question) -> None:
        self._hear(sender, question)

    def _hear(self, sender: Address | None, question: Question) -> None:
        if self._around.new(f"{question.message.id} {question.attempt}"):
            if self.keeper is not None:
                self.keeper.asked(question.message, sender)
            self._pass_on(sender, question, question.attempt)
        else:
            # It came by another way before, because the tree has changed; the answer goes that way, perhaps not yet.
            self._give(question, (), whole=False)

    def _pass_on(self, sender: Address | None, question: Question, attempt: int) -> None:
        message = question.message
        here, neighbours = self._places.here(message), self._places.towards(message, sender)
        if len(neighbours) + here > 1:
            self._branch(sender, question, attempt, neighbours, here=here)
        elif neighbours:
            self._send(sender, question, msgspec.structs.replace(question, attempt=attempt), neighbours[0])
        else:
            self._give(question, self._search(message) if here else (), whole=True)

    def _branch(
        self, sender: Address | None, question: Question, attempt: int, neighbours: list[Address], *, here: bool
    ) -> None:
        self.statistics.branched += 1
        message = question.message
        found = self._search(message) if here else []
        points = (*question.points, self._around.me)
        if len(points) >= question.depth:
            key = message.id, attempt
            timer = self._around.timers.after(question.patience / MICROSECONDS, lambda: self._end(key))
            self._collections[key] = _Collection(question, set(neighbours), found, timer)
        elif found:
            self._around.resolve(message, found, False)
        patience = max(question.patience - self._margin, self._margin)
        for neighbour in neighbours:
            onwards = msgspec.structs.replace(
                question, points=points, branch=neighbour, patience=patience, attempt=attempt
            )
            self._send(sender, question, onwards, neighbour)

    def _send(self, sender: Address | None, question: Question, onwards: Question, neighbour: Address) -> None:
        self.statistics.questions += 1
        if self.keeper is not None:
            self.keeper.asking(question.message, neighbour)
        self._around.tell(neighbour, onwards, lambda: self._failed(sender, question, onwards.attempt, neighbour))

    def _failed(self, sender: Address | None, question: Question, attempt: int, neighbour: Address) -> None:
        if self.keeper is not None:
            self.keeper.asked_in_vain(question.message, neighbour)
        self._once_more(sender, question, attempt, neighbour)

    def _once_more(self, sender: Address | None, question: Question, attempt: int, neighbour: Address) -> None:
        """The neighbour is gone.  By now the tree may have found another way to those behind it."""
        key = question.message.id, attempt
        again = attempt + 1
        if again < _ATTEMPTS and self._around.new(f"{question.message.id} {again}"):
            if key in self._collections:
                self._close(key)
            self._pass_on(sender, question, again)
        elif key in self._collections:
            self._collections[key].whole = False
            self._came(key, neighbour)
        elif key not in self._ended:
            self._give(question, (), whole=False)

    def answered(self, answer: Answer) -> None:
        key = answer.message, answer.attempt
        collection = self._collections.get(key)
        if collection is not None:
            collection.spans += answer.spans
            collection.whole &= answer.whole
            if answer.last:
                self._came(key, answer.branch)
        elif answer.spans and key in self._ended:
            self.statistics.late += 1
            self._give(self._ended[key], answer.spans, whole=False, last=False)

    def _came(self, key: _Key, branch: Address) -> None:
        collection = self._collections[key]
        collection.missing.discard(branch)
        if not collection.missing:
            self._end(key)

    def _end(self, key: _Key) -> None:
        collection = self._close(key)
        self.statistics.given_up += bool(collection.missing)
        self._give(collection.question, collection.spans, whole=collection.whole and not collection.missing)

    def _close(self, key: _Key) -> _Collection:
        collection = self._collections.pop(key)
        collection.timer.cancel()
        self._ended[key] = collection.question
        self._around.timers.after(_REMEMBERED, lambda: self._forget(key))
        return collection

    def _forget(self, key: _Key) -> None:
        self._ended.pop(key, None)

    def _give(self, question: Question, spans: Iterable[Span], *, whole: bool, last: bool = True) -> None:
        """To the branching point that collects, or, if none does, to the trusted nodes."""
        points, message, found = question.points, question.message, tuple(spans)
        if len(points) >= question.depth:
            assert question.branch is not None
            self.statistics.answers += 1
            answer = Answer(
                message=message.id,
                attempt=question.attempt,
                branch=question.branch,
                spans=found,
                whole=whole,
                last=last,
            )
            # If who collects is gone, what was found is not lost with it.
            self._around.tell(points[-1], answer, lambda: self._around.resolve(message, found, False))
        elif found:
            self._around.resolve(message, found, whole and last and not points)

    def _search(self, message: Routed) -> list[Span]:
        self.statistics.searched += 1
        return list(self._around.search(message))
