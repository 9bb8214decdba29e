"""How a predicate came to its result, term by term: what explanations are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from nearcast.model.evaluation import Approaching, all_of, any_of, literal
from nearcast.model.normal_form import negation_normal_form
from nearcast.model.predicate import And, Constant, DistanceDecreases, Or, Predicate, atom_properties, literal_parts
from nearcast.model.predicate_text import literal_text, to_text


@dataclass(frozen=True, slots=True)
class Trace:
    """One term: its result and, for a literal, the values that made it so."""

    predicate: Predicate
    text: str
    result: bool | None
    detail: str
    children: tuple[Trace, ...] = ()

    def line(self) -> str:
        """Such as ``severity >= 3: is 2``."""
        return f"{self.text}: {self.detail}" if self.detail else self.text

    def failures(self) -> Iterator[Trace]:
        """The literals to blame for a result that is not true, from left to right."""
        if self.result is True:
            return
        if not self.children:
            yield self
        for child in self.children:
            yield from child.failures()


def trace(
    predicate: Predicate,
    properties: Mapping[str, object],
    approaching: Approaching | None = None,
) -> Trace:
    """Evaluate and say why.  The root's result is what ``evaluate`` says.

    The tree is that of the negation normal form: it shows the terms as they were judged.
    """
    return _trace(negation_normal_form(predicate), properties, approaching)


def _trace(predicate: Predicate, properties: Mapping[str, object], approaching: Approaching | None) -> Trace:
    if isinstance(predicate, (And, Or)):
        children = tuple(_trace(term, properties, approaching) for term in predicate.terms)
        results = [child.result for child in children]
        result = all_of(results) if isinstance(predicate, And) else any_of(results)
        return Trace(predicate, to_text(predicate), result, "", children)
    atom, negated = literal_parts(predicate)
    result = literal(atom, properties, approaching, negated=negated)
    if isinstance(atom, DistanceDecreases):
        detail = _approach_detail(atom, result if not negated else None if result is None else not result)
    elif isinstance(atom, Constant):
        detail = ""
    else:
        detail = _values_detail(atom_properties(atom), properties)
    return Trace(predicate, to_text(predicate), result, detail)


def _approach_detail(atom: DistanceDecreases, approaches: bool | None) -> str:
    who = "the producer" if atom.property is None else atom.property
    if approaches is None:
        return f"not known whether {who} comes nearer"
    return f"{who} comes nearer" if approaches else f"{who} does not come nearer"


def _values_detail(names: tuple[str, ...], properties: Mapping[str, object]) -> str:
    missing = [name for name in names if properties.get(name) is None]
    if missing:
        return ", ".join(f"{name} is missing" for name in missing)
    if len(names) == 1:
        return f"is {literal_text(properties[names[0]])}"
    return ", ".join(f"{name} is {literal_text(properties[name])}" for name in names)
