"""Names of attributes as bits, to rule out candidates before values are compared (4.4.5, Eq. 4.8).

The document hashes names to bits and takes the result for an upper bound, which it is not: let x and y share a bit, then
{x, y} and {x, y, v} seem to have 1/2 in common, and have 2/3.  Here every name has a bit of its own, so the result is exact.
"""

from __future__ import annotations

from collections.abc import Iterable


class Signatures:
    """Sets of names as integers, one bit for each name that ever occurred."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._bits)

    def of(self, names: Iterable[str]) -> int:
        signature = 0
        for name in names:
            signature |= 1 << self._bits.setdefault(name, len(self._bits))
        return signature
