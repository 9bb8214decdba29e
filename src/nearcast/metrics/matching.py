"""Match operations per event, from counters that were sampled while the system ran.

They are recorded twice: as the documents count them (a channel scheme compares an event with every cell, LCN 2016
IV-A) and as really done (a hash look-up is one).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nearcast.metrics.columns import Floats, column, instant_column, instants, is_name, nullable, ratio, reals, sums
from nearcast.metrics.windows import Windows

EVENTS_MATCHED: Final = "events matched"
OPERATIONS_COUNTED: Final = "match operations, as counted in the documents"
OPERATIONS_DONE: Final = "match operations, as done"


def increases(metrics: Any, metric: str, windows: Windows) -> Floats:
    """By how much a cumulative counter of the table ``metrics`` grew in each window.

    The value at an instant is that of the last sample at or before it, and 0 before the first one; so a sample at the
    end of a window belongs to that window.  A counter that falls has started anew from 0, as after a restart of the broker.
    """
    kept = metrics.filter(is_name(column(metrics, "metric"), metric))
    times, values = instants(kept, "time"), reals(kept, "value")
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    steps = np.diff(values, prepend=0.0)
    steps = np.where(steps < 0.0, values, steps)
    window = windows.index(times - 1)
    inside = window >= 0
    return sums(window[inside], steps[inside], windows.count)


def match_operations(metrics: Any, windows: Windows) -> Any:
    """``start, events, counted, done, counted_per_event, done_per_event`` of each window.

    The last two are ratios of increases, null where no event was matched.
    """
    import pyarrow as pa

    events = increases(metrics, EVENTS_MATCHED, windows)
    counted = increases(metrics, OPERATIONS_COUNTED, windows)
    done = increases(metrics, OPERATIONS_DONE, windows)
    return pa.table(
        {
            "start": instant_column(windows.starts),
            "events": events,
            "counted": counted,
            "done": done,
            "counted_per_event": nullable(ratio(counted, events)),
            "done_per_event": nullable(ratio(done, events)),
        }
    )
