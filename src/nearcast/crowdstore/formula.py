"""Formulas over tags: ``goal & (save | !penalty)`` (THYME 2.3).

A formula is a predicate of the model over an event's ``tags``, a closed world: an absent tag makes its negation true.  So the model
says what it means, and nothing here decides that again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from nearcast.errors import InvalidPredicate
from nearcast.model.normal_form import Conjunct, disjunctive_normal_form
from nearcast.model.predicate import And, Not, Or, Predicate, TagTest

_TOKEN: Final = re.compile(r"\s*(?:([&|!()])|([^\s&|!()\"]+)|\"((?:[^\"\\]|\\.)+)\")")
_ESCAPED: Final = re.compile(r"\\(.)")
LONGEST: Final = 1_024
"""Bytes: subscriptions travel in one frame."""

DEPTH: Final = 64
"""So many brackets and negations in each other at most."""


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
        predicate = _Reader(text).formula()
        return cls(text, predicate, _simplest(map(_conjunction, disjunctive_normal_form(predicate))))

    def accepts(self, tags: Collection[str]) -> bool:
        return any(conjunction.accepts(tags) for conjunction in self.conjunctions)

    def __str__(self) -> str:
        return self.text


def _conjunction(conjunct: Conjunct) -> Conjunction:
    present: set[str] = set()
    absent: set[str] = set()
    for literal in conjunct:
        atom = literal.term if isinstance(literal, Not) else literal
        assert isinstance(atom, TagTest)  # nothing else is read here
        (absent if isinstance(literal, Not) else present).update(atom.tags)
    return Conjunction(frozenset(present), frozenset(absent))


def _simplest(conjunctions: Iterable[Conjunction]) -> tuple[Conjunction, ...]:
    # Tags are exact and timeless, unlike contexts (``normal_form``): so contradictions can go, and whatever another one implies.
    possible = [each for each in dict.fromkeys(conjunctions) if each.present.isdisjoint(each.absent)]
    return tuple(
        each
        for each in possible
        if not any(o != each and o.present <= each.present and o.absent <= each.absent for o in possible)
    )


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
