"""Whether somebody in a coarse context could match: never no where it should be yes (Def. 4.3).

Literal by literal, as ``model.evaluation`` says what coarse values mean.  There, unknown is no match: a client that says
little of itself is not addressed by what it does not say.  Here the value is coarse because a router made it so, and what
only the exact value could tell counts as possible:

- an attribute that some member lacks is tried with and without its value;
- arithmetic on an interval, and more combinations than the model tries, are possible;
- so is a comparison of two areas, of which the model says nothing;
- places are compared with a margin (``places.possible``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

from nearcast.model.area import Area
from nearcast.model.evaluation import MOST_CHOICES, literal
from nearcast.model.history import Context
from nearcast.model.normal_form import Conjunct
from nearcast.model.predicate import (
    And,
    Arithmetic,
    Atom,
    Comparison,
    Custom,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operand,
    Or,
    Predicate,
    Property,
    Spatial,
    atom_properties,
    literal_parts,
)
from nearcast.model.values import OneOf, Value, is_coarse
from nearcast.overlay.values import places
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.registry import kind_of


def addressed(conjuncts: tuple[Conjunct, ...], context: Coarse) -> bool:
    """Whether some member could meet all literals of one conjunct."""
    return any(all(possible(term, context) for term in conjunct) for conjunct in conjuncts)


def possible(predicate: Predicate, context: Coarse) -> bool:
    """Whether the predicate could be true of some member."""
    return _possible(predicate, context, negated=False)


def possibly(literal: Predicate, context: Context, optional: frozenset[str]) -> bool:
    """The same for who judges literals one by one (``matching.entries``)."""
    # What tables ask most: an area, of which nothing but its place tells.
    if isinstance(literal, Spatial) and literal.property not in optional:
        area = context.get(literal.property)
        if isinstance(area, Area):
            return places.possible(literal.op, area, literal.geometry, negated=False)
    return possible(literal, Coarse(context, optional))


def _possible(predicate: Predicate, context: Coarse, *, negated: bool) -> bool:
    if isinstance(predicate, Not):
        return _possible(predicate.term, context, negated=not negated)
    if isinstance(predicate, (And, Or)):
        terms = (_possible(term, context, negated=negated) for term in predicate.terms)
        return all(terms) if isinstance(predicate, And) != negated else any(terms)
    atom, _ = literal_parts(predicate)
    names = atom_properties(atom)
    known = {name: context.attributes[name] for name in names if name in context.attributes}
    return any(_of_values(atom, values, negated=negated) for values in _members(known, context.optional))


def _members(known: dict[str, Value], optional: frozenset[str]) -> Iterator[dict[str, Value]]:
    """The same without any of those that a member may lack."""
    dispensable = [name for name in known if name in optional]
    for count in range(len(dispensable) + 1):
        for missing in combinations(dispensable, count):
            yield {name: value for name, value in known.items() if name not in missing}


def _of_values(atom: Atom, values: Mapping[str, Value], *, negated: bool) -> bool:
    if any(kind_of(value).possible for value in values.values()):
        return _of_plug_in(atom, values, negated=negated)
    coarse = [value for value in values.values() if is_coarse(value)]
    if coarse and _only_exact_values_tell(atom, values, coarse):
        return True
    if isinstance(atom, Spatial) and isinstance(area := values.get(atom.property), Area):
        return places.possible(atom.op, area, atom.geometry, negated=negated)
    return literal(atom, values, None, negated=negated) is True


def _only_exact_values_tell(atom: Atom, values: Mapping[str, Value], coarse: list[Value]) -> bool:
    choices = [len(value.values) for value in coarse if isinstance(value, OneOf)]
    if len(choices) > 1 and math.prod(choices) > MOST_CHOICES:
        return True
    if len(choices) == len(coarse):
        return False  # every combination is tried
    if isinstance(atom, IsNull):
        return False  # the model knows whether there may be no result
    if any(isinstance(operand, Arithmetic) for operand in _operands(atom)):
        return True
    if not isinstance(atom, Comparison) or len(values) < 2:
        return False
    # Two areas; a literal in an unusual place; or a plug-in type that compares with numbers, places or paths.
    of_the_model = all(is_coarse(value) or kind_of(value).family in _OF_THE_MODEL for value in values.values())
    return not of_the_model or sum(isinstance(value, Area) for value in coarse) > 1


_OF_THE_MODEL = frozenset({"number", "instant", "point", "path", "string", "boolean", "tags"})


def _operands(atom: Atom) -> Iterator[Operand]:
    """All that it compares, down to the inner ones."""
    match atom:
        case Comparison():
            outer = [atom.left, atom.right]
        case In() | Like() | IsNull():
            outer = [atom.operand]
        case _:
            outer = []
    while outer:
        operand = outer.pop()
        yield operand
        if isinstance(operand, Function):
            outer.append(operand.argument)


def _of_plug_in(atom: Atom, values: Mapping[str, Value], *, negated: bool) -> bool:
    match atom:
        case Custom():
            tests = [(atom.op, atom.constant)]
        case Comparison(op, Property(), Literal(constant)):
            tests = [(op, constant)]
        case In(Property(), constants):
            tests = [("=", each.value) for each in constants]
        case IsNull(Property()):
            return negated  # it is there
        case _:
            return len(values) > 1 or literal(atom, values, None, negated=negated) is True
    ((_, value),) = values.items()
    judge = kind_of(value).possible
    assert judge is not None
    answers = (judge(op, value, constant, negated) for op, constant in tests)
    return all(answers) if negated else any(answers)
