"""Erasing while no broker runs on the data folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from nearcast.broker.erasing.erasure import Erasure, Report
from nearcast.broker.settings import BrokerSettings
from nearcast.journal import Journal, JournalSettings
from nearcast.journal.identities import Identities
from nearcast.model.time import Instant


def _nothing() -> None: ...


@contextmanager
def offline(settings: BrokerSettings, now: Instant, report: Report) -> Iterator[Erasure]:
    """The means to erase; ``JournalFailed`` if a broker runs.  Retention waits for the next broker."""
    kept = JournalSettings(lake=settings.lake)
    journal = Journal.open(settings.data / "journal", kept, lambda function: function(), lambda: now)
    try:
        with closing(Identities(settings.data / "identities.db")) as identities:
            yield Erasure(settings.data, journal, identities, settings.lake, settings.passwords, _nothing, report)
    finally:
        journal.close()
