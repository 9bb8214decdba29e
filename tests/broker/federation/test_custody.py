"""Whatever is lost, late, repeated or crashes on the way: a parcel that was taken reaches every broker that it is for."""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.federation.memory import MemoryJournal

from nearcast.broker.federation import custody as module
from nearcast.broker.federation.custody import DESTINATIONS, PARCELS, RETRY, Custody
from nearcast.broker.federation.parcels import Done, Parcels
from nearcast.broker.federation.wire import Parcel, Stored
from nearcast.errors import QuotaExceeded
from nearcast.journal import Journal, Put
from nearcast.model.time import MICROSECONDS
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Sending

LONGEST = 1_000_000 * MICROSECONDS


class World:
    """Brokers on a tree that changes, over links that lose and reorder."""

    def __init__(self, size: int, chance: random.Random) -> None:
        self.chance = chance
        self.now = 0
        self.names = [f"b{number}" for number in range(size)]
        self.parents: dict[str, str] = {}
        self.unaware: set[str] = set()
        self.under_way: deque[tuple[str, str, Message]] = deque()
        self.lossy = 0.0
        self.brokers = {name: Broker(self, name, MemoryJournal()) for name in self.names}
        self.grow()
        for name in self.names:
            self.tell(name)

    def grow(self) -> None:
        """Another tree, of which each hears when it hears of it: till then it goes by the one before."""
        order = self.chance.sample(self.names, len(self.names))
        self.parents = {name: self.chance.choice(order[:place]) for place, name in enumerate(order) if place}
        self.unaware = set(self.names)

    def tell(self, name: str) -> None:
        broker = self.brokers[name]
        broker.parents = dict(self.parents)
        self.unaware.discard(name)
        if broker.up:
            broker.custody.tree_changed()
            for neighbour in neighbours(broker.parents, name):
                broker.custody.joined(neighbour)

    def hop(self, at: str, to: str) -> str | None:
        """Along the tree as that one knows it, if nobody on the way is down."""
        parents = self.brokers[at].parents
        seen, waiting = {at: at}, deque([at])
        while waiting:
            here = waiting.popleft()
            for neighbour in neighbours(parents, here):
                if neighbour not in seen and self.brokers[neighbour].up:
                    seen[neighbour] = neighbour if here == at else seen[here]
                    waiting.append(neighbour)
        return seen.get(to) if to != at else None

    def send(self, sender: str, to: str, message: Message) -> Sending:
        if not self.brokers[to].up:
            return Sending.DROPPED
        if self.chance.random() >= self.lossy:
            self.under_way.append((sender, to, message))
        return Sending.ACCEPTED

    def step(self) -> None:
        """Something happens somewhere."""
        choice = self.chance.random()
        if choice < 0.5 and self.under_way:
            self.under_way.rotate(self.chance.randrange(len(self.under_way)))
            sender, to, message = self.under_way.popleft()
            if self.brokers[to].up:
                self.brokers[to].hear(sender, message)
        elif choice < 0.55 and self.unaware:
            self.tell(self.chance.choice(sorted(self.unaware)))
        else:
            broker = self.brokers[self.chance.choice(self.names)]
            if broker.up:
                broker.journal.commit()

    def settle(self) -> None:
        """Nothing is lost any more, everybody starts anew, and time goes by."""
        self.lossy = 0.0
        self.under_way.clear()
        for broker in self.brokers.values():
            while broker.up and broker.journal.commit():
                pass
            broker.rise()
        self.grow()
        for name in self.names:
            self.tell(name)
        for _ in range(60):
            while self.under_way or any(broker.journal.commit() for broker in self.brokers.values()):
                if self.under_way:
                    sender, to, message = self.under_way.popleft()
                    self.brokers[to].hear(sender, message)
            self.now += RETRY + 1
            for broker in self.brokers.values():
                broker.custody.tick()


def neighbours(parents: dict[str, str], name: str) -> list[str]:
    found = {child for child, parent in parents.items() if parent == name}
    if name in parents:
        found.add(parents[name])
    return sorted(found)


class Broker:
    def __init__(self, world: World, name: str, journal: MemoryJournal) -> None:
        self.world, self.name, self.journal = world, name, journal
        self.up = True
        self.parents: dict[str, str] = {}
        self.opened: Counter[str] = Counter()
        self.acknowledged: dict[str, set[str]] = {}
        self.rise()

    def rise(self) -> None:
        self.up = True
        kept = cast("Journal", self.journal)
        self.custody = Custody(kept, lambda: self.world.now, self._send, self, LONGEST, 1_000_000)
        self.parcels = Parcels(self.name, kept, self.custody, self._send, self._open)
        self.custody.load()

    def fall(self) -> None:
        self.up = False
        self.journal.crash()

    def hop(self, broker: str) -> str | None:
        return self.world.hop(self.name, broker)

    def _send(self, to: str, message: Message) -> Sending:
        return self.world.send(self.name, to, message)

    def hear(self, sender: str, message: Message) -> None:
        if isinstance(message, Parcel):
            self.parcels.hear(sender, message)
        elif isinstance(message, Stored):
            self.custody.stored(sender, message)

    def _open(self, parcel: Parcel, puts: list[Put], done: Done) -> None:
        def written(failed: Any) -> None:
            if failed is None:
                self.opened[parcel.key] += 1
            done(failed)

        self.journal.write(puts=puts, then=written)

    def publish(self, key: str, brokers: set[str]) -> None:
        def then(failed: Any) -> None:
            if failed is None:
                self.acknowledged[key] = brokers

        self.custody.add(key, "event", key.encode(), sorted(brokers), then)


