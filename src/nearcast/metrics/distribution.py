"""Percentiles, box plots and grand means: how the documents show a spread (BYPASS.KOM 6.1.4).

Percentiles are interpolated linearly between the two nearest values, as numpy's and Spark's ``percentile`` do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nearcast.errors import InvalidInput
from nearcast.metrics.columns import Floats, Wholes

BANDS: Final = (5.0, 25.0, 50.0, 75.0, 95.0)
"""Of plots over time."""

BOX: Final = (2.5, 25.0, 50.0, 75.0, 97.5)
"""Of box plots; the first and the last are the whiskers."""

STUDENT: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
"""What Student's t exceeds in 2.5 % of all cases, with 1, 2, ... degrees of freedom; beyond the table, 1.96 + 2.5 / n is as exact."""


def grouped_percentiles(group: Wholes, values: Floats, groups: int, percents: Sequence[float]) -> Floats:
    """A row for each of the groups 0, 1, ...; NaN where a group has no value.  No value may be NaN."""
    result = np.full((groups, len(percents)), np.nan)
    if not len(values):
        return result
    ordered = values[np.lexsort((values, group))]
    count = np.bincount(group, minlength=groups)
    start, used = np.cumsum(count) - count, np.flatnonzero(count)
    for place, percent in enumerate(percents):
        rank = (count[used] - 1) * (percent / 100.0)
        below = np.floor(rank).astype(np.int64)
        above = np.minimum(below + 1, count[used] - 1)
        low, high = ordered[start[used] + below], ordered[start[used] + above]
        result[used, place] = low + (high - low) * (rank - below)
    return result


@dataclass(frozen=True, slots=True)
class BoxPlot:
    count: int
    mean: float
    low: float
    """Lower whisker: the 2.5th percentile."""

    lower_quartile: float
    median: float
    upper_quartile: float
    high: float
    """Upper whisker: the 97.5th percentile."""


def box_plot(values: Floats) -> BoxPlot | None:
    """NaN does not count; none if nothing is left."""
    kept = values[~np.isnan(values)]
    if not len(kept):
        return None
    return BoxPlot(len(kept), float(kept.mean()), *(float(value) for value in np.percentile(kept, BOX)))


@dataclass(frozen=True, slots=True)
class GrandMean:
    """Of the means of several runs that differ in their seed only."""

    seeds: int
    mean: float
    deviation: float | None
    """Sample standard deviation of the means (n - 1); one run has none."""

    @property
    def interval(self) -> float | None:
        """Half of the 95 % confidence interval of the mean, by Student's t; one run has none."""
        if self.deviation is None:
            return None
        freedom = self.seeds - 1
        quantile = STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96 + 2.5 / freedom
        return quantile * self.deviation / math.sqrt(self.seeds)


T_975: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
)  # fmt: skip
"""Student's distribution with 1, 2, ... degrees of freedom: 97.5 % of it are below."""


def confidence(deviation: float | None, seeds: int) -> float | None:
    """Half of the interval that holds the true mean with 95 % confidence, if means of runs are normal; one run tells of none."""
    if deviation is None or seeds < 2:
        return None
    freedom = seeds - 1
    # Beyond the table: the first terms of the expansion around the normal distribution, good to a thousandth there.
    quantile = T_975[freedom - 1] if freedom <= len(T_975) else 1.95996 + 2.3723 / freedom + 2.823 / freedom**2
    return float(quantile * deviation / math.sqrt(seeds))


def grand_mean(means: Sequence[float]) -> GrandMean:
    if not means or not np.isfinite(means).all():
        raise InvalidInput(f"a grand mean needs at least one run, and a number of each: {list(means)}")
    deviation = float(np.std(means, ddof=1)) if len(means) > 1 else None
    return GrandMean(len(means), float(np.mean(means)), deviation)
