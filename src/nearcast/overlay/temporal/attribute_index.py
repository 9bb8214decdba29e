"""An index for messages to the past that name no place, and would have to be asked everywhere (6.3.2).

For attributes that are *indexed*, each node tells every piece of a context also to the router that keeps its key: the attribute, and
one of a few buckets by value.  It tells it when the piece begins, and again when it has ended, so that nothing is missed meanwhile.  A
question goes to the keepers of the buckets that may answer it, and to nobody else.

Keys are spread over the routers of the tree by consistent hashing.  The document proposes a distributed hash table, where finding a keeper
takes O(log N) messages, because nobody knows all others.  Here everybody does, from link states: one message is enough.  When routers
come or go, nodes tell again the pieces of those keys that have another keeper.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from nearcast.matching.context_columns import Question as AskedLiteral
from nearcast.matching.context_columns import questions
from nearcast.model.event import Event
from nearcast.model.predicate import Comparison, In, Literal, Property
from nearcast.model.time import Instant
from nearcast.model.values import Path, Value, is_number
from nearcast.overlay.routing.messages import attributes_tree, context_of
from nearcast.overlay.routing.tree import TreeView
from nearcast.overlay.routing.wire import Routed, event_in
from nearcast.overlay.temporal.archive import Archive, Piece
from nearcast.overlay.temporal.messages import Confirmed, IndexAnswer, Indexed, IndexQuestion, Key, Span, Vid
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.runtime.ports import Address, Cancellable, Timers

OTHER: Final = "other"
"""The bucket of values that are not simply equal to one another: areas, sets, ranges, values of plug-ins."""

_AT_ONCE: Final = 100
"""Pieces in one message, at most."""

_MARKS: Final = 8
"""Of each router on the ring: the more, the more evenly keys are spread."""


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def bucket_of(value: Value, buckets: int) -> str:
    """The same for values that a filter calls equal."""
    if is_number(value):
        text = f"number {float(value) + 0.0!r}" if abs(value) < 1e300 else "number"  # type: ignore[arg-type]  # it is a number
    elif isinstance(value, (str, Path)):
        text = f"text {value}"
    else:
        return OTHER
    return str(_hash(text) % buckets)


_Told = tuple[Address, Vid, Instant]
"""A piece: the node that told it, its identity and its start."""


class Ring:
    """Who keeps a key."""

    def __init__(self, routers: Iterable[Address]) -> None:
        marks = sorted((_hash(f"{router} {number}"), router) for router in routers for number in range(_MARKS))
        self._hashes: Final = [mark for mark, _ in marks]
        self._routers: Final = [router for _, router in marks]

    def keeper(self, key: Key) -> Address | None:
        """None: there is nobody."""
        if not self._routers:
            return None
        return self._routers[bisect_right(self._hashes, _hash("\0".join(key))) % len(self._routers)]


class Kept:
    """Pieces of one key."""

    def __init__(self) -> None:
        self._archive: Final = Archive()
        self._rows: Final[dict[_Told, tuple[int, int | None, Instant]]] = {}
        """By piece: the newest version of it, its row if there is one, and its end, or start as long as it has none."""

    def __len__(self) -> int:
        return len(self._archive)

    def put(self, node: Address, version: int, piece: Piece) -> None:
        """What a node says of a piece, in whatever order that comes."""
        told = node, piece.vid, piece.start
        before = self._rows.get(told)
        if before is not None:
            if before[0] > version:
                return
            if before[1] is not None:
                self._archive.remove(before[1])
        void = piece.end is not None and piece.end <= piece.start
        row = None if void else self._archive.put(piece)
        self._rows[told] = version, row, piece.start if piece.end is None else piece.end

    def spans(self, event: Event, conjunct: int) -> list[Span]:
        return self._archive.spans(event, frozenset({conjunct}))

    def forget(self, before: Instant) -> None:
        gone = {piece[:2] for piece in self._archive.pieces() if piece.end is not None and piece.end < before}
        self._archive.forget(before)
        for told, (_, row, ended) in list(self._rows.items()):
            if told[1:] in gone or (row is None and ended < before):
                del self._rows[told]


@dataclass(slots=True)
class _Waiting:
    message: Routed
    missing: set[Address]
    spans: list[Span]
    timer: Cancellable
    whole: bool = True


class AttributeIndex:
    """One router's part: what it keeps, and what it tells and asks others.  ``pieces``: those of its own archive."""

    def __init__(
        self,
        me: Address,
        now: Instant,
        settings: TemporalSettings,
        timers: Timers,
        tell: Callable[[Address, Confirmed, Callable[[], None] | None], None],
        resolve: Callable[[Routed, Iterable[Span], bool], None],
        pieces: Callable[[], Iterator[Piece]],
    ) -> None:
        self._me: Final = me
        self._version = now  # above those of an earlier life
        self._settings: Final = settings
        self._timers: Final = timers
        self._tell: Final = tell
        self._resolve: Final = resolve
        self._pieces: Final = pieces
        self._ring = Ring(())
        self._dropping: Cancellable | None = None
        self._kept: Final[dict[Key, Kept]] = {}
        self._waiting: Final[dict[str, _Waiting]] = {}
        self.told = 0
        """Messages about pieces."""

        self.asked = 0

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    # Upkeep

    def changed(self, pieces: Iterable[Piece]) -> None:
        """Of the own archive."""
        self._say_all(pieces, lambda _key: True)

    def hear(self, node: Address, message: Indexed) -> None:
        kept = self._kept.setdefault(message.key, Kept())
        for vid, start, end, attributes in message.pieces:
            kept.put(node, message.version, Piece(vid, start, end, context_of(attributes)))

    def forget(self, before: Instant) -> None:
        for kept in self._kept.values():
            kept.forget(before)

    def tree_changed(self, tree: TreeView) -> None:
        before, self._ring = self._ring, Ring(tree.routers)
        # Not at once: nodes that never see this tree, because the next one comes soon, would not tell them again.
        if self._dropping is None and any(self._ring.keeper(key) != self._me for key in self._kept):
            self._dropping = self._timers.after(self._settings.patience, self._drop)
        self._say_all(self._pieces(), lambda key: before.keeper(key) != self._ring.keeper(key))

    def _drop(self) -> None:
        """What others keep by now."""
        self._dropping = None
        for key in [key for key in self._kept if self._ring.keeper(key) != self._me]:
            del self._kept[key]

    def _say_all(self, pieces: Iterable[Piece], wanted: Callable[[Key], bool]) -> None:
        by_key: dict[Key, list[Piece]] = {}
        for piece in pieces:
            for key in self._keys(piece):
                by_key.setdefault(key, []).append(piece)
        for key, some in by_key.items():
            if wanted(key):
                self._say(key, some)

    def _keys(self, piece: Piece) -> Iterator[Key]:
        for name in self._settings.indexed:
            if name in piece.context:
                yield name, bucket_of(piece.context[name], self._settings.buckets)

    def _say(self, key: Key, pieces: list[Piece]) -> None:
        keeper = self._ring.keeper(key)
        if keeper is None:
            return
        for first in range(0, len(pieces), _AT_ONCE):
            some = tuple(
                (each.vid, each.start, each.end, attributes_tree(each.context))
                for each in pieces[first : first + _AT_ONCE]
            )
            self.told += keeper != self._me
            self._version += 1
            self._tell(keeper, Indexed(key=key, version=self._version, pieces=some), None)

    # Questions

    def keys_for(self, event: Event) -> list[tuple[int, Key]] | None:
        """By conjunct, all keys under which somebody may be found; none: the index cannot tell."""
        found: list[tuple[int, Key]] = []
        for number, conjunct in enumerate(questions(event.conjuncts)):
            keys = min(
                (self._keys_of(literal) for literal in conjunct), key=lambda keys: len(keys) or 1 << 30, default=[]
            )
            if not keys:
                return None
            found += [(number, key) for key in keys]
        return found

    def _keys_of(self, literal: AskedLiteral) -> list[Key]:
        """Of one attribute, which whoever meets the literal must have; none: it is of no use."""
        if len(literal.names) != 1 or literal.names[0] not in self._settings.indexed or literal.if_missing:
            return []
        values = equal_to(literal)
        buckets = map(str, range(self._settings.buckets))
        wanted = buckets if values is None else (bucket_of(value, self._settings.buckets) for value in values)
        return [(literal.names[0], bucket) for bucket in sorted({*wanted, OTHER})]

    def ask(self, message: Routed, keys: Iterable[tuple[int, Key]], patience: float) -> None:
        """Who has asked for a message waits for that answer, and need not ask again."""
        if message.id in self._waiting:
            return
        by_keeper: dict[Address, list[tuple[int, Key]]] = {}
        for each in keys:
            by_keeper.setdefault(self._ring.keeper(each[1]) or self._me, []).append(each)
        timer = self._timers.after(patience, lambda: self._end(message.id))
        self._waiting[message.id] = _Waiting(message, set(by_keeper), [], timer)
        for keeper, wanted in by_keeper.items():
            self.asked += 1
            self._tell(
                keeper,
                IndexQuestion(message=message, keys=tuple(wanted)),
                lambda keeper=keeper: self._came(message.id, keeper, whole=False),  # type: ignore[misc]
            )

    def answer(self, asker: Address, question: IndexQuestion) -> None:
        event = event_in(question.message)
        spans = [
            span
            for conjunct, key in question.keys
            if key in self._kept
            for span in self._kept[key].spans(event, conjunct)
        ]
        self._tell(asker, IndexAnswer(message=question.message.id, spans=tuple(spans)), None)

    def answered(self, keeper: Address, answer: IndexAnswer) -> None:
        waiting = self._waiting.get(answer.message)
        if waiting is not None:
            waiting.spans += answer.spans
            self._came(answer.message, keeper)

    def _came(self, message: str, keeper: Address, *, whole: bool = True) -> None:
        waiting = self._waiting.get(message)
        if waiting is not None:
            waiting.missing.discard(keeper)
            waiting.whole &= whole
            if not waiting.missing:
                self._end(message)

    def _end(self, message: str) -> None:
        waiting = self._waiting.pop(message)
        waiting.timer.cancel()
        if waiting.spans:
            self._resolve(waiting.message, waiting.spans, waiting.whole and not waiting.missing)


def equal_to(literal: AskedLiteral) -> list[Value] | None:
    """The values of which it asks for one; none: it asks otherwise."""
    if literal.negated:
        return None
    match literal.atom:
        case Comparison("=", Property(), Literal(value)) | Comparison("=", Literal(value), Property()):
            return [value]
        case In(Property(), values):
            return [each.value for each in values if isinstance(each, Literal)]
    return None
