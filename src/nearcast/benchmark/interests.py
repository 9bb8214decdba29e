"""What the clients of the city are interested in: topics and a thousand predicates.

A predicate exists twice: as the CQL2 text that nearcast gets, and as terms that are evaluated over columns here,
to filter what purely spatial peers answer and to check nearcast's own answers by other means.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from nearcast.benchmark.workload import Events

PREDICATES: Final = 1_000

_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Term:
    attribute: str
    comparison: str
    value: int | float | str | bool

    def __str__(self) -> str:
        match self.value:
            case bool():
                literal = "TRUE" if self.value else "FALSE"
            case str():
                literal = f"'{self.value}'"
            case _:
                literal = str(self.value)
        return f"{self.attribute} {self.comparison} {literal}"

    def holds(self, events: Events) -> NDArray[np.bool_]:
        column = events.attributes[self.attribute]
        compare = _OPERATORS[self.comparison]
        if isinstance(column, tuple):
            codes, dictionary = column
            return np.asarray([compare(text, self.value) for text in dictionary], np.bool_)[codes]
        return np.asarray(compare(column, self.value), np.bool_)


@dataclass(frozen=True, slots=True)
class Predicate:
    """One to three terms, all of which (or any of which) must hold."""

    terms: tuple[Term, ...]
    every: bool

    def __str__(self) -> str:
        return (" AND " if self.every else " OR ").join(map(str, self.terms))

    def holds(self, events: Events) -> NDArray[np.bool_]:
        combine = np.logical_and if self.every else np.logical_or
        return np.asarray(combine.reduce([term.holds(events) for term in self.terms]), np.bool_)


@dataclass(frozen=True, slots=True)
class Interest:
    """A subscription without its area, which is the same circle for all."""

    topic: str
    predicate: Predicate | None = None

    def accepts(self, events: Events) -> NDArray[np.bool_]:
        """Which events the topic and the predicate let through."""
        stem = self.topic.removesuffix("/#")
        deeper = stem != self.topic
        topics = [topic == stem or (deeper and topic.startswith(stem + "/")) for topic in events.topics]
        accepted = np.asarray(topics, np.bool_)[events.topic]
        return accepted if self.predicate is None else accepted & self.predicate.holds(events)


def interests(random: np.random.Generator, subjects: Sequence[str], kinds: Sequence[str]) -> tuple[Interest, ...]:
    """Everything; then per subject all of it and one exact topic; then everything under a predicate."""
    predicates: dict[str, Predicate] = {}
    while len(predicates) < PREDICATES:
        predicate = _predicate(random, kinds)
        predicates.setdefault(str(predicate), predicate)
    return (
        Interest("city/#"),
        *(Interest(f"city/{subject}/#") for subject in subjects),
        *(Interest(f"city/{subject}/report") for subject in subjects),
        *(Interest("city/#", predicate) for predicate in predicates.values()),
    )


def _predicate(random: np.random.Generator, kinds: Sequence[str]) -> Predicate:
    makers: tuple[Callable[[], Term], ...] = (
        lambda: Term("severity", str(random.choice((">=", "<=", "="))), int(random.integers(1, 6))),
        lambda: Term("crowd", str(random.choice(("<", ">"))), int(random.integers(10, 990))),
        lambda: Term("price", str(random.choice(("<=", ">="))), round(float(random.uniform(1, 99)), 1)),
        lambda: Term("kind", str(random.choice(("=", "<>"))), str(random.choice(kinds))),
        lambda: Term("verified", "=", bool(random.random() < 0.5)),
    )
    chosen = random.permutation(len(makers))[: int(random.integers(1, 4))]
    return Predicate(tuple(makers[index]() for index in chosen), every=bool(random.random() < 0.8))
