"""What waits for a dead broker is looked at again, however much it is, and nobody else is held up by that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from tests.broker.federation.memory import MemoryJournal

from nearcast.broker.federation.custody import Custody, Kept
from nearcast.broker.federation.reconsidering import AT_ONCE, LOOKS, PER_SECOND, Reconsidering
from nearcast.broker.federation.wire import EVENT, RELAY
from nearcast.journal import Journal
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.ports import Sending


class World:
    """Whatever is for ``dead`` is stranded."""

    def __init__(self) -> None:
        self.now = 0
        self.journal = MemoryJournal()
        self.waiting: list[Callable[[], None]] = []
        self.looked: list[tuple[str, frozenset[str]]] = []
        self.custody = Custody(
            cast("Journal", self.journal), lambda: self.now, lambda _to, _what: Sending.ACCEPTED, self, 10**15, 10**9
        )
        self.reconsidering = Reconsidering(
            self.custody, lambda kept: self.look(kept, ("copy",)), self.look, self.waiting.append, lambda: self.now
        )

    def hop(self, broker: str) -> str | None:
        return None if broker == "dead" else broker

    def look(self, kept: Kept, gone_to: Iterable[str]) -> None:
        self.looked.append((kept.key, frozenset(gone_to)))
        if kept.key == "wrong":
            raise ValueError("whatever")

    def keep(self, key: str, kind: str, *brokers: str) -> None:
        self.custody.add(key, kind, b"x", brokers)
        self.journal.commit()

    def tick(self, seconds: float) -> None:
        self.now += round(seconds * MICROSECONDS)
        self.reconsidering.tick()

    def turn(self) -> int:
        """One turn of the loop; how many were looked at in it."""
        before = len(self.looked)
        self.waiting.pop(0)()
        return len(self.looked) - before


def test_only_a_few_are_looked_at_before_others_have_their_turn() -> None:
    world = World()
    size = 20 * AT_ONCE + 7
    for number in range(size):
        world.keep(f"k{number}", EVENT, "dead", "alive")
    world.tick(1)
    assert len(world.looked) == AT_ONCE
    world.tick(1)  # the next time has come before this one is over
    while world.waiting:
        assert world.turn() <= AT_ONCE
    assert [key for key, _ in world.looked] == [f"k{number}" for number in range(size)]
    world.tick(1)
    assert len(world.looked) == size, "so many are not looked at every second"
    world.tick(size / PER_SECOND)
    assert len(world.looked) == size + AT_ONCE


def test_what_goes_wrong_with_one_does_not_hold_up_the_others() -> None:
    world = World()
    world.keep("wrong", EVENT, "dead")
    for number in range(AT_ONCE):
        world.keep(f"k{number}", EVENT, "dead")
    try:
        world.tick(1)
    except ValueError:
        world.turn()
    assert world.looked[-1][0] == f"k{AT_ONCE - 1}"


def test_events_are_told_where_clients_of_the_missing_broker_have_gone() -> None:
    world = World()
    world.keep("event", EVENT, "dead")
    world.keep("copy", RELAY, "dead")
    world.keep("sent", EVENT, "alive")
    world.reconsidering.gone("dead", "new")
    world.reconsidering.gone("alive", "elsewhere")
    world.tick(LOOKS[0])
    assert sorted(world.looked) == [("copy", frozenset({"copy"})), ("event", frozenset({"new"}))]
    for _ in range(30):
        world.tick(1)
    assert sum(gone_to == {"new"} for _, gone_to in world.looked) == len(LOOKS)
