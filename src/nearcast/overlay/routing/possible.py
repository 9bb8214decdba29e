"""Whether somebody could match of whom a router knows less than there is: never no where it should be yes (Def. 4.1, 4.3)."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Final

from nearcast.model.area import Area, Circle, Outline, Rectangle
from nearcast.model.evaluation import evaluate
from nearcast.model.history import Context
from nearcast.model.normal_form import Conjunct
from nearcast.model.predicate import Not, Predicate, Spatial, atom_properties, literal_parts, properties_of
from nearcast.model.values import is_coarse

_WIDER: Final = 1.01
"""Rectangles and outlines lie in another plane for points than for areas; a circle around them lies in neither."""


def attributes_of(conjunct: Conjunct) -> frozenset[str]:
    """Names of the attributes that these literals speak of: Attr(M)."""
    return frozenset(chain.from_iterable(map(properties_of, conjunct)))


def possibly(literal: Predicate, context: Context, optional: frozenset[str]) -> bool:
    """Whether the literal could be true of somebody whom the context stands for.

    ``optional`` are attributes that some of them lack.  What only the exact value could tell is possible.
    """
    atom, _ = literal_parts(literal)
    known = {name: context[name] for name in atom_properties(atom) if name in context}
    dispensable = sorted(optional & known.keys())
    absences = chain.from_iterable(combinations(dispensable, count) for count in range(len(dispensable) + 1))
    return any(
        _of_values(literal, {name: value for name, value in known.items() if name not in absent}) for absent in absences
    )


def _of_values(literal: Predicate, values: Context) -> bool:
    if not any(map(is_coarse, values.values())):
        return evaluate(literal, values) is True
    return evaluate(_widened(literal, values), values) is not False


def _widened(literal: Predicate, values: Context) -> Predicate:
    atom, negated = literal_parts(literal)
    if not isinstance(atom, Spatial) or not isinstance(values.get(atom.property), Area):
        return literal
    geometry = atom.geometry
    if not isinstance(geometry, (Rectangle, Outline)):
        return literal
    around = Circle(geometry.bounding_radius() * _WIDER + 1.0, geometry.fixed_center())
    wanted = "s_within" if (atom.op == "s_disjoint") == negated else "s_disjoint"
    if wanted == "s_within":
        return Spatial("s_within", atom.property, around)
    return Not(Spatial("s_equals", atom.property, around))  # outside of it is wherever one likes
