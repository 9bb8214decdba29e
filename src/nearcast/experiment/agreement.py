"""Whether two runs told the same clients of the same events."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from nearcast.metrics.columns import column, names_in, numbers
from nearcast.records.reader import dataset


@lru_cache(maxsize=64)
def agreement(one: str, other: str) -> float | None:
    """Notifications (event, client) that both recordings have, as a share of those that either has; none if there are none."""
    tables = [dataset(folder, "notifications").to_table(columns=["event", "client"]) for folder in (one, other)]
    events = names_in(*(column(table, "event") for table in tables))
    clients = names_in(*(column(table, "client") for table in tables))
    first, second = (
        np.unique(numbers(column(table, "event"), events) * len(clients) + numbers(column(table, "client"), clients))
        for table in tables
    )
    both = len(np.intersect1d(first, second, assume_unique=True))
    either = len(first) + len(second) - both
    return both / either if either else None
