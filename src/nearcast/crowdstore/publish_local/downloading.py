"""Objects come from their owners, chunk by chunk (THYME 4).

Beyond the paper: where the owner is gone, another mechanism that ran before may have left copies with others.  So who asked in vain
asks everybody, once, and then those who have one; that it is what the owner published, its digest tells.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import Metadata, ObjectKey, Publication
from nearcast.crowdstore.publish_local.flooding import Flooding
from nearcast.crowdstore.publish_local.messages import WINDOW, Absent, Chunk, Get, Have, Search
from nearcast.crowdstore.publish_local.parameters import Parameters
from nearcast.crowdstore.storage import Done, Failure, Outcome
from nearcast.crowdstore.unicast.messages import MOST_HOPS, Packet
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.runtime.ports import Cancellable

MOST_HOLDERS: Final = 8
"""Of whom one who searches remembers that they have it."""

MOST_REPRESENTED: Final = 4_096
"""Objects of which it is remembered who publishes them for their owners."""


class _Download:
    def __init__(self, metadata: Metadata, done: Done) -> None:
        self.assembly: Final = Assembly(metadata)
        self.done: Final = [done]
        self.source: str | None = metadata.key.owner
        """Who is asked; nobody while it is searched for."""

        self.asked: set[int] = set()
        self.failures = 0
        """In a row."""

        self.falsified = 0
        """How often all had come from this source, or through those between, and was something else."""

        self.search_ends: Instant | None = None
        """None: nobody but the owner was asked so far."""

        self.holders: Final[dict[str, bool]] = {}
        """Who said to have it, and whether that one was asked: nobody is asked again, however often it says so."""

        self.timer: Cancellable | None = None


class Downloading:
    """Both sides of it: who asks, and who has it."""

    def __init__(
        self, nucleus: Nucleus, parameters: Parameters, send: Callable[[Packet], None], flooding: Flooding
    ) -> None:
        self._nucleus: Final = nucleus
        self._parameters: Final = parameters
        self._send: Final = send
        self._flooding: Final = flooding
        self._under_way: Final[dict[ObjectKey, _Download]] = {}
        self._represented: Final[dict[ObjectKey, str]] = {}
        """Who told of objects that are somebody else's: the owner may be gone."""

        self.retried = 0
        self.searched = 0

    def begin(self, metadata: Metadata, done: Done) -> None:
        download = self._under_way.get(metadata.key)
        if download is not None and download.assembly.metadata == metadata:
            download.done.append(done)
        elif download is not None and metadata.published <= download.assembly.metadata.published:
            # Its owner has published another object under that name since.
            self._nucleus.host.timers.after(0, lambda: done(Outcome(Failure.NOT_FOUND)))
        elif metadata.key.owner == self._nucleus.name:
            # What is not here any more is nowhere.
            self._nucleus.host.timers.after(0, lambda: done(Outcome(Failure.NOT_FOUND)))
        else:
            if download is not None:
                self._end(download, Outcome(Failure.NOT_FOUND))
            self._under_way[metadata.key] = download = _Download(metadata, done)
            teller = self._represented.get(metadata.key)
            if teller is not None:
                download.source = teller
                download.holders[teller] = True
            self._ask(download)

    def represented(self, key: ObjectKey, teller: str) -> None:
        """It is published by somebody else than its owner."""
        self._represented.pop(key, None)
        self._represented[key] = teller
        if len(self._represented) > MOST_REPRESENTED:
            del self._represented[next(iter(self._represented))]

    def stop(self) -> None:
        for download in self._under_way.values():
            if download.timer is not None:
                download.timer.cancel()
        self._under_way.clear()

    # Who asks

    def _ask(self, download: _Download) -> None:
        assert download.source is not None
        key = download.assembly.metadata.key
        numbers = download.assembly.missing(WINDOW)
        download.asked = set(numbers)
        self._send(Get(self._nucleus.name, download.source, MOST_HOPS, key, numbers))
        self._wait(download, self._parameters.timeout, self._late)

    def _wait(self, download: _Download, seconds: float, then: Callable[[_Download], None]) -> None:
        if download.timer is not None:
            download.timer.cancel()
        download.timer = self._nucleus.host.timers.after(seconds, partial(then, download))

    def _late(self, download: _Download) -> None:
        if download.failures == self._parameters.retries:
            self._elsewhere(download)
            return
        download.failures += 1
        self.retried += 1
        self._ask(download)

    def came(self, chunk: Chunk) -> None:
        download = self._under_way.get(chunk.key)
        if download is None or chunk.source != download.source:
            return
        if not download.assembly.add(chunk.number, chunk.data):
            return
        download.asked.discard(chunk.number)
        if download.assembly.complete:
            content = download.assembly.content()
            if content is not None:
                self._end(download, Outcome(content=content))
            elif download.falsified == self._parameters.retries:
                self._elsewhere(download)
            else:
                # Somebody has falsified it: all of it once more, as if nothing had come.
                download.falsified += 1
                self.retried += 1
                self._ask(download)
            return
        download.failures = 0
        if not download.asked:
            self._ask(download)

    def absent(self, answer: Absent) -> None:
        download = self._under_way.get(answer.key)
        if download is None:
            return
        if answer.source == answer.key.owner:
            self._end(download, Outcome(Failure.NOT_FOUND))
        elif answer.source == download.source:
            self._elsewhere(download)

    # Who asks in vain

    def _elsewhere(self, download: _Download) -> None:
        """The one who was asked is of no use: ask another one who has it; if nobody is known, search, but only once."""
        download.failures = download.falsified = 0
        download.source = next((name for name, asked in download.holders.items() if not asked), None)
        if download.source is not None:
            download.holders[download.source] = True
            self._ask(download)
            return
        now = self._nucleus.host.now()
        if download.search_ends is None:
            download.search_ends = now + round(self._parameters.timeout * MICROSECONDS)
            self._search(download, now)
        if now < download.search_ends:
            # Somebody who has it may still answer, whatever others said.
            self._wait(download, (download.search_ends - now) / MICROSECONDS, self._elsewhere)
        else:
            self._end(download, Outcome(Failure.TIMED_OUT))

    def _search(self, download: _Download, now: Instant) -> None:
        self.searched += 1
        metadata = download.assembly.metadata
        search = Search(self._nucleus.name, metadata.key, metadata.digest, now)
        self._flooding.begin(_name(search), search)

    def found(self, have: Have) -> None:
        download = self._under_way.get(have.key)
        if download is None or download.search_ends is None or len(download.holders) >= MOST_HOLDERS:
            return
        download.holders.setdefault(have.source, False)
        if download.source is None:
            self._elsewhere(download)

    def _end(self, download: _Download, outcome: Outcome) -> None:
        del self._under_way[download.assembly.metadata.key]
        if download.timer is not None:
            download.timer.cancel()
        for done in download.done:
            done(outcome)

    # Who has it

    def _here(self, key: ObjectKey) -> Publication | None:
        return None if key in self._nucleus.withdrawn else self._nucleus.content_of(key)

    def serve(self, get: Get) -> None:
        here, name = self._here(get.key), self._nucleus.name
        if here is None:
            self._send(Absent(name, get.source, MOST_HOPS, get.key))
            return
        for number in dict.fromkeys(get.chunks):
            if number < chunk_count(len(here.content)):
                self._send(Chunk(name, get.source, MOST_HOPS, get.key, number, chunk_of(here.content, number)))

    def sought(self, search: Search) -> None:
        here, key, name = self._here(search.key), search.key, self._nucleus.name
        has = here is not None and here.metadata.digest == search.digest
        # Who has it, or must know, ends the flood: else as many would answer as have it.
        last = has or key.owner == name
        if not self._flooding.heard(_name(search), search, onwards=not last) or search.asker == name:
            return
        if has:
            self._send(Have(name, search.asker, MOST_HOPS, key))
        elif last:
            self._send(Absent(name, search.asker, MOST_HOPS, key))


def _name(search: Search) -> str:
    return f"sought {search.asker} {search.key} {search.made}"
