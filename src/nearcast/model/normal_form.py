"""Negation normal form and disjunctive normal form.

Both keep the meaning in three-valued logic and for coarse values: negations are pushed down to the atoms by
De Morgan's laws, and AND is distributed over OR.  Nothing is absorbed and no contradiction is dropped: a
coarse value may satisfy a literal and its negation, and temporal predicates are judged on each conjunct.
"""

from __future__ import annotations

from nearcast.errors import FormulaTooLarge
from nearcast.model.predicate import And, Constant, Not, Or, Predicate

Conjunct = tuple[Predicate, ...]
"""Literals that must hold together; the empty conjunct always holds."""

CONJUNCTS: int = 256
"""Default bound on the size of a disjunctive normal form."""

LITERALS: int = 10
"""So many times that bound are its literals bounded: thousands of conditions in one conjunct are as much work as many conjuncts."""


def negation_normal_form(predicate: Predicate) -> Predicate:
    """The same with ``Not`` only in front of atoms, and no AND directly in an AND, nor OR in an OR."""
    return _pushed(predicate, negated=False)


def _pushed(predicate: Predicate, *, negated: bool) -> Predicate:
    if isinstance(predicate, Not):
        return _pushed(predicate.term, negated=not negated)
    if isinstance(predicate, (And, Or)):
        kind = And if isinstance(predicate, And) != negated else Or
        terms: list[Predicate] = []
        for term in predicate.terms:
            pushed = _pushed(term, negated=negated)
            terms.extend(pushed.terms if isinstance(pushed, kind) else (pushed,))
        return terms[0] if len(terms) == 1 else kind(tuple(terms))
    if isinstance(predicate, Constant):
        return Constant(None if predicate.value is None else predicate.value != negated)
    return Not(predicate) if negated else predicate


def disjunctive_normal_form(predicate: Predicate, limit: int = CONJUNCTS) -> tuple[Conjunct, ...]:
    """Conjuncts of which one must hold; ``()`` never holds, ``((),)`` always.

    It is true where the predicate is true; where that is false or unknown, it is not true.
    """
    return tuple(_disjuncts(negation_normal_form(predicate), limit).values())


# Conjuncts by the set of their literals: the key finds duplicates, the value keeps the order of writing.
_Disjuncts = dict[frozenset[Predicate], Conjunct]


def _disjuncts(predicate: Predicate, limit: int) -> _Disjuncts:
    if isinstance(predicate, Or):
        found: _Disjuncts = {}
        literals = 0
        for term in predicate.terms:
            for key, conjunct in _disjuncts(term, limit).items():
                if key not in found:
                    found[key] = conjunct
                    literals += len(conjunct)
                    _check(found, literals, limit)
        return found
    if isinstance(predicate, And):
        return _distributed(predicate, limit)
    if isinstance(predicate, Constant):
        return {frozenset(): ()} if predicate.value else {}
    return {frozenset((predicate,)): (predicate,)}


def _distributed(predicate: And, limit: int) -> _Disjuncts:
    """Conjunction by conjunction, so the bound is noticed as soon as an intermediate result exceeds it."""
    factors = [_disjuncts(term, limit) for term in predicate.terms]
    if not all(factors):
        return {}  # a term that is never true; the others need no work
    found: _Disjuncts = {frozenset(): ()}
    for factor in factors:
        combined: _Disjuncts = {}
        literals = 0
        for left_key, left in found.items():
            for right_key, right in factor.items():
                key = left_key | right_key
                if key not in combined:
                    combined[key] = left + tuple(literal for literal in right if literal not in left_key)
                    literals += len(combined[key])
                    _check(combined, literals, limit)
        found = combined
    return found


def _check(found: _Disjuncts, literals: int, limit: int) -> None:
    if len(found) > limit:
        raise FormulaTooLarge(
            f"the disjunctive normal form of the filter has more than {limit} conjuncts; "
            "split the filter, or write alternatives of one attribute with IN",
        )
    if literals > LITERALS * limit:
        raise FormulaTooLarge(
            f"the disjunctive normal form of the filter has more than {LITERALS * limit} conditions in its conjuncts; split the filter"
        )
