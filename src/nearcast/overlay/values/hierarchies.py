"""Paths: a list of places, then everything below their common ancestor (4.4.2)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nearcast.model.values import OneOf, Path, Subtree, Value, same
from nearcast.overlay.values.kinds import AttributeKind, Extent, Limits, listed

MOST_PAIRS: Final = 65_536
"""Pairs of paths whose similarity is remembered: values are few, and meet again and again."""


def merged(a: Value, b: Value, limits: Limits) -> Value:
    if same(a, b):
        return a
    return listed(a, b, limits) or Subtree(Path(_ancestor(*nodes(a), *nodes(b))))


@lru_cache(MOST_PAIRS)
def similarity(a: Value, b: Value, widths: tuple[float, ...]) -> float:
    """Eq. 4.5 for two places; for sets, which it leaves open, the mean of what each place finds best on the other side."""
    some, others = nodes(a), nodes(b)
    deepest = max(len(node.segments) for node in (*some, *others))
    height = max((float(deepest), *widths))
    if height == 0:
        return 1.0  # both are the root
    best = [max(_alike(node, other, height) for other in others) for node in some]
    best += [max(_alike(node, other, height) for other in some) for node in others]
    return sum(best) / len(best)


def _alike(a: Path, b: Path, height: float) -> float:
    apart = len(a.segments) + len(b.segments) - 2 * len(_ancestor(a, b))
    return 1 - apart / (2 * height)


def _ancestor(*paths: Path) -> tuple[str, ...]:
    first, *others = (path.segments for path in paths)
    shared = len(first)
    for segments in others:
        alike = (a == b for a, b in zip(first[:shared], segments, strict=False))
        shared = next((depth for depth, equal in enumerate(alike) if not equal), min(shared, len(segments)))
    return first[:shared]


def nodes(value: Value) -> tuple[Path, ...]:
    """The places that it names; of a subtree, its root."""
    if isinstance(value, OneOf):
        return tuple(sorted(value.values, key=lambda path: path.segments))
    if isinstance(value, Subtree):
        return (value.root,)
    assert isinstance(value, Path)
    return (value,)


def extents(value: Value) -> tuple[Extent]:
    """From the root to the deepest: the height of the tree, as far as it is seen."""
    return ((0.0, float(max(len(node.segments) for node in nodes(value)))),)


HIERARCHIES: Final = AttributeKind("path", merged, extents, similarity)
