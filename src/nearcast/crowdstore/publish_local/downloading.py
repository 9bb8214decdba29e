"""Objects come from their owners, chunk by chunk (THYME 4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import Metadata, ObjectKey
from nearcast.crowdstore.publish_local.messages import WINDOW, Absent, Chunk, Get
from nearcast.crowdstore.publish_local.parameters import Parameters
from nearcast.crowdstore.storage import Done, Failure, Outcome
from nearcast.crowdstore.unicast.messages import MOST_HOPS, Packet
from nearcast.runtime.ports import Cancellable


class _Download:
    def __init__(self, metadata: Metadata, done: Done) -> None:
        self.assembly: Final = Assembly(metadata)
        self.done: Final = [done]
        self.asked: set[int] = set()
        self.failures = 0
        """In a row."""

        self.timer: Cancellable | None = None


class Downloading:
    """Both sides of it: who asks, and who has it."""

    def __init__(self, nucleus: Nucleus, parameters: Parameters, send: Callable[[Packet], None]) -> None:
        self._nucleus: Final = nucleus
        self._parameters: Final = parameters
        self._send: Final = send
        self._under_way: Final[dict[ObjectKey, _Download]] = {}
        self.retried = 0

    def begin(self, metadata: Metadata, done: Done) -> None:
        download = self._under_way.get(metadata.key)
        if download is not None:
            download.done.append(done)
        elif metadata.key.owner == self._nucleus.name:
            # What is not here any more is nowhere.
            self._nucleus.host.timers.after(0, lambda: done(Outcome(Failure.NOT_FOUND)))
        else:
            self._under_way[metadata.key] = download = _Download(metadata, done)
            self._ask(download)

    def stop(self) -> None:
        for download in self._under_way.values():
            if download.timer is not None:
                download.timer.cancel()
        self._under_way.clear()

    # Who asks

    def _ask(self, download: _Download) -> None:
        key = download.assembly.metadata.key
        numbers = download.assembly.missing(WINDOW)
        download.asked = set(numbers)
        self._send(Get(self._nucleus.name, key.owner, MOST_HOPS, key, numbers))
        if download.timer is not None:
            download.timer.cancel()
        wait = self._nucleus.host.timers.after
        download.timer = wait(self._parameters.timeout, partial(self._late, download))

    def _late(self, download: _Download) -> None:
        download.timer = None
        if download.failures == self._parameters.retries:
            self._end(download, Outcome(Failure.TIMED_OUT))
            return
        download.failures += 1
        self.retried += 1
        self._ask(download)

    def came(self, chunk: Chunk) -> None:
        download = self._under_way.get(chunk.key)
        if download is None or chunk.source != chunk.key.owner:
            return
        if not download.assembly.add(chunk.number, chunk.data):
            return
        download.asked.discard(chunk.number)
        if download.assembly.complete:
            content = download.assembly.content()
            if content is not None:
                self._end(download, Outcome(content=content))
                return
            # Somebody has falsified it on its way: all of it once more, as if nothing had come.
            self._late(download)
            return
        download.failures = 0
        if not download.asked:
            self._ask(download)

    def absent(self, answer: Absent) -> None:
        download = self._under_way.get(answer.key)
        if download is not None and answer.source == answer.key.owner:
            self._end(download, Outcome(Failure.NOT_FOUND))

    def _end(self, download: _Download, outcome: Outcome) -> None:
        del self._under_way[download.assembly.metadata.key]
        if download.timer is not None:
            download.timer.cancel()
        for done in download.done:
            done(outcome)

    # Who has it

    def serve(self, get: Get) -> None:
        here, name = self._nucleus.published.get(get.key), self._nucleus.name
        if here is None:
            self._send(Absent(name, get.source, MOST_HOPS, get.key))
            return
        for number in dict.fromkeys(get.chunks):
            if number < chunk_count(len(here.content)):
                self._send(Chunk(name, get.source, MOST_HOPS, get.key, number, chunk_of(here.content, number)))
