"""The client for programs without an event loop: the same words, without ``await``.

A thread of its own runs the loop, so that the connection is kept up while the program does something else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from nearcast.client.attributes import Place
from nearcast.client.client import Client, ClientStatistics, connect
from nearcast.client.events import Events
from nearcast.client.inbox import StreamStatistics
from nearcast.errors import ConnectionFailed
from nearcast.model.area import Area
from nearcast.model.event import Event
from nearcast.model.geometry import Point

Answer = TypeVar("Answer")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="nearcast client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for it here; an interruption here ends it there."""
        if not self._thread.is_alive():
            work.close()
            raise ConnectionFailed("this client has been closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise ConnectionFailed("this client has been closed") from None
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        if not self._thread.is_alive():
            return
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


@dataclass(slots=True, eq=False)
class SyncEvents(Iterator[Event]):
    """The events of one subscription, to be read with ``for``; as ``Events``, but it is to be closed: by ``with``, or ``close``."""

    _loop: _Loop
    _events: Events

    def __enter__(self) -> Self:
        self._loop.run(self._events.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        event = self._loop.run(self._take())
        if event is None:
            raise StopIteration
        return event

    async def _take(self) -> Event | None:
        return await anext(self._events, None)

    def next(self, timeout: float) -> Event:
        """The next event, or ``TimedOut`` after so many seconds without one."""
        return self._loop.run(self._events.next(timeout))

    def close(self) -> None:
        self._loop.run(self._events.close())

    def more(self) -> bool:
        return self._loop.run(self._events.more())

    def statistics(self) -> StreamStatistics:
        return self._events.statistics()


class SyncClient:
    """As ``Client``, for programs without an event loop; every method does what that of ``Client`` does."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client
        self._loop: Final = _Loop()

    def __enter__(self) -> Self:
        try:
            self._loop.run(self._client.__aenter__())
        except BaseException:
            self._loop.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._loop.run(self._client.close())
        self._loop.stop()

    @property
    def client_id(self) -> str:
        return self._client.client_id

    @property
    def position(self) -> Point | None:
        return self._client.position

    def go_to(self, url: str) -> None:
        self._loop.run(self._client.go_to(url))

    def statistics(self) -> ClientStatistics:
        return self._client.statistics()

    def update(self, **options: Any) -> None:
        self._loop.run(self._client.update(**options))

    def forget_position(self) -> None:
        self._loop.run(self._client.forget_position())

    def register(self, name: str, *, attributes: Mapping[str, object] | None = None, **named: object) -> None:
        self._loop.run(self._client.register(name, attributes=attributes, **named))

    def deregister(self, name: str) -> None:
        self._loop.run(self._client.deregister(name))

    def accept_addressed(self, accept: bool = True) -> None:
        self._loop.run(self._client.accept_addressed(accept))

    def publish(self, topic: str, payload: bytes | str = b"", **options: Any) -> str:
        return self._loop.run(self._client.publish(topic, payload, **options))

    def unpublish(self, event: str) -> None:
        self._loop.run(self._client.unpublish(event))

    def announce(self, topic: str, area: Area | float, at: Place | None = None) -> None:
        self._loop.run(self._client.announce(topic, area, at))

    def unannounce(self, topic: str) -> None:
        self._loop.run(self._client.unannounce(topic))

    def subscribe(self, topic: str, **options: Any) -> SyncEvents:
        return SyncEvents(self._loop, self._client.subscribe(topic, **options))

    def addressed(self, limit: int = 1000) -> SyncEvents:
        return SyncEvents(self._loop, self._client.addressed(limit))


def connect_sync(url: str = "mqtt://localhost", **options: Any) -> SyncClient:
    """As ``connect``, for programs without an event loop; to be used with ``with``."""
    return SyncClient(connect(url, **options))
