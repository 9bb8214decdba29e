"""How much of a backlog one micro-batch of a stream takes."""

from __future__ import annotations

from typing import Final

MOST_ROWS: Final = 500_000
"""Of one micro-batch, unless somebody says otherwise: some seconds of work, and more than any live stream brings in a second."""

Offsets = dict[str, int]
"""How far a source was read, by the names of its partitions."""


def waiting(start: Offsets, end: Offsets) -> Offsets:
    """Offsets that are there and not read."""
    return {name: max(0, last - start.get(name, 0)) for name, last in end.items()}


def limited(start: Offsets, end: Offsets, most: int) -> Offsets:
    """So many offsets at most, of each partition according to what it has; some of every batch, or it would never end."""
    left = waiting(start, end)
    total = sum(left.values())
    if total <= most:
        return {**start, **end}
    shares = {name: amount * most // total for name, amount in left.items()}
    for name in sorted(left, key=lambda each: shares[each] - left[each]):
        spare = most - sum(shares.values())
        shares[name] += min(spare, left[name] - shares[name], 1)
    return {**start, **{name: start.get(name, 0) + share for name, share in shares.items()}}