@given(seed=st.integers(0, 2**32), size=st.integers(2, 6))
def test_what_was_acknowledged_reaches_every_broker_whatever_happens(seed: int, size: int) -> None:
    chance = random.Random(seed)
    world = World(size, chance)
    world.lossy = chance.choice([0.0, 0.1, 0.5])
    for number in range(40):
        sender = world.brokers[chance.choice(world.names)]
        if sender.up:
            others = [name for name in world.names if name != sender.name]
            sender.publish(f"{sender.name}-{number}", set(chance.sample(others, chance.randint(1, len(others)))))
        for _ in range(chance.randrange(30)):
            world.step()
        world.now += chance.randrange(2 * RETRY)
        for broker in world.brokers.values():
            if broker.up:
                broker.custody.tick()
        broker = world.brokers[chance.choice(world.names)]
        match chance.randrange(6):
            case 0 if broker.up:
                broker.fall()
                world.grow()
            case 1 if not broker.up:
                broker.rise()
                world.grow()
            case 2:
                world.grow()
            case 3 if broker.up:
                broker.journal.commit(failed=True)
    world.settle()
    for sender in world.brokers.values():
        for key, brokers in sender.acknowledged.items():
            for name in brokers:
                assert world.brokers[name].opened[key], f"{key} never reached {name}"
    for broker in world.brokers.values():
        statistics = broker.custody.statistics()
        assert statistics.parcels == statistics.bytes == 0, f"{broker.name} keeps what everybody has"
        assert not broker.journal.tables.get(PARCELS)
        assert not broker.journal.tables.get(DESTINATIONS)


def test_over_a_quiet_tree_a_parcel_takes_each_link_once() -> None:
    world = World(4, random.Random(1))
    world.parents = {"b1": "b0", "b2": "b1", "b3": "b1"}
    for name in world.names:
        world.tell(name)
    world.brokers["b0"].publish("k", {"b1", "b2", "b3"})
    while any(broker.journal.commit() for broker in world.brokers.values()) or world.under_way:
        if world.under_way:
            sender, to, message = world.under_way.popleft()
            world.brokers[to].hear(sender, message)
    sent = {name: broker.custody.statistics().sent for name, broker in world.brokers.items()}
    assert sent == {"b0": 1, "b1": 2, "b2": 0, "b3": 0}
    assert all(world.brokers[name].opened == {"k": 1} for name in ("b1", "b2", "b3"))


def test_no_more_than_a_window_is_under_way_and_the_rest_keeps_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", 3)
    world = World(2, random.Random(1))
    one, two = world.brokers["b0"], world.brokers["b1"]
    for number in range(10):
        one.publish(f"k{number}", {"b1"})
        one.journal.commit()
    assert [message.key for _, _, message in world.under_way if isinstance(message, Parcel)] == ["k0", "k1", "k2"]
    sender, _, message = world.under_way.popleft()
    two.hear(sender, message)
    two.journal.commit()
    sender, _, message = world.under_way.pop()
    assert isinstance(message, Stored)
    one.hear(sender, message)
    assert [message.key for _, _, message in world.under_way if isinstance(message, Parcel)] == ["k1", "k2", "k3"]


def test_what_waits_for_a_broker_out_of_reach_is_shown_and_given_up_after_its_time() -> None:
    world = World(2, random.Random(1))
    one = world.brokers["b0"]
    world.brokers["b1"].fall()
    one.publish("k", {"b1"})
    one.journal.commit()
    assert one.custody.statistics().stranded == {"b1": 1}
    assert list(one.custody.stranded()) == ["k"]
    world.now += LONGEST + 1
    one.custody.tick()
    assert one.custody.statistics().expired == 1
    assert one.custody.statistics().parcels == 0


def test_from_hand_to_hand_a_parcel_does_not_become_younger() -> None:
    world = World(3, random.Random(1))
    world.parents = {"b1": "b0", "b2": "b1"}
    for name in world.names:
        world.tell(name)
    world.brokers["b0"].publish("k", {"b2"})
    world.brokers["b0"].journal.commit()
    world.now += LONGEST - 1
    world.brokers["b2"].fall()
    sender, _, message = world.under_way.popleft()
    world.brokers["b1"].hear(sender, message)
    world.brokers["b1"].journal.commit()
    assert world.brokers["b1"].custody.statistics().stranded == {"b2": 1}
    world.now += 2
    world.brokers["b1"].custody.tick()
    assert world.brokers["b1"].custody.statistics().expired == 1


def test_beyond_its_room_nothing_is_taken() -> None:
    one = World(2, random.Random(1)).brokers["b0"]
    one.custody.check_room(1_000_000)
    with pytest.raises(QuotaExceeded, match="too large for other brokers"):
        one.custody.check_room(module.LARGEST + 1)
    with pytest.raises(QuotaExceeded, match="custody_bytes"):
        one.custody.check_room(1_000_001)
