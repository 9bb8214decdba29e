"""Events that are taken back: wherever they are or come to later, nothing of them appears any more (product.md)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from nearcast.broker.federation.custody import Custody
from nearcast.broker.federation.event_ids import EventIds
from nearcast.broker.federation.parcels import Done
from nearcast.broker.federation.replicas import Replicas
from nearcast.broker.federation.wire import UNPUBLISH, UnpublishBody, encode, unpublish_body
from nearcast.broker.temporal.unpublishing import Unpublishing
from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put, Then
from nearcast.journal.entries import key_of

log: Final = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Withdrawals:
    journal: Journal
    custody: Custody
    replicas: Replicas
    gone: EventIds
    unpublishing: Unpublishing
    brokers: Callable[[], list[str]]
    """All others."""

    def key(self, client: str, event: str) -> str:
        return key_of(client, event)

    def load(self) -> None:
        """What was taken back, and could not be dropped before the broker fell."""
        self.gone.load()
        for key in list(self.gone):
            self._drop(key)

    def unpublish(self, event: str, keys: Iterable[str]) -> tuple[list[Put], Then]:
        """It is taken back here: what is to be written so that all others hear of it, and what to tell when it is decided."""
        those, brokers = list(keys), self.brokers()
        puts = [self.gone.begin(key) for key in those]
        for key in those if brokers else ():
            puts += self.custody.begin(_parcel(key), UNPUBLISH, encode(UnpublishBody(key, event)), brokers)

        def written(failed: JournalFailed | None) -> None:
            for key in those:
                self.gone.end(key, failed=failed is not None)
                self.custody.end(_parcel(key), brokers, failed=failed is not None)
                if failed is None:
                    self._drop(key)

        return puts, written

    def arrive(self, body: bytes, puts: list[Put], done: Done) -> None:
        """It was taken back elsewhere; if it is not here yet, it will be recognised."""
        try:
            told = unpublish_body(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:  # of another version
            log.warning("what another broker says was unpublished cannot be read: %s", error)
            self.journal.write(puts=puts, then=done)
            return

        def written(failed: JournalFailed | None) -> None:
            self.gone.end(told.key, failed=failed is not None)
            if failed is None:
                self._drop(told.key)
                self.unpublishing.taken_back(told.event, told.key, puts, done)
            else:
                done(failed)

        self.journal.write(puts=(self.gone.begin(told.key),), then=written)

    def _drop(self, key: str) -> None:
        for parcel in (key, f"{key} again"):
            self.custody.cancel(parcel)
        self.replicas.cancel(key)


def _parcel(key: str) -> str:
    return f"{key} gone"
