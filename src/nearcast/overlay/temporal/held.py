"""Messages that wait at a router for somebody to come, and which of them a context may concern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from nearcast.matching.entries import Judge, surely
from nearcast.model.history import Context
from nearcast.model.time import Instant
from nearcast.overlay.routing.wire import Routed, addressing, asked, event_in
from nearcast.overlay.temporal.concerned import Concerned
from nearcast.overlay.temporal.messages import Span, Vid
from nearcast.runtime.ports import Address


class Held:
    """One of them."""

    def __init__(self, message: Routed) -> None:
        self.message = message
        self.conjuncts: Final = addressing(event_in(message))
        self.at: Final[set[Address]] = set()
        """Neighbours that hold it as well: it came from there, or was sent there."""

        self.wanted: Final[dict[Address, None]] = {}
        """Neighbours that are to get it when its payload is back."""

        self.lean = False
        """The payload was given away, for lack of room; one of ``at`` has it."""

        self.untold: Final[list[Span]] = []
        """Until the payload is back."""

        self.open: Final[dict[tuple[Vid, int], Instant]] = {}
        """By identity and conjunct: since when it has held here."""

    @property
    def id(self) -> str:
        return self.message.id

    def meets(self, context: Context, optional: frozenset[str], judge: Judge) -> bool:
        return any(all(judge(literal, context, optional) for literal in conjunct) for conjunct in self.conjuncts)

    def holding(self, context: Context) -> Iterator[int]:
        """The numbers of the conjuncts that hold of a context which is registered here."""
        for number, conjunct in enumerate(self.conjuncts):
            if all(surely(literal, context, frozenset()) for literal in conjunct):
                yield number

    def known(self, span: Span) -> Span:
        """The same span as it was told before: an archive leaves out what began so early that it makes no difference."""
        start = self.open.get((span.vid, span.conjunct), span.start) if span.end is None else span.start
        return span if start == span.start else Span(span.vid, span.conjunct, start, None)

    def slim(self) -> None:
        """Give the payload away."""
        self.lean = True
        self.message = msgspec.structs.replace(self.message, payload=b"", attributes={})

    def restore(self, message: Routed) -> None:
        self.lean = False
        self.message = message


class HeldMessages:
    """Of one router, in the order in which they came."""

    def __init__(self) -> None:
        self._held: Final[dict[str, Held]] = {}
        self._concerned: Final = Concerned()
        self._open: Final[dict[Vid, dict[str, None]]] = {}
        """By identity, messages that have met it, and still do."""

        self._lean = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, message: object) -> bool:
        return message in self._held

    @property
    def full(self) -> int:
        """With their payload."""
        return len(self._held) - self._lean

    def get(self, message: str) -> Held | None:
        return self._held.get(message)

    def all(self) -> list[Held]:
        return list(self._held.values())

    def add(self, held: Held) -> None:
        self._held[held.id] = held
        self._concerned.add(held.id, asked(held.message))

    def remove(self, held: Held) -> None:
        del self._held[held.id]
        self._lean -= held.lean
        self._concerned.remove(held.id)
        for vid in {vid for vid, _ in held.open}:
            self._over(vid, held)

    def slim(self, held: Held) -> None:
        self._lean += not held.lean
        held.slim()

    def restore(self, held: Held, message: Routed) -> None:
        self._lean -= held.lean
        held.restore(message)

    def concerning(self, context: Context) -> Iterator[Held]:
        """All that this context may meet, each once, in a defined order."""
        return (self._held[each] for each in self._concerned.by(context))

    # Who is met here

    def recorded(self, vid: Vid, at: Instant, context: Context | None) -> list[tuple[Held, list[Span]]]:
        """Since then this is the context of that identity; none: it has none any more.  What follows, by message."""
        concerned = {held.id: held for held in self.concerning(context)} if context is not None else {}
        for each in self._open.get(vid, {}):
            concerned.setdefault(each, self._held[each])
        found = []
        for held in concerned.values():
            spans = self._step(held, vid, at, context)
            if spans:
                found.append((held, spans))
        return found

    def began(self, held: Held, spans: Iterable[Span]) -> None:
        """What had begun here before the message came."""
        for span in spans:
            if span.end is None:
                held.open[span.vid, span.conjunct] = span.start
                self._open.setdefault(span.vid, {})[held.id] = None

    def _step(self, held: Held, vid: Vid, at: Instant, context: Context | None) -> list[Span]:
        holding = set() if context is None else set(held.holding(context))
        spans: list[Span] = []
        for number in range(len(held.conjuncts)):
            start = held.open.get((vid, number))
            if start is None and number in holding:
                held.open[vid, number] = at
                spans.append(Span(vid, number, at, None))
            elif start is not None and number not in holding:
                del held.open[vid, number]
                # Of two reports at one instant the second counts: an interval without length takes back the one that had begun.
                spans.append(Span(vid, number, start, max(at, start)))
        if any((vid, number) in held.open for number in range(len(held.conjuncts))):
            self._open.setdefault(vid, {})[held.id] = None
        else:
            self._over(vid, held)
        return spans

    def _over(self, vid: Vid, held: Held) -> None:
        there = self._open.get(vid)
        if there is not None:
            there.pop(held.id, None)
            if not there:
                del self._open[vid]
