"""``kill -9`` at random moments under load: nothing acknowledged is lost, and quality 2 never doubles."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

from tests.broker.persistent_clients import Publisher, Subscriber
from tests.effort import campaign
from tests.served import ServedBroker, served
from tests.waiting import until


class Load:
    """Publishers of both qualities, and subscribers of every temper."""

    def __init__(self, broker: ServedBroker, chance: random.Random) -> None:
        self.broker = broker
        self.chance = chance
        self.subscribers = [
            Subscriber("quick", self._address, self._chance()),
            Subscriber("lazy", self._address, self._chance(), lazy=0.3),
            Subscriber("narrow", self._address, self._chance(), lazy=0.2, receive_max=5),
            Subscriber("away", self._address, self._chance(), lazy=0.1),
        ]
        self.publishers: list[Publisher] = []

    def _address(self) -> tuple[str, int] | None:
        return self.broker.addresses.get("mqtt")

    def _chance(self) -> random.Random:
        return random.Random(self.chance.random())

    async def begin(self) -> None:
        await until(lambda: all(each.subscribed for each in self.subscribers))
        for qos in (1, 2):
            for name in "ab":
                self.publishers.append(Publisher(f"publisher-{name}{qos}", self._address, self._chance(), qos))

    def acknowledged(self) -> int:
        self.check()
        return sum(len(each.acknowledged) for each in self.publishers)

    def check(self) -> None:
        for each in (*self.publishers, *self.subscribers):
            each.check()

    async def more(self, messages: int) -> None:
        """Until so many more are acknowledged."""
        wanted = self.acknowledged() + messages
        await until(lambda: self.acknowledged() >= wanted)

    async def finish(self) -> None:
        """Nothing new; everything is brought to its end."""
        for publisher in self.publishers:
            publisher.going = False
        for subscriber in self.subscribers:
            subscriber.away.clear()
        await until(lambda: self.acknowledged() >= 0 and all(each.is_idle for each in self.publishers))
        everybody = [(subscriber, publisher) for subscriber in self.subscribers for publisher in self.publishers]
        with contextlib.suppress(TimeoutError):  # told below, in words
            await until(lambda: self.acknowledged() >= 0 and all(one.has_all_of(other) for one, other in everybody))
        problems = [one.account(other) for one, other in everybody]
        assert not any(problems), [problem for problem in problems if problem]
        assert self.subscribers[2].most_in_flight <= 5, "receive maximum exceeded"

    async def end(self) -> None:
        for each in (*self.publishers, *self.subscribers):
            await each.end()


async def fall_and_rise(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with served(folder) as broker:
        load = Load(broker, chance)
        try:
            await load.begin()
            for _ in range(kills):
                if chance.random() < 0.5:
                    load.subscribers[3].away.set()
                await load.more(chance.randrange(50, 800))
                await asyncio.sleep(chance.uniform(0.0, 0.01))  # not always right after an acknowledgement
                await asyncio.to_thread(broker.kill)
                load.subscribers[3].away.clear()
                await asyncio.to_thread(broker.start)
            await load.more(200)
            await load.finish()
        finally:
            await load.end()
        assert not [line for line in broker.said if "Traceback" in line or "ERROR" in line], broker.said[-20:]


def test_what_was_acknowledged_survives_three_falls(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    asyncio.run(fall_and_rise(tmp_path, 3, seed))


@campaign
def test_what_was_acknowledged_survives_many_falls(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    asyncio.run(fall_and_rise(tmp_path, 60, seed))
