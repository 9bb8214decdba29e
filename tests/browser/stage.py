"""A real broker with people around it, for a page to look at: they run on an event loop in a thread of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from tests.served import ServedBroker, served
from tests.waiting import PATIENCE

import nearcast

T = TypeVar("T")
PLACE: Final = (49.8728, 8.6512)
STEP: Final = 0.00004
"""Some four metres to the north."""


class Stage:
    """People by name; what they do is done when the call returns."""

    def __init__(self, broker: ServedBroker, user: str | None = None, password: str | None = None) -> None:
        self.broker = broker
        self.people: dict[str, nearcast.Client] = {}
        self._user, self._password = user, password
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open = AsyncExitStack()
        self._walking: list[asyncio.Task[None]] = []
        self._thread.start()

    @property
    def page(self) -> str:
        return f"{self.broker.http}/dashboard/"

    def do(self, action: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(action, self._loop).result(PATIENCE)

    def enter(self, name: str, at: tuple[float, float] = PLACE, wants: str = "", **context: Any) -> None:
        """Somebody comes, says where, and perhaps what it wants to hear of within 300 m."""

        async def come() -> None:
            me = nearcast.connect(
                self.broker.url, client_id=name, clean_start=True, user=self._user, password=self._password
            )
            self.people[name] = await self._open.enter_async_context(me)
            await me.update(lat=at[0], lon=at[1], **context)
            if wants:
                await self._open.enter_async_context(me.subscribe(wants, within=300))

        self.do(come())

    def move(self, name: str, at: tuple[float, float]) -> None:
        self.do(self.people[name].update(lat=at[0], lon=at[1]))

    def walk(self, name: str, at: tuple[float, float] = PLACE) -> None:
        """From now on, and on, to the north."""

        async def on() -> None:
            lat, lon = at
            while True:
                lat += STEP
                await self.people[name].update(lat=lat, lon=lon)
                await asyncio.sleep(0.2)

        async def begin() -> None:
            self._walking.append(asyncio.create_task(on()))

        self.do(begin())

    def publish(self, name: str, topic: str, payload: str = "", **more: Any) -> str:
        """The id of the event."""
        return self.do(self.people[name].publish(topic, payload, **more))

    def leave(self) -> None:
        async def all_leave() -> None:
            for task in self._walking:
                task.cancel()
            await asyncio.gather(*self._walking, return_exceptions=True)
            await self._open.aclose()

        try:
            self.do(all_leave())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE)
            self._loop.close()


@contextmanager
def staged(folder: Path, settings: str = "", user: str | None = None, password: str | None = None) -> Iterator[Stage]:
    folder.mkdir(parents=True, exist_ok=True)
    with served(folder, settings) as broker:
        stage = Stage(broker, user, password)
        try:
            yield stage
        finally:
            stage.leave()
