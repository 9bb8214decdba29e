"""Coarse contexts: what is said of several contexts at once, and how two become one (Alg. 4.2, PCA)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nearcast.model.history import Context
from nearcast.model.values import Value, same
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.registry import kind_of

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Coarse:
    """What somebody of a group may be: attributes with values that may be coarse.

    The document's PCA forgets that not every member has every attribute.  Filters here can ask for what is missing
    (``IS NULL``), so it is kept which attributes some member lacks.
    """

    attributes: Mapping[str, Value]
    optional: frozenset[str] = _NOTHING

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Coarse):
            return NotImplemented
        mine, others = self.attributes, other.attributes
        return (
            self.optional == other.optional
            and mine.keys() == others.keys()
            and all(same(value, others[name]) for name, value in mine.items())
        )

    def __hash__(self) -> int:
        return hash((frozenset(self.attributes), self.optional))


def coarse(context: Context) -> Coarse:
    """One context as it is."""
    return Coarse(dict(context))


def merged(a: Coarse, b: Coarse, limits: Limits) -> Coarse | None:
    """One that stands for both, or ``None`` if some attribute of theirs cannot be merged."""
    ours, theirs = a.attributes, b.attributes
    attributes = dict(ours)
    for name, value in theirs.items():
        if name not in ours:
            attributes[name] = value
            continue
        mine = ours[name]
        if mine is value:
            continue
        kind = kind_of(mine)
        together = kind.merge(mine, value, limits) if kind.family == kind_of(value).family else None
        if together is None:
            return None
        attributes[name] = together
    optional = a.optional | b.optional
    if ours.keys() != theirs.keys():
        optional |= ours.keys() ^ theirs.keys()
    return Coarse(attributes, optional)


def merged_all(contexts: Iterable[Coarse], limits: Limits) -> Coarse | None:
    """One that stands for all of them; ``None`` if they cannot be merged, or there are none."""
    whole: Coarse | None = None
    for part in contexts:
        whole = part if whole is None else merged(whole, part, limits)
        if whole is None:
            return None
    return whole
