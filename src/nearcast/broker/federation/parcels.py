"""Parcels that come by: those for this broker are opened, the others go on."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nearcast.broker.federation.custody import Custody
from nearcast.broker.federation.wire import Parcel, Stored
from nearcast.errors import JournalFailed
from nearcast.journal import Journal, Put
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Sending

Done = Callable[[JournalFailed | None], None]
Open = Callable[[Parcel, list[Put], Done], None]
"""``open(parcel, puts, done)``: carry it out, write that together with ``puts``, and say so when it is on disk."""

Secure = Callable[[Parcel, Sequence[str], Callable[[], object]], object]
"""``secure(parcel, others, then)``: it is on disk here, and goes on to others; what is ``then`` waits until it is safe as well."""


@dataclass(slots=True, eq=False)
class Parcels:
    me: str
    journal: Journal
    custody: Custody
    send: Callable[[Address, Message], Sending]
    open: Open
    secure: Secure = lambda _parcel, _others, then: then()

    def hear(self, sender: Address, parcel: Parcel) -> None:
        others = [broker for broker in parcel.to if broker != self.me]
        number = parcel.number
        if number is None:
            self._pass_on(parcel, others)
            if self.me in parcel.to:
                self.open(parcel, [], _unheard)
            return
        # From here on we answer for it ourselves: that somebody to whom we sent it before has stored it does not count any more.
        # He may have sent it to who sends it to us now, and all three would let go of it.
        self.custody.retake(parcel.key, others)
        further = bool(others) and not self.custody.holds(parcel.key, others)
        # One write for all of it: what is confirmed is here as a whole.
        puts = self.custody.begin(parcel.key, parcel.kind, parcel.body, others, parcel.since) if further else []

        def done(failed: JournalFailed | None) -> None:
            if further:
                self.custody.end(parcel.key, others, failed=failed is not None)
            if failed is None:
                self.secure(parcel, others, lambda: self.send(sender, Stored(parcel.key, number)))

        if self.me in parcel.to:
            self.open(parcel, puts, done)
        else:
            self.journal.write(puts=puts, then=done)

    def loose(self, kind: str, body: bytes, brokers: Sequence[str]) -> None:
        """Send something that nobody keeps: it arrives or it does not."""
        self._pass_on(Parcel(secrets.token_hex(8), (), kind, body, None), brokers)

    def _pass_on(self, parcel: Parcel, brokers: Sequence[str]) -> None:
        behind: dict[Address, list[str]] = {}
        for broker in brokers:
            hop = self.custody.directions.hop(broker)
            if hop is not None:
                behind.setdefault(hop, []).append(broker)
        for hop, those in behind.items():
            self.send(hop, Parcel(parcel.key, tuple(those), parcel.kind, parcel.body, None))


def _unheard(_failed: JournalFailed | None) -> None:
    """Nobody waits for it."""
