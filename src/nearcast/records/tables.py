"""The tables of a recording.  Their names and columns are what the lake promises to its readers."""

from __future__ import annotations

from typing import Final

from nearcast.errors import UnknownName
from nearcast.records import adaptation, exchange, network, overlay, presence, sampling
from nearcast.records.column import RecordTable

VERSION: Final = 1
"""Of the schemas; grows when a reader of the earlier ones would misread the new ones."""

TABLES: Final[tuple[RecordTable, ...]] = (
    presence.POSITIONS,
    presence.REPORTS,
    presence.LATE_REPORTS,
    presence.CLIENTS,
    presence.CONTEXTS,
    exchange.SUBSCRIPTIONS,
    exchange.EVENTS,
    exchange.UNPUBLISHED,
    exchange.DELIVERIES,
    exchange.NOTIFICATIONS,
    exchange.GATEWAYS,
    network.MESSAGES,
    network.DROPS,
    network.TRAFFIC,
    network.ENERGY,
    overlay.HOPS,
    adaptation.TRANSITIONS,
    sampling.METRICS,
)
_BY_NAME: Final = {table.name: table for table in TABLES}


def table(name: str) -> RecordTable:
    """The table of that name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise UnknownName(f"there is no record table {name!r}; there are {', '.join(_BY_NAME)}") from None
