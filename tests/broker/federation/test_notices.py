"""All brokers come to know the same, whatever is lost or late; the newest counts, and what is removed stays away."""

from __future__ import annotations

import random
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from nearcast.broker.federation.notices import NoticeBoard
from nearcast.broker.federation.wire import Notice, Notices, Summary
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Sending


class World:
    def __init__(self, size: int, chance: random.Random) -> None:
        self.chance, self.lossy, self.now = chance, 0.0, 0
        self.under_way: deque[tuple[str, str, Message]] = deque()
        self.names = [f"b{number}" for number in range(size)]
        self.heard: list[Notice] = []
        self.boards = {name: self._board(name) for name in self.names}
        self.grow()

    def _board(self, name: str) -> NoticeBoard:
        def send(to: str, message: Message) -> Sending:
            draw = self.chance.random()
            if draw < self.lossy / 2:
                return Sending.DROPPED
            if draw >= self.lossy:
                self.under_way.append((name, to, message))
            return Sending.ACCEPTED

        return NoticeBoard(name, send, lambda: self.now, self.heard.append)

    def grow(self) -> None:
        order = self.chance.sample(self.names, len(self.names))
        edges = [(name, self.chance.choice(order[:place])) for place, name in enumerate(order) if place]
        for name in self.names:
            neighbours = [one if other == name else other for one, other in edges if name in (one, other)]
            self.boards[name].tree_changed(neighbours)
            for neighbour in neighbours:
                self.boards[name].joined(neighbour)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if not self.under_way:
                return
            self.under_way.rotate(self.chance.randrange(len(self.under_way)))
            sender, to, message = self.under_way.popleft()
            assert isinstance(message, Notices | Summary)
            self.boards[to].hear(sender, message)


@given(seed=st.integers(0, 2**32), size=st.integers(1, 6))
def test_in_the_end_everybody_knows_the_newest(seed: int, size: int) -> None:
    chance = random.Random(seed)
    world = World(size, chance)
    world.lossy = chance.choice([0.0, 0.3])
    for _ in range(30):
        board = world.boards[chance.choice(world.names)]
        key = f"k{chance.randrange(4)}"
        if chance.random() < 0.2:
            board.remove(key)
        else:
            board.post(key, bytes([chance.randrange(1, 256)]))
        world.run(chance.randrange(20))
        if chance.random() < 0.1:
            world.grow()
    world.lossy = 0.0
    for _ in range(10):
        for board in world.boards.values():
            board.tick()
        world.run(100_000)
    known = [{notice.key: notice for notice in board if notice.value} for board in world.boards.values()]
    assert all(each == known[0] for each in known)


def test_of_equal_versions_the_later_author_counts_everywhere() -> None:
    world = World(2, random.Random(1))
    world.boards["b0"].post("k", b"0")
    world.boards["b1"].post("k", b"1")
    world.run(100)
    assert [board.get("k") for board in world.boards.values()] == [Notice("k", 1, "b1", b"1")] * 2


def test_what_was_removed_does_not_come_back_from_who_did_not_hear_of_it() -> None:
    world = World(2, random.Random(1))
    one, two = world.boards.values()
    one.post("k", b"0")
    world.run(100)
    world.lossy = 1.0
    one.remove("k")
    world.lossy = 0.0
    world.under_way.clear()
    for _ in range(4):
        one.tick()
        two.tick()
        world.run(100)
    gone = two.get("k")
    assert gone is not None
    assert not gone.value
