"""How much alike two contexts are (4.4.3): structure times values.

Two things are left open by Eq. 4.3.  Equal points give 0/0, where Table 4.1 demands 1: equal is 1.  And points have no
length, so that two of them, however near, are alike by 1/3 at most, and a point and an interval by 1/2; with the
recommended threshold of 0.6 hardly anything with exact numbers would be merged.  Both readings can be chosen.
"""

from __future__ import annotations

from enum import Enum

from nearcast.model.values import Value
from nearcast.overlay.values.coarse import Coarse
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.kinds import AttributeKind, Extent
from nearcast.overlay.values.registry import kind_of


class Reading(Enum):
    """Of Eq. 4.3, where one of the two is a point."""

    LITERAL = "literal"
    """Position, span and content count a third each, as it is written."""
    POSITION_ONLY_FOR_POINTS = "position_only_for_points"
    """A point has neither span nor content that could be compared: only its position counts."""


def of_intervals(a: Extent, b: Extent, width: float, reading: Reading) -> float:
    """Eq. 4.3: the mean of position, span and content."""
    if a == b:
        return 1.0
    together = max(a[1], b[1]) - min(a[0], b[0])
    if together == 0.0:
        return 1.0  # nearer to each other than the smallest number
    # What lies beyond the domain that was given makes it wider.
    position = 1 - abs(a[0] - b[0]) / max(width, together)
    long, other_long = a[1] - a[0], b[1] - b[0]
    if reading is Reading.POSITION_ONLY_FOR_POINTS and (long == 0.0 or other_long == 0.0):
        return position
    span = (long + other_long) / (2 * together)
    content = max(0.0, min(a[1], b[1]) - max(a[0], b[0])) / together
    return (position + span + content) / 3


def of_values(a: Value, b: Value, kind: AttributeKind, widths: tuple[float, ...], reading: Reading) -> float:
    """Of two values of one kind, given the widths of their domain."""
    if kind.similarity is not None:
        return kind.similarity(a, b, widths)
    some, others = kind.extents(a), kind.extents(b)
    if not some:
        return 1.0 if a == b else 0.0
    axes = widths or (0.0,) * len(some)
    alike = [of_intervals(x, y, width, reading) for x, y, width in zip(some, others, axes, strict=True)]
    return sum(alike) / len(alike)


def similarity(a: Coarse, b: Coarse, domains: Domains, reading: Reading) -> float:
    """Eq. 4.7: the sum over shared attributes, divided by the number of all; 0 for what cannot be merged.

    Without any attributes on both sides there is nothing in which they differ: 1.
    """
    shared = sorted(a.attributes.keys() & b.attributes.keys())
    total = 0.0
    for name in shared:
        value, other = a.attributes[name], b.attributes[name]
        kind = kind_of(value)
        if kind_of(other).family != kind.family:
            return 0.0
        total += of_values(value, other, kind, domains.widths(name, kind), reading)
    union = len(a.attributes) + len(b.attributes) - len(shared)
    return total / union if union else 1.0
