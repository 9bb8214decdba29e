"""Windows of time, and how a value is spread within each of them (BYPASS.KOM 6.1.4: 10 s, mean and five percentiles)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidTime
from nearcast.metrics.columns import Floats, Wholes, instant_column, nullable, ratio, sums
from nearcast.metrics.distribution import BANDS, grouped_percentiles
from nearcast.model.time import MICROSECONDS, Instant

TEN_SECONDS: Final = 10 * MICROSECONDS


@dataclass(frozen=True, slots=True)
class Windows:
    """``[since, until)`` cut into windows of ``length`` microseconds from ``since`` on; the last may be shorter."""

    since: Instant
    until: Instant
    length: int = TEN_SECONDS

    def __post_init__(self) -> None:
        if self.length <= 0:
            raise InvalidTime(f"a window cannot be {self.length} microseconds long; give a positive length")
        if self.until < self.since:
            raise InvalidTime(f"the windows end at {self.until}, before they begin at {self.since}")

    @property
    def count(self) -> int:
        return -(-(self.until - self.since) // self.length)

    @property
    def starts(self) -> Wholes:
        return self.since + self.length * np.arange(self.count)

    @property
    def seconds(self) -> Floats:
        """How long each is."""
        return (np.minimum(self.starts + self.length, self.until) - self.starts) / MICROSECONDS

    def index(self, times: Wholes) -> Wholes:
        """The number of the window of each instant; -1 outside of all."""
        inside = (times >= self.since) & (times < self.until)
        return np.where(inside, (times - self.since) // self.length, -1)


def bands(windows: Windows, index: Wholes, values: Floats) -> Any:
    """For each window ``start, count, mean, p5, p25, p50, p75, p95`` of the values in it; NaN does not count.

    ``index`` says which window a value belongs to (``Windows.index``), -1 for none.  The values may be those of events, or of
    clients (``delivery.per_client_and_window``): the percentiles then speak of them.  Null where a window has no value.
    """
    import pyarrow as pa

    kept = (index >= 0) & ~np.isnan(values)
    groups, among = index[kept], values[kept]
    count = np.bincount(groups, minlength=windows.count)
    percentiles = grouped_percentiles(groups, among, windows.count, BANDS)
    columns = {f"p{percent:g}": nullable(percentiles[:, place]) for place, percent in enumerate(BANDS)}
    return pa.table(
        {
            "start": instant_column(windows.starts),
            "count": pa.array(count, pa.int64()),
            "mean": nullable(ratio(sums(groups, among, windows.count), count)),
            **columns,
        }
    )


def bands_of_matrix(windows: Windows, values: Floats) -> Any:
    """As ``bands``, of a matrix with a row for each window, such as rates of all clients (``traffic.Flows.rates``)."""
    index = np.repeat(np.arange(windows.count), values.shape[1])
    return bands(windows, index, np.ascontiguousarray(values).reshape(-1))
