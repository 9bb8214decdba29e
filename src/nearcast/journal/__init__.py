"""The durable log and the durable state of the broker, on SQLite.

===================  =====================================================================
``journal``          write, read, load, retention; ``settings``: what an operator may choose
``entries``          what is recorded
``group``            writes that share a commit; ``writer``: the thread that commits them
``store``            the transactions; ``reserve``: how they go on when the disk is full
``database``         the file; ``lock``: who may open it; ``failures``: what is wrong with it
``upgrades``         from earlier formats to this one
``reading``          chunks of records, by offset, time and kind
``archive``          closed stretches on their way to the lake; ``lake``: its files
``rows``             records as rows of the record tables; ``extent``: how far an area reaches
``tail``             the freshest records, or stretches as they are on disk, as an Arrow stream
``identities``       who is who, in a file of its own
===================  =====================================================================

Only the broker opens it.
"""

from nearcast.journal.entries import (
    ClientEntry,
    ContextEntry,
    DeliveryEntry,
    EventEntry,
    LateReportEntry,
    Record,
    ReportEntry,
    SubscriptionEntry,
    TransitionEntry,
    UnpublishEntry,
)
from nearcast.journal.group import Put, Then
from nearcast.journal.journal import Journal, JournalStatistics
from nearcast.journal.settings import JournalSettings

__all__ = [
    "ClientEntry",
    "ContextEntry",
    "DeliveryEntry",
    "EventEntry",
    "Journal",
    "JournalSettings",
    "JournalStatistics",
    "LateReportEntry",
    "Put",
    "Record",
    "ReportEntry",
    "SubscriptionEntry",
    "Then",
    "TransitionEntry",
    "UnpublishEntry",
]
