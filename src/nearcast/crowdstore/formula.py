"""Formulas over tags: ``goal & (save | !penalty)`` (THYME 2.3).

A formula is a predicate of the model over an event's ``tags``, a closed world: an absent tag makes its negation true.  So the model
says what it means, and nothing here decides that again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from nearcast.errors import FormulaTooLarge, InvalidPredicate
from nearcast.model.normal_form import negation_normal_form
from nearcast.model.predicate import And, Not, Or, Predicate, TagTest

_TOKEN: Final = re.compile(r"\s*(?:([&|!()])|([^\s&|!()\"]+)|\"((?:[^\"\\]|\\.)+)\")")
_ESCAPED: Final = re.compile(r"\\(.)")
LONGEST: Final = 1_024
"""Bytes: subscriptions travel in one frame."""

CONJUNCTIONS: Final = 256
"""Of one formula at most ..."""

TAGS: Final = 2_048
"""... and so many tags in all of them together: every host expands and keeps the formulas of strangers."""

DEPTH: Final = 64
"""So many brackets and negations in each other at most."""


def quoted(name: str) -> str:
    """That tag in a formula, whatever is in its name."""
    return '"{}"'.format(name.replace("\\", "\\\\").replace('"', '\\"'))


def is_text(text: str) -> bool:
    """Whether it can be said to others: Python's texts, and JSON's, may have halves of characters, which UTF-8 has not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def tag(name: str) -> Predicate:
    """It has that tag."""
    return TagTest("a_contains", "tags", frozenset([name]))


class Conjunction(NamedTuple):
    """Tags that must be there and tags that must not be."""

    present: frozenset[str]
    absent: frozenset[str]

    def accepts(self, tags: Collection[str]) -> bool:
        return self.present.issubset(tags) and self.absent.isdisjoint(tags)


@dataclass(frozen=True, slots=True)
class Formula:
    """A propositional formula over tags, in disjunctive normal form."""

    text: str
    predicate: Predicate
    conjunctions: tuple[Conjunction, ...]
    """Those that can hold, none of them implied by another; ``()`` never holds."""

    @classmethod
    def parse(cls, text: str) -> Formula:
        """``&``, ``|``, ``!`` and brackets; a tag with any of these in it, or with spaces, stands in double quotes."""
        if len(text) > LONGEST or len(text.encode(errors="replace")) > LONGEST:
            raise InvalidPredicate(f"a formula of tags has at most {LONGEST} bytes; make several subscriptions of it")
        if not is_text(text):
            raise InvalidPredicate(
                f"{text!r:.200} is no formula of tags: it has half a character, which nobody could be told"
            )
        predicate = _Reader(text).formula()
        return cls(text, predicate, _conjunctions(predicate))

    def accepts(self, tags: Collection[str]) -> bool:
        return any(conjunction.accepts(tags) for conjunction in self.conjunctions)

    def __str__(self) -> str:
        return self.text


_Bits = dict[tuple[int, int], None]
"""Conjunctions as two sets of numbers: of the tags that must be there, and of those that must not be.  In the order of writing."""


def _conjunctions(predicate: Predicate) -> tuple[Conjunction, ...]:
    numbers: dict[str, int] = {}
    possible = list(_expanded(negation_normal_form(predicate), numbers))
    simplest = [
        (present, absent)
        for present, absent in possible
        if not any((p, a) != (present, absent) and p | present == present and a | absent == absent for p, a in possible)
    ]
    names = list(numbers)
    return tuple(Conjunction(_names(names, present), _names(names, absent)) for present, absent in simplest)


def _names(names: list[str], bits: int) -> frozenset[str]:
    return frozenset(name for number, name in enumerate(names) if bits >> number & 1)


def _expanded(predicate: Predicate, numbers: dict[str, int]) -> _Bits:
    """Alternatives of which one must hold; the bounds are noticed as soon as anything on the way to them exceeds them.

    Tags are exact and timeless, unlike contexts (``model.normal_form``): so contradictions can go at once.
    """
    if isinstance(predicate, Or):
        return _bounded(each for term in predicate.terms for each in _expanded(term, numbers))
    if isinstance(predicate, And):
        found: _Bits = {(0, 0): None}
        # What has no alternatives first: else it would be added to each of those of the others.
        for factor in sorted((_expanded(term, numbers) for term in predicate.terms), key=lambda it: len(it) > 1):
            found = _bounded((p | q, a | b) for p, a in found for q, b in factor if not ((p | q) & (a | b)))
        return found
    atom = predicate.term if isinstance(predicate, Not) else predicate
    assert isinstance(atom, TagTest)  # nothing else is read here
    (name,) = atom.tags
    bit = 1 << numbers.setdefault(name, len(numbers))
    return {((0, bit) if isinstance(predicate, Not) else (bit, 0)): None}


def _bounded(conjunctions: Iterable[tuple[int, int]]) -> _Bits:
    found: _Bits = {}
    tags = 0
    for present, absent in conjunctions:
        if (present, absent) in found:
            continue
        found[present, absent] = None
        tags += present.bit_count() + absent.bit_count()
        if len(found) > CONJUNCTIONS or tags > TAGS:
            raise FormulaTooLarge(
                f"written as alternatives, the formula has more than {CONJUNCTIONS} of them, or more than {TAGS} tags in them; "
                "make several subscriptions of it"
            )
    return found


class _Reader:
    """Recursive descent: ``!`` binds more than ``&``, and that more than ``|``."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._at = 0
        self._depth = 0
        self._next: tuple[str, bool] | None = None
        """The token that comes next, and whether it is a tag."""

        self._advance()

    def formula(self) -> Predicate:
        found = self._or()
        if self._next is not None:
            raise self._wrong("expected & or |")
        return found

    def _or(self) -> Predicate:
        terms = [self._and()]
        while self._took("|"):
            terms.append(self._and())
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def _and(self) -> Predicate:
        terms = [self._term()]
        while self._took("&"):
            terms.append(self._term())
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def _term(self) -> Predicate:
        self._depth += 1
        if self._depth > DEPTH:
            raise InvalidPredicate(f"a formula of tags has at most {DEPTH} brackets and negations in each other")
        try:
            if self._took("!"):
                return Not(self._term())
            if self._took("("):
                inner = self._or()
                if not self._took(")"):
                    raise self._wrong("expected )")
                return inner
            if self._next is None or not self._next[1]:
                raise self._wrong("expected a tag, ! or (")
            name = self._next[0]
            self._advance()
            return tag(name)
        finally:
            self._depth -= 1

    def _took(self, sign: str) -> bool:
        if self._next == (sign, False):
            self._advance()
            return True
        return False

    def _advance(self) -> None:
        self._start = self._at
        if not self._text[self._at :].strip():
            self._next = None
            return
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._wrong("expected a tag; quotes must be closed and not empty")
        self._at = match.end()
        sign, bare, quoted = match.groups()
        self._next = (sign, False) if sign else (bare or _ESCAPED.sub(r"\1", quoted), True)

    def _wrong(self, expected: str) -> InvalidPredicate:
        return InvalidPredicate(
            f"{self._text!r:.200} is no formula of tags such as 'goal & (save | !penalty)': {expected} at {self._start + 1}"
        )
