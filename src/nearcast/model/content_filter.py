"""STEAM's content filters: a list of terms, all of which or any of which must hold.

A term is (parameter, operator, value) with equality, magnitude or range operators; ``distance decreases`` asks
whether the producer (or the point in the named parameter) comes nearer to the consumer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from nearcast.errors import InvalidPredicate
from nearcast.model.predicate import And, Comparison, DistanceDecreases, Or, Predicate, Property
from nearcast.model.predicate import Literal as Value
from nearcast.model.values import COMPARISONS, checked_value, is_coarse, is_number

DISTANCE_DECREASES: Final = "distance decreases"
OPERATORS: Final = (*COMPARISONS, "range", DISTANCE_DECREASES)
Mode = Literal["all", "any"]


@dataclass(frozen=True, slots=True)
class Term:
    """``Term("speed", "range", (30, 60))``, ``Term(None, "distance decreases")``."""

    parameter: str | None
    operator: str
    value: object = None

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise InvalidPredicate(
                f"unknown operator {self.operator!r} in a content filter; known: {', '.join(OPERATORS)}"
            )
        if self.operator == DISTANCE_DECREASES:
            if self.value is not None:
                raise InvalidPredicate(f"'{DISTANCE_DECREASES}' takes no value, but it has {self.value!r}")
            return
        if not self.parameter:
            raise InvalidPredicate(f"a term with {self.operator!r} needs the name of a parameter")
        if self.operator == "range":
            self._check_range()
        else:
            object.__setattr__(self, "value", _plain(self.parameter, self.value))

    def _check_range(self) -> None:
        bounds = self.value
        if not isinstance(bounds, tuple) or len(bounds) != 2:
            raise InvalidPredicate(f"a range of {self.parameter!r} is a pair (low, high), not {bounds!r}")
        low, high = (_plain(str(self.parameter), bound) for bound in bounds)
        if not any(all(test(bound) for bound in (low, high)) for test in (is_number, _is_string, _is_instant)):
            raise InvalidPredicate(
                f"a range of {self.parameter!r} lies between two numbers, texts or instants, not {bounds!r}"
            )
        if low > high:  # type: ignore[operator]  # both are of one ordered kind
            raise InvalidPredicate(f"the range of {self.parameter!r} ends at {high!r}, before its start {low!r}")
        object.__setattr__(self, "value", (low, high))

    def to_predicate(self) -> Predicate:
        if self.operator == DISTANCE_DECREASES:
            return DistanceDecreases(self.parameter)
        parameter = Property(str(self.parameter))
        if isinstance(self.value, tuple):
            low, high = self.value
            return And((Comparison(">=", parameter, Value(low)), Comparison("<=", parameter, Value(high))))
        return Comparison(self.operator, parameter, Value(self.value))


@dataclass(frozen=True, slots=True)
class ContentFilter:
    """All terms (or any of them) must hold."""

    terms: tuple[Term, ...]
    mode: Mode = "all"

    def __init__(
        self, terms: Iterable[Term | tuple[str | None, str] | tuple[str | None, str, object]], mode: Mode = "all"
    ) -> None:
        object.__setattr__(self, "terms", tuple(term if isinstance(term, Term) else Term(*term) for term in terms))
        object.__setattr__(self, "mode", mode)
        if not self.terms:
            raise InvalidPredicate("a content filter needs at least one term; leave it out to accept everything")
        if mode not in ("all", "any"):
            raise InvalidPredicate(f"a content filter holds when 'all' or 'any' of its terms hold, not {mode!r}")

    def to_predicate(self) -> Predicate:
        """As a predicate of the model, which decides what it means."""
        predicates = tuple(term.to_predicate() for term in self.terms)
        if len(predicates) == 1:
            return predicates[0]
        return And(predicates) if self.mode == "all" else Or(predicates)


def _plain(parameter: str, value: object) -> object:
    if is_coarse(value):
        raise InvalidPredicate(f"{parameter!r} compares with a plain value, not with {value!r}; use 'range'")
    return checked_value(parameter, value)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def _is_instant(value: object) -> bool:
    return isinstance(value, datetime)
