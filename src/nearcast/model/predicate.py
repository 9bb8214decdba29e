"""Predicates: what a filter says, as data.

The nodes are frozen and hashable, so equal filters of a million subscriptions are one filter.  ``evaluation``
says what they mean, ``cql2`` reads them, ``normal_form`` brings them into shape.

``And``, ``Or`` and ``Not`` build formulas; everything else is an *atom*; an atom or ``Not(atom)`` is a
*literal*.  BETWEEN is read as two comparisons and S_DWITHIN as ``s_within`` a circle, so that there are fewer
kinds.  IN stays an atom of its own: as a disjunction it would split into conjuncts, and a context that goes
from one listed value to the next would seem to end (temporal predicates speak of one conjunct).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from nearcast.model.area import Area
from nearcast.model.geometry import Point
from nearcast.model.values import Path

SPATIAL_OPERATORS: Final = ("s_within", "s_intersects", "s_contains", "s_disjoint", "s_equals", "s_touches")
TAG_OPERATORS: Final = ("a_contains", "a_containedby", "a_equals", "a_overlaps")
ARITHMETIC_OPERATORS: Final = ("+", "-", "*", "/", "%", "div", "^")


@dataclass(frozen=True, slots=True)
class Property:
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant.  ``Literal(True)`` differs from ``Literal(1)``, although Python's ``==`` says otherwise."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return isinstance(self.value, bool) == isinstance(other.value, bool) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash((isinstance(self.value, bool), self.value))


@dataclass(frozen=True, slots=True)
class Arithmetic:
    op: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Function:
    """``casei`` or ``accenti``: the text without regard to case or accents."""

    name: str
    argument: Operand


Operand = Property | Literal | Arithmetic | Function


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: Predicate


@dataclass(frozen=True, slots=True)
class Constant:
    """True, false or unknown."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where a property meets a constant, the property is on the left."""

    op: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class In:
    operand: Operand
    values: frozenset[Literal]


@dataclass(frozen=True, slots=True)
class Like:
    r"""``%`` stands for any text, ``_`` for one character, ``\`` takes their meaning away."""

    operand: Operand
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Operand


@dataclass(frozen=True, slots=True)
class Under:
    """The property is the path or one of its descendants."""

    property: str
    path: Path


@dataclass(frozen=True, slots=True)
class Spatial:
    op: str
    property: str
    geometry: Point | Area


@dataclass(frozen=True, slots=True)
class Temporal:
    """One of CQL2's ``t_*`` between an instant and the interval from start to end; ``None`` is open."""

    op: str
    property: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class TagTest:
    op: str
    property: str
    tags: frozenset[str]


@dataclass(frozen=True, slots=True)
class DistanceDecreases:
    """STEAM: the producer (or the point in ``property``) comes nearer; the environment knows."""

    property: str | None = None


@dataclass(frozen=True, slots=True)
class Custom:
    """An operator that a plug-in type brings."""

    op: str
    property: str
    constant: Any


Atom = Constant | Comparison | In | Like | IsNull | Under | Spatial | Temporal | TagTest | DistanceDecreases | Custom
Predicate = And | Or | Not | Atom


def atoms_of(predicate: Predicate) -> Iterator[Atom]:
    """All atoms, from left to right."""
    if isinstance(predicate, (And, Or)):
        for term in predicate.terms:
            yield from atoms_of(term)
    elif isinstance(predicate, Not):
        yield from atoms_of(predicate.term)
    else:
        yield predicate


def literal_parts(literal: Predicate) -> tuple[Atom, bool]:
    """The atom of a literal, and whether it is negated."""
    atom = literal.term if isinstance(literal, Not) else literal
    assert not isinstance(atom, (And, Or, Not)), "a literal is an atom or the negation of one"
    return atom, isinstance(literal, Not)


def properties_of(predicate: Predicate) -> frozenset[str]:
    """Names of the properties that the result may depend on."""
    return frozenset(name for atom in atoms_of(predicate) for name in atom_properties(atom))


def atom_properties(atom: Atom) -> tuple[str, ...]:
    """Names of the properties of one atom, each once, in their order."""
    match atom:
        case Constant():
            return ()
        case Comparison():
            return tuple(dict.fromkeys((*_operand_properties(atom.left), *_operand_properties(atom.right))))
        case In() | Like() | IsNull():
            return tuple(dict.fromkeys(_operand_properties(atom.operand)))
        case DistanceDecreases():
            return () if atom.property is None else (atom.property,)
        case _:
            return (atom.property,)


def _operand_properties(operand: Operand) -> tuple[str, ...]:
    match operand:
        case Property():
            return (operand.name,)
        case Arithmetic():
            return (*_operand_properties(operand.left), *_operand_properties(operand.right))
        case Function():
            return _operand_properties(operand.argument)
        case Literal():
            return ()
