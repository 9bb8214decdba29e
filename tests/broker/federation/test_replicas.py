"""Replicas of events of others: none is kept for ever, none is let go of too early."""

from __future__ import annotations

from typing import cast

from tests.broker.federation.memory import MemoryJournal

from nearcast.broker.federation.custody import Custody
from nearcast.broker.federation.parcels import Done
from nearcast.broker.federation.replicas import AT_ONCE, DEAD, KEPT, TABLE, Replicas
from nearcast.broker.federation.wire import Holding, Released, Replica, Replicated
from nearcast.journal import Journal, Put
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Sending

OWNER = "owner@127.0.0.1:1"


class Keeper:
    def __init__(self, *, on: bool = False) -> None:
        self.now = 0
        self.alive = True
        self.journal = MemoryJournal()
        self.said: list[Message] = []
        self.opened: list[str] = []
        journal = cast("Journal", self.journal)
        self.custody = Custody(journal, lambda: self.now, self._send, self, 10**15, 10**9)
        self.replicas = Replicas(
            "keeper",
            on,
            journal,
            self.custody,
            lambda: self.now,
            self._send,
            lambda: (OWNER,),
            lambda _broker: OWNER if self.alive else None,
            self._open,
        )

    def hop(self, _broker: str) -> str | None:
        return OWNER if self.alive else None

    def _send(self, _to: str, message: Message) -> Sending:
        self.said.append(message)
        return Sending.ACCEPTED

    def _open(self, key: str, _body: bytes, puts: list[Put], done: Done) -> None:
        self.opened.append(key)
        self.journal.write(puts=puts, then=done)

    def keep(self, count: int) -> None:
        for number in range(count):
            self.replicas.hear(OWNER, Replica(f"owner k{number:05}", "owner", ("third",), b"body"))
        while self.journal.commit():
            pass

    def tick(self, microseconds: int) -> None:
        self.now += microseconds
        self.replicas.tick()


def test_those_that_are_still_needed_do_not_keep_the_others_from_being_let_go() -> None:
    """A dead broker is owed the first ones: they stay; all that came later were passed on."""
    keeper = Keeper()
    size = 4 * AT_ONCE
    keeper.keep(size)
    assert sum(isinstance(message, Replicated) for message in keeper.said) == size
    needed = {f"owner k{number:05}" for number in range(AT_ONCE)}
    keeper.now += KEPT
    for _ in range(10):
        keeper.said.clear()
        keeper.tick(MICROSECONDS)
        for message in keeper.said:
            assert isinstance(message, Holding)
            assert len(message.keys) <= AT_ONCE
            keeper.replicas.released(Released(tuple(key for key in message.keys if key not in needed)))
    while keeper.journal.commit():
        pass
    assert keeper.journal.tables[TABLE].keys() == needed
    keeper.said.clear()
    keeper.tick(KEPT)
    asked = [key for message in keeper.said if isinstance(message, Holding) for key in message.keys]
    assert set(asked) == needed


def test_an_event_of_a_dead_owner_that_cannot_be_written_is_tried_again() -> None:
    keeper = Keeper()
    keeper.keep(1)
    keeper.alive = False
    keeper.tick(0)
    keeper.tick(DEAD)
    keeper.journal.commit()  # for the brokers that it is for
    keeper.journal.commit(failed=True)  # for the clients here
    assert keeper.journal.tables[TABLE].keys() == {"owner k00000"}
    keeper.tick(MICROSECONDS)
    while keeper.journal.commit():
        pass
    assert keeper.opened == ["k00000"] * 2
    assert not keeper.journal.tables[TABLE]
    assert keeper.custody.statistics().stranded == {"owner": 1, "third": 1}
    assert keeper.replicas.statistics().kept == 0


def test_two_brokers_may_have_replicas_of_one_event() -> None:
    keeper = Keeper()
    keeper.keep(1)
    keeper.replicas.hear(OWNER, Replica("next k00000", "next", ("fourth",), b"body"))
    while keeper.journal.commit():
        pass
    assert keeper.replicas.statistics().kept == 2
    keeper.replicas.released(Released(("owner k00000",)))
    keeper.alive = False
    keeper.tick(0)
    keeper.tick(DEAD)
    while keeper.journal.commit():
        pass
    assert keeper.opened == ["k00000"]
    assert keeper.custody.statistics().stranded == {"next": 1, "fourth": 1}


def test_what_is_passed_on_is_confirmed_only_when_it_has_a_replica_as_well() -> None:
    keeper = Keeper(on=True)
    confirmed: list[str] = []
    keeper.replicas.secure("k", b"body", ["third"], lambda: confirmed.append("k"))
    assert keeper.said == [Replica("keeper k", "keeper", ("third",), b"body")]
    assert not confirmed
    keeper.replicas.replicated(Replicated("keeper k"))
    assert confirmed == ["k"]
    off = Keeper()
    off.replicas.secure("k", b"body", ["third"], lambda: confirmed.append("at once"))
    assert confirmed == ["k", "at once"]
    assert off.said == []
