"""Clients of a federation that note everything they get."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import ParamSpec

from tests.waiting import until

import nearcast
from nearcast import Client

P = ParamSpec("P")


def story(test: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """A test that runs on an event loop of its own."""

    @functools.wraps(test)
    def told(*arguments: P.args, **named: P.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return told


class Person:
    """Takes what is addressed to it, and what it subscribed to."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.got: Counter[str] = Counter()

    async def listen(self, topic: str | None) -> None:
        events = self.client.addressed() if topic is None else self.client.subscribe(topic)
        async with events:
            async for event in events:
                self.got[event.payload.decode()] += 1

    async def until_got(self, *payloads: str) -> None:
        wanted = Counter(payloads)
        try:
            await until(lambda: self.got >= wanted, pause=0.02)
        except TimeoutError:
            raise AssertionError(f"{self.client.client_id} lacks {dict(wanted - self.got)}") from None
        assert max(self.got.values()) == 1, f"{self.client.client_id} got something twice: {self.got}"


@contextlib.asynccontextmanager
async def person(
    url: str,
    name: str,
    *topics: str,
    schemes: bool = False,
    others: tuple[str, ...] = (),
    lat: float | None = None,
    lon: float | None = None,
    **context: object,
) -> AsyncIterator[Person]:
    """Connected, known by its context, and listening."""
    client = nearcast.connect(url, client_id=name, schemes=schemes, others=others, timeout=60)
    async with client:
        if context:
            await client.update(lat=lat, lon=lon, attributes=context)
        somebody = Person(client)
        tasks = [asyncio.create_task(somebody.listen(topic)) for topic in (*topics, None)]
        await until(lambda: client.statistics().subscriptions == len(tasks))
        await client.accept_addressed()  # behind the subscriptions: when it is acknowledged, so are they
        try:
            yield somebody
        finally:
            await client.close()  # first, so that its session keeps what it is subscribed to
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
