"""How often and how long clients were gateways, whom they served, and how evenly that was shared (BYPASS.KOM 6.1.4, 6.4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nearcast.metrics.columns import Flags, Wholes, column, instants, numbers, sums, wholes
from nearcast.metrics.fairness import jain_index
from nearcast.model.time import MICROSECONDS

PAUSE: Final = 10 * MICROSECONDS
"""Who is chosen again within this time has been a gateway all the while.  Gateways are chosen anew for each event, so there is no other
beginning or end; with an event a second from each client, ten seconds are a long time."""


def utilisation(gateways: Any, clients: Sequence[str], *, pause: int = PAUSE) -> Any:
    """A row for each of the clients, from the table ``gateways``: ``client, chosen, active, members, microseconds``.

    ``chosen`` is how often it was a gateway, ``active`` how often with somebody to serve, ``members`` how many it served, all
    together, and ``microseconds`` for how long.  Clients that were never chosen have zeros; choices of any others are left out.
    """
    import pyarrow as pa

    names = pa.array(clients, pa.string())
    client, members, times = _choices(gateways, names)
    number = len(clients)
    return pa.table(
        {
            "client": names,
            "chosen": _whole(client, np.ones(len(client), np.int64), number),
            "active": _whole(client, members > 0, number),
            "members": _whole(client, members, number),
            "microseconds": _whole(*_stretches(client, times, pause), number),
        }
    )


def selection_fairness(gateways: Any, clients: Sequence[str]) -> float | None:
    """Jain's index of how often each of the clients was chosen; none if nobody was."""
    return jain_index(utilisation(gateways, clients)["chosen"].to_numpy())


def _choices(gateways: Any, names: Any) -> tuple[Wholes, Wholes, Wholes]:
    client = numbers(column(gateways, "gateway"), names)
    known = client >= 0
    return client[known], wholes(gateways, "members")[known], instants(gateways, "time")[known]


def _stretches(client: Wholes, times: Wholes, pause: int) -> tuple[Wholes, Wholes]:
    """The times between choices of one client that are no longer than the pause, and of which client."""
    order = np.lexsort((times, client))
    client, times = client[order], times[order]
    between = np.diff(times)
    counts = (client[1:] == client[:-1]) & (between <= pause)
    return client[1:][counts], between[counts]


def _whole(client: Wholes, values: Wholes | Flags, number: int) -> Wholes:
    return sums(client, values, number).astype(np.int64)
