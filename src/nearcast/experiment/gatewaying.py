"""What gateways did in a run (BYPASS.KOM 6.1.4, 6.4.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from nearcast.metrics.columns import column, instants, is_name, names_in, numbers, reals, wholes
from nearcast.metrics.gateways import selection_fairness
from nearcast.model.time import MICROSECONDS
from nearcast.records.reader import read
from nearcast.scenario.assembly import COPIES, HEARD, MOST_COPIES

GATEWAYS: Final = "gateways of an event"
CANDIDATES: Final = "candidates of an event"
SERVING: Final = "gateways of an event with somebody to serve"
FAIRNESS: Final = "fairness"
DELIVERIES: Final = "deliveries"
MOST_DELIVERIES: Final = "deliveries, of who hears most"


def gateway_numbers(folder: Path, settling: float) -> dict[str, float]:
    """How many there were, how evenly that was shared, and how often those near heard an event; of nothing that never was.

    ``settling``: seconds at the beginning that do not count.
    """
    chosen, metrics = read(folder, "gateways"), read(folder, "metrics")
    if not chosen.num_rows:
        return {}
    since = instants(metrics, "time").min() + round(settling * MICROSECONDS)
    chosen = chosen.filter(instants(chosen, "time") >= since)
    names = names_in(column(chosen, "event"))
    events = len(names)
    if not events:
        return {}
    clients = names_in(column(read(folder, "clients"), "client")).to_pylist()
    # Candidates that are divided into groups have a row for each gateway of their group.  Groups of the same event and size cannot be
    # told apart and count once; below 200 candidates, which events of the experiments never have, there is one group only.
    groups = np.unique(np.stack([numbers(column(chosen, "event"), names), wholes(chosen, "candidates")]), axis=1)
    fairness = selection_fairness(chosen, clients)
    heard, copies = _increase(metrics, HEARD, since), _increase(metrics, COPIES, since)
    most = reals(_of(metrics, MOST_COPIES), "value")
    return {
        GATEWAYS: chosen.num_rows / events,
        SERVING: int((wholes(chosen, "members") > 0).sum()) / events,
        CANDIDATES: float(groups[1].sum()) / events,
        FAIRNESS: fairness if fairness is not None else 0.0,
        DELIVERIES: copies / heard if heard else 0.0,
        MOST_DELIVERIES: float(most[-1]) if len(most) else 0.0,
    }


def _of(metrics: Any, name: str) -> Any:
    return metrics.filter(is_name(column(metrics, "metric"), name))


def _increase(metrics: Any, name: str, since: int) -> float:
    samples = _of(metrics, name)
    values = reals(samples, "value")[instants(samples, "time") >= since]
    return float(values[-1] - values[0]) if len(values) else 0.0
