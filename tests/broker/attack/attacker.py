"""Attacks a broker from a process of its own until its standard input is closed; then tells what became of it.

Once everything was tried it says so, and how often.  It speaks from several addresses of the loopback network, as a few machines would.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter, defaultdict
from typing import Any

from tests.broker.attack import by_http, by_load, by_mqtt
from tests.broker.attack.attacking import Attack, Target

from nearcast.errors import NearcastError

AT_ONCE = 200
"""Attempts; who is slow to answer is not asked any faster."""

AT_ONCE_IN_A_FLOOD = 32
ENOUGH_FOR_A_FLOOD = 600


def everything(target: Target) -> list[Attack]:
    """In the order in which it is tried first: passwords before so many were wrong that nobody looks at them any more."""
    return [*by_mqtt.attacks(target), *by_load.attacks(target), *by_http.attacks(target)]


class Attacker:
    def __init__(self, target: Target) -> None:
        self._target = target
        self.answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.through: Counter[str] = Counter()
        self.unanswered: Counter[str] = Counter()
        """Connections that could not be made or broke off where that is no answer."""

        self.broken: list[str] = []
        self.attempts = 0

    async def attempt(self, attack: Attack) -> None:
        try:
            outcome = await attack.run(self._target)
        except (OSError, TimeoutError, EOFError) as error:
            self.unanswered[f"{attack.kind}: {type(error).__name__}"] += 1
        except (ValueError, LookupError, NearcastError) as error:  # an answer that nobody understands
            self.broken.append(f"{attack.kind}: {error!r}")
        else:
            self.answers[attack.kind][outcome.answer] += 1
            self.through[attack.kind] += outcome.through

    async def attack(self, kinds: list[Attack], rate: float, ended: asyncio.Event) -> None:
        """At a rate (a second); 0: as fast as it goes."""
        tasks: set[asyncio.Task[None]] = set()
        order, kinds_asked, told = list(kinds), {each.kind for each in kinds}, False
        begun, number, chosen = time.monotonic(), 0, random.Random(7)
        while not ended.is_set():
            if len(tasks) < (AT_ONCE if rate else AT_ONCE_IN_A_FLOOD):
                task = asyncio.create_task(self.attempt(order[number % len(order)]))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                number += 1
                self.attempts += 1
                if number % len(order) == 0:
                    chosen.shuffle(order)
            elif not rate:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not told:
                told = kinds_asked <= self.answers.keys() and (bool(rate) or self.attempts >= ENOUGH_FOR_A_FLOOD)
                if told:
                    print(self.attempts, flush=True)
            await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()) if rate else 0)
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main() -> None:
    given: dict[str, Any] = json.loads(sys.stdin.readline())
    rate = given.pop("rate")
    target = Target(**given)
    attacker, ended = Attacker(target), asyncio.Event()
    waiting = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    waiting.add_done_callback(lambda _: ended.set())
    kinds = everything(target) if rate else by_load.floods()
    print("attacking", flush=True)
    await attacker.attack(kinds, rate, ended)
    report = {
        "attempts": attacker.attempts,
        "answers": attacker.answers,
        "through": +attacker.through,
        "unanswered": attacker.unanswered,
        "broken": attacker.broken,
    }
    print(f"\n{json.dumps(report)}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
