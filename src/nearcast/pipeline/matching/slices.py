"""Slices of time: each gets what changes in it, and the last state of everything before it.

The last state is found per key and slice (an aggregate that shrinks at once), and handed on to later slices by a window
over what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from nearcast.matching.grid import Int64s

BEFORE: Final = -1
"""The slice of all that was before the first event."""


@dataclass(frozen=True, slots=True)
class Slices:
    """``count`` slices of equal length, from the first event to the last (microseconds)."""

    first: int
    last: int
    count: int

    @property
    def length(self) -> int:
        return (self.last - self.first) // self.count + 1

    def number(self, time: Column) -> Column:
        """The slice of an instant; ``BEFORE`` if it is before the first, or at its very beginning.

        A change at the instant of the first event counts for it, so it is part of what is known before.
        """
        from pyspark.sql import functions as F

        inside = F.floor((time - self.first) / F.lit(self.length)).cast("int")
        return F.when(time <= self.first, F.lit(BEFORE)).otherwise(inside)

    def numbers(self, time: Int64s) -> Int64s:
        """The same for an array of instants."""
        return np.where(time <= self.first, BEFORE, (time - self.first) // self.length)

    def cut_sorted(self, time: Int64s) -> Iterator[tuple[int, int, int]]:
        """The slices of instants that are in order, each with where it begins and ends."""
        if not len(time):
            return
        first, last = self.numbers(time[[0, -1]]).tolist()
        # A change at the instant of the first event is before the first slice; any other slice begins with its first instant.
        starts = [self.first + 1 + max(0, number * self.length - 1) for number in range(first + 1, last + 1)]
        for number, (begin, end) in enumerate(pairwise([0, *np.searchsorted(time, starts).tolist(), len(time)]), first):
            if begin < end:
                yield number, begin, end


def cut(frame: DataFrame, slices: Slices) -> DataFrame:
    """The rows that count for some event, with their slice."""
    from pyspark.sql import functions as F

    return frame.where(F.col("time") <= slices.last).withColumn("slice", slices.number(F.col("time")))


def within(frame: DataFrame) -> DataFrame:
    """What changes in its slice."""
    from pyspark.sql import functions as F

    return frame.where(F.col("slice") > BEFORE)


def carried(frame: DataFrame, slices: Slices, *, named: bool) -> DataFrame:
    """The last row of each client (and name, where ``named``), once for every slice that begins with it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    keys = ["client", "name"] if named else ["client"]
    # Journal offsets are given in the order of acceptance, which is that of time; they also decide between equal times.
    order = F.coalesce("offset", "time")
    last = frame.groupBy(*keys, "slice").agg(*(F.max_by(name, order).alias(name) for name in _payload(frame, keys)))
    if slices.count == 1:
        return last.where(F.col("slice") == BEFORE).withColumn("slice", F.lit(0))
    following = F.lead("slice").over(Window.partitionBy(*keys).orderBy("slice"))
    until = F.coalesce(following, F.lit(slices.count - 1))
    first = F.col("slice") + 1
    return (
        last.withColumn("until", until)
        .where(first <= F.col("until"))
        .withColumn("slice", F.explode(F.sequence(first, F.col("until"))))
        .drop("until")
    )


def _payload(frame: DataFrame, keys: list[str]) -> list[str]:
    return [name for name in frame.columns if name not in {*keys, "slice"}]
