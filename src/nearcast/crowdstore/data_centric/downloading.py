"""Objects from whoever has a copy, the nearest first (THYME 5.5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.entries import Item
from nearcast.crowdstore.data_centric.messages import Fetch, Fetched, Lacking
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.crowdstore.geographic.interface import Destination
from nearcast.crowdstore.objects import Metadata
from nearcast.crowdstore.storage import Failure
from nearcast.runtime.ports import Address, Cancellable

WINDOW: Final = 8
"""Chunks that are asked for together: so few that they do not fill the queues on their way."""

TURNS: Final = 1_024
"""Downloads of others of which it is remembered who was asked last."""

Got = Callable[[bytes | None, Failure | None], None]


class Download:
    """One object on its way here."""

    def __init__(self, metadata: Metadata, sources: list[Destination], got: Got) -> None:
        self.assembly: Final = Assembly(metadata)
        self.sources: Final = sources
        """Where it may be."""

        self.left = list(sources)
        """Where to ask next; all of them again, whenever something comes."""

        self.got: Final = got
        self.asked: frozenset[int] = frozenset()
        self.at = sources[0]
        self.refused = True
        """Everybody so far has said no, and nobody has kept silent."""

        self.gave = False
        """The one who was asked last has sent something since."""

        self.timer: Cancellable | None = None

    def answers(self, source: Address) -> bool:
        """Whether that one was asked; of a cell, any of its members, or whoever stands in for it, may answer."""
        return self.at.node is None or self.at.node == source


def sources_of(item: Item, desk: Desk, tries: int) -> list[Destination]:
    """The nearest copies, and in the end the cell where all members have it."""
    here, own = desk.here, desk.router.address
    active = Destination(Cell(*item.active))
    places = [active, *(Destination(Cell(*place.cell), place.node) for place in item.replicas if place.node != own)]
    places.sort(key=lambda place: (desk.grid.distance(here, place.cell), place.node or ""))
    chosen = places[:tries]
    if active not in chosen:
        chosen[-1] = active
    return chosen + [active] * (tries - len(chosen))


class Downloading:
    """Those of this host, and what it serves to others."""

    def __init__(self, desk: Desk, timeout: float, number: Callable[[], int]) -> None:
        self._desk: Final = desk
        self._timeout: Final = timeout
        self._number: Final = number
        self._open: Final[dict[int, Download]] = {}
        self._turns: Final[dict[tuple[Address, int], int]] = {}
        """Of downloads of others, lately: how often members of this host's cell were asked."""

        self.served = 0

    def begin(self, metadata: Metadata, sources: list[Destination], got: Got) -> None:
        number = self._number()
        self._open[number] = Download(metadata, sources, got)
        self._next(number)

    def stop(self) -> None:
        for download in self._open.values():
            if download.timer is not None:
                download.timer.cancel()
        self._open.clear()

    def _next(self, number: int) -> None:
        download = self._open[number]
        if not download.left:
            del self._open[number]
            download.got(None, Failure.NOT_FOUND if download.refused else Failure.TIMED_OUT)
            return
        download.at = download.left.pop(0)
        self._ask(number, download)

    def _ask(self, number: int, download: Download) -> None:
        if download.timer is not None:
            download.timer.cancel()
        download.timer = self._desk.host.timers.after(self._timeout, partial(self._silent, number))
        wanted = download.assembly.missing(WINDOW)
        download.gave = False
        download.asked = frozenset(wanted)
        here = self._desk.here
        key = download.assembly.metadata.key
        message = Fetch(number, key, wanted, self._desk.router.address, here.column, here.row)
        self._desk.to_nodes([download.at], message)

    def _silent(self, number: int) -> None:
        download = self._open[number]
        if download.gave:  # of a large object something always gets lost: that is no reason to go elsewhere
            self._ask(number, download)
            return
        download.refused = False
        self._next(number)

    def undeliverable(self, number: int, source: Destination) -> None:
        """What was asked for did not reach the one who was asked."""
        download = self._open.get(number)
        if download is not None and source == download.at:
            self._go_on(number, download)

    def lacking(self, number: int, source: Address) -> None:
        """It does not have it."""
        download = self._open.get(number)
        if download is not None and download.answers(source):
            self._go_on(number, download)

    def _go_on(self, number: int, download: Download) -> None:
        if download.timer is not None:
            download.timer.cancel()
        self._next(number)

    def fetched(self, message: Fetched, source: Address) -> None:
        number, download = message.operation, self._open.get(message.operation)
        if download is None or not download.answers(source):
            return
        if not download.assembly.add(message.chunk, message.data):
            return
        download.gave = True
        download.left = list(download.sources)
        if not download.assembly.complete:
            download.asked -= {message.chunk}
            if not download.asked:
                self._ask(number, download)
            return
        content = download.assembly.content()
        if content is None:  # it is not what was published: somebody else may have it
            download.sources.remove(download.at)
            download.left = list(download.sources)
            self._go_on(number, download)
            return
        if download.timer is not None:
            download.timer.cancel()
        del self._open[number]
        download.got(content, None)

    def asked(self, destination: Destination, message: Fetch) -> None:
        """Of a cell, the acting member answers."""
        router = self._desk.router
        if destination.node is None and not router.leads:
            return
        others = [each for each in router.members() if each != message.node]
        member = others[self._next_turn(message) % len(others)] if others and destination.node is None else None
        self._serve(message, member)

    def _next_turn(self, message: Fetch) -> int:
        """Each time the next one: whoever asks again, because that one does not have it yet, comes to somebody else."""
        key = message.node, message.operation
        turn = self._turns.pop(key, message.operation) + 1
        self._turns[key] = turn
        if len(self._turns) > TURNS:
            del self._turns[next(iter(self._turns))]
        return turn

    def _serve(self, message: Fetch, member: Address | None) -> None:
        """Send what is asked for; whoever does not have it passes that on, once, to another member of its cell, if there is one."""
        desk, to = self._desk, Cell(message.column, message.row)
        if to not in desk.grid:
            return
        found = desk.nucleus.content_of(message.key)
        if found is not None:
            self.served += 1
            for number in message.chunks:
                if number < chunk_count(len(found.content)):
                    desk.to_node(to, message.node, Fetched(message.operation, number, chunk_of(found.content, number)))
        elif member is not None and not message.passed_on:
            passed = Fetch(message.operation, message.key, message.chunks, message.node, *to, passed_on=True)
            desk.to_node(desk.here, member, passed)
        else:
            desk.to_node(to, message.node, Lacking(message.operation))
