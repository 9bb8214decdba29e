"""Matching without the price of handing over seventy arrays.

To take them apart would cost, for a single event, several times what the matching does, and for a batch still a few per
cent (``nearcast.compiled.Addresses``).  A group is written again only when it has been replaced (its arrays have grown).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nearcast.compiled import Addresses, addresses_for, cube, kernel_making_arrays, line, table, write_addresses
from nearcast.matching.columns import Events, Filters, Output, Predicates, Scratch, Subscribers
from nearcast.matching.grid import Grid
from nearcast.matching.kernels import match_places

GROUPS: Final = (Grid, Filters, Predicates, Subscribers, Events, Output, Scratch)
_FIRST: Final = tuple(sum(len(group._fields) for group in GROUPS[:i]) for i in range(len(GROUPS) + 1))
GRID, FILTERS, PREDICATES, SUBSCRIBERS, EVENTS, OUTPUT, SCRATCH, END = _FIRST
"""Where the arrays of a group begin."""


class PackedArguments:
    """Addresses and shapes of all arrays that ``match_places`` takes."""

    def __init__(self) -> None:
        self.addresses = addresses_for(END)
        self._groups: list[Sequence[Any] | None] = [None] * len(GROUPS)

    def update(self, *groups: Sequence[Any]) -> Addresses:
        """Take over the groups that are not the same as the last time."""
        for number, group in enumerate(groups):
            if self._groups[number] is not group:
                write_addresses(self.addresses, _FIRST[number], group)
                self._groups[number] = group  # also keeps the arrays alive
        return self.addresses


@kernel_making_arrays
def match_packed(a: Any, which: Any, stamp: int) -> int:
    """``match_places`` for the groups at the addresses ``a``."""
    i32, i64, f64, f32, u8, u64 = np.int32, np.int64, np.float64, np.float32, np.uint8, np.uint64
    g, f, p, s, e, o, t = GRID, FILTERS, PREDICATES, SUBSCRIBERS, EVENTS, OUTPUT, SCRATCH
    return match_places(
        Grid(table(a, g, i64), line(a, g + 1, i32), line(a, g + 2, i64), table(a, g + 3, i64)),
        Filters(
            line(a, f, i32), line(a, f + 1, i32), line(a, f + 2, i32), line(a, f + 3, i32), line(a, f + 4, i32),
            line(a, f + 5, i32), line(a, f + 6, i32), table(a, f + 7, i32), line(a, f + 8, i32),
        ),
        Predicates(
            line(a, p, i32), line(a, p + 1, i32), line(a, p + 2, i32), line(a, p + 3, u8), line(a, p + 4, i32),
            line(a, p + 5, f64), line(a, p + 6, f64), table(a, p + 7, i32), table(a, p + 8, i32),
            line(a, p + 9, i32), line(a, p + 10, i32), line(a, p + 11, i32), line(a, p + 12, i32),
            line(a, p + 13, f64), table(a, p + 14, u64), table(a, p + 15, u64), line(a, p + 16, i32),
        ),
        Subscribers(
            line(a, s, f64), line(a, s + 1, f64), line(a, s + 2, i32), line(a, s + 3, i32), line(a, s + 4, i32),
            line(a, s + 5, i32), line(a, s + 6, i32), line(a, s + 7, i32), line(a, s + 8, u8),
            line(a, s + 9, f64), line(a, s + 10, i64), line(a, s + 11, i64),
        ),
        Events(
            line(a, e, f64), line(a, e + 1, f64), line(a, e + 2, i64), line(a, e + 3, i32), line(a, e + 4, i32),
            line(a, e + 5, u8), table(a, e + 6, f64), line(a, e + 7, i32), line(a, e + 8, i32),
        ),
        which,
        stamp,
        Output(
            line(a, o, i64), line(a, o + 1, i32), line(a, o + 2, i32), line(a, o + 3, i32), line(a, o + 4, i32),
            line(a, o + 5, u8), line(a, o + 6, i64),
        ),
        Scratch(
            line(a, t, i64), line(a, t + 1, i64), line(a, t + 2, i64), line(a, t + 3, f64), cube(a, t + 4, f64),
            line(a, t + 5, i64), line(a, t + 6, i32), line(a, t + 7, i32), line(a, t + 8, f32),
            line(a, t + 9, i32),
        ),
    )  # fmt: skip
