"""THYME-DCS, put together: one host's part in it (THYME 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from nearcast.crowdstore.chunks import Assembly, chunk_count, chunk_of
from nearcast.crowdstore.data_centric.anti_entropy import AntiEntropy
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.downloading import Downloading, sources_of
from nearcast.crowdstore.data_centric.entries import EVERYTHING, Item, Kept, Part, Place
from nearcast.crowdstore.data_centric.handing_over import HandingOver
from nearcast.crowdstore.data_centric.joining import Joining
from nearcast.crowdstore.data_centric.keeping import Keeping
from nearcast.crowdstore.data_centric.matching import Matching
from nearcast.crowdstore.data_centric.messages import (
    Answered,
    Copy,
    Digest,
    Entries,
    Fetch,
    Fetched,
    Found,
    Handed,
    Join,
    Lack,
    Lacking,
    Listing,
    Locate,
    Located,
    More,
    Notify,
    Operation,
    Publish,
    Relocated,
    Replicated,
    State,
    Subscribe,
    Sums,
    Unpublish,
    Unsubscribe,
)
from nearcast.crowdstore.data_centric.operations import Operations
from nearcast.crowdstore.data_centric.parameters import Settings
from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.interface import Destination, Passenger
from nearcast.crowdstore.geographic.presence import Presence
from nearcast.crowdstore.geographic.router import CellRouter
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import (
    CrowdSubscription,
    Metadata,
    ObjectKey,
    Publication,
    SubscriptionKey,
)
from nearcast.crowdstore.storage import Done, Failure, Outcome, Storage
from nearcast.model.time import Instant
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable

KNOWN: Final = 4_096
"""Objects that this host was told of, and knows where to get."""

ASSEMBLING: Final = 32
"""Objects of the cell that are coming in."""


@dataclass(frozen=True, slots=True)
class DataCentricStatistics:
    cell: Cell | None
    joined: bool
    entries: int
    """What this host keeps for its cell."""

    under_way: int
    repeated: int
    """Operations that were asked for again."""

    notifications: int
    """That this host sent, for its cell."""

    undelivered: int
    waiting: int
    sent_again: int
    served: int
    differences: int
    handed: int
    router: Any


class DataCentricStorage(Storage, Passenger):
    def __init__(self, nucleus: Nucleus, grid: CellGrid, settings: Settings) -> None:
        self._nucleus: Final = nucleus
        self._settings: Final = settings
        self.desk: Final = Desk(nucleus, grid, settings.memory)
        presence = Presence(beacon=settings.beacon, settle=settings.settle)
        self.desk.router = CellRouter(nucleus.host, nucleus.link.interface, grid, self, presence)
        self._operations: Final = Operations(self.desk, settings.timeout, settings.tries)
        self._matching: Final = Matching(self.desk, settings.patience)
        self._keeping: Final = Keeping(self.desk, self._matching, settings.batch, self._acts, self._copy)
        self._downloading: Final = Downloading(self.desk, settings.timeout, self._operations.number)
        self._anti_entropy: Final = AntiEntropy(self.desk, self._keeping.absorb)
        self._handing_over: Final = HandingOver(self.desk, self._operations)
        self.joining: Final = Joining(
            self.desk, settings.listen, settings.tries, self._keeping.absorb, self._became_member
        )
        self._random: Final = nucleus.host.random("crowdstore keys")
        self._active: Final[dict[ObjectKey, Cell]] = {}
        """Where this host's own publications were made."""

        self._parts: Final[dict[SubscriptionKey, list[Part]]] = {}
        """Of this host's own subscriptions, as they were sent (5.4.5)."""

        self._further: Final[dict[tuple[SubscriptionKey, int, Cell], tuple[Instant, ObjectKey]]] = {}
        """Up to where the past has been told, where there is more."""

        self._known: Final[dict[ObjectKey, Item]] = {}
        self._passive: Final[dict[ObjectKey, None]] = {}
        """Copies that this host has for itself, and that are in replication lists."""

        self._locating: Final[dict[int, tuple[Metadata, Done]]] = {}
        self._assembling: Final[dict[ObjectKey, Assembly]] = {}
        self._copying: Final[dict[ObjectKey, None]] = {}
        self._ticking: Cancellable | None = None

    # Mechanism

    def start_mechanism(self) -> None:
        self.desk.router.start()
        period = self._settings.period
        first = period * (0.5 + self.desk.host.random("crowdstore ticks").random())
        self._ticking = self.desk.host.timers.every(period, self._tick, first=first)

    def stop_mechanism(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None
        self.joining.stop()
        self._operations.stop()
        self._downloading.stop()
        self._handing_over.stop()
        self._locating.clear()
        self.desk.router.stop()

    def bootstrap(self) -> None:
        """What is in the nucleus becomes known as soon as this host is a member of a cell (``_became_member``)."""
        for publication in self._nucleus.published.values():
            self.publish(publication, _heedless)
        for subscription in self._nucleus.subscriptions:
            self.subscribe(subscription, _heedless)

    # Storage

    def publish(self, publication: Publication, done: Done) -> None:
        metadata, desk = publication.metadata, self.desk
        here = desk.here
        self._active[metadata.key] = here
        item = Item(metadata, *here, (Place(desk.now(), desk.router.address, *here),))
        number = self._operations.number()
        self._operations.begin(number, [(self._homes(metadata.tags), Publish(number, item))], done)
        if desk.router.cell is not None:
            self._keeping.take(Kept(metadata))
            for chunk in range(chunk_count(metadata.size)):
                desk.tell(Copy(metadata, chunk, chunk_of(publication.content, chunk)))

    def unpublish(self, metadata: Metadata, done: Done) -> None:
        number = self._operations.number()
        cells = self._homes(metadata.tags)
        cells[self._active.pop(metadata.key, self.desk.here)] = None
        self._operations.begin(number, [(cells, Unpublish(number, metadata.key, self.desk.now()))], done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        here, frame = self.desk.here, subscription.frame
        parts = [
            Part(
                subscription.key, index, self.desk.router.address,
                self._random.choice(sorted(each.present)) if each.present else EVERYTHING,
                tuple(sorted(each.present)), tuple(sorted(each.absent)), frame.since, frame.until, *here, self.desk.now(),
            )
            for index, each in enumerate(subscription.formula.conjunctions)
        ]  # fmt: skip
        self._parts[subscription.key] = parts
        left = [len(parts)]
        failures: list[Outcome] = []
        for part in parts:
            number = self._operations.number()
            ended = partial(_one_ended, left, failures, done)
            self._operations.begin(number, [(self._cells_of(part), Subscribe(number, part))], ended)

    def more(self, subscription: SubscriptionKey) -> None:
        for part in self._parts.get(subscription, ()):
            for cell in self._cells_of(part):
                after = self._further.pop((subscription, part.number, cell), None)
                if after is not None:
                    number = self._operations.number()
                    self._operations.begin(number, [([cell], More(number, part, after))])

    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        number = self._operations.number()
        parts = self._parts.pop(subscription.key, [])
        cells = dict.fromkeys(cell for part in parts for cell in self._cells_of(part))
        for known in [each for each in self._further if each[0] == subscription.key]:
            del self._further[known]
        self._operations.begin(number, [(cells, Unsubscribe(number, subscription.key, self.desk.now()))], done)

    def download(self, metadata: Metadata, done: Done) -> None:
        item = self._known.get(metadata.key)
        if item is not None and item.metadata == metadata:
            self._fetch(item, done)
            return
        # The application has it from elsewhere: those who keep its metadata know where it is.
        number = self._operations.number()
        self._locating[number] = metadata, done
        home = self.desk.grid.cell_of(metadata.tags[0])
        self._operations.begin(number, [([home], Locate(number, metadata.key))], partial(self._not_located, number))

    def statistics(self) -> DataCentricStatistics:
        desk, matching = self.desk, self._matching
        return DataCentricStatistics(
            desk.router.cell, self.joining.complete, len(desk.state), len(self._operations), self._operations.repeated,
            matching.sent, matching.undelivered, matching.waiting, matching.sent_again, self._downloading.served,
            self._anti_entropy.differences, self._handing_over.handed, desk.router.statistics(),
        )  # fmt: skip

    # Passenger

    def arrived(self, source: Address, origin: Cell, destination: Destination, payload: bytes) -> None:
        message = self.desk.read(source, payload)
        if message is None:
            return
        if isinstance(message, Operation):
            if self.desk.router.cell is not None and destination.node is None:
                self._keeping.receive(source, origin, destination.cell, message)
                if isinstance(message, Unpublish):
                    self._let_go(message.key)
        elif isinstance(message, Fetch):
            self._serve(destination, message)
        elif destination.node is None:
            self._told(source, message)
        else:
            self._receive(source, message)

    def undeliverable(self, destination: Destination, payload: bytes) -> None:
        message = self.desk.read(self.desk.router.address, payload)
        if destination.node is None:
            return
        if isinstance(message, Notify):
            self._matching.undeliverable(destination.node, message)
        elif isinstance(message, Fetch):
            self._downloading.lacking(message.operation, destination)

    def settled(self, cell: Cell) -> None:
        del cell
        self.joining.begin()

    def unsettled(self, cell: Cell) -> None:
        last = self.joining.complete and not self.desk.router.members()
        kept = self.desk.state.all_kept()
        self.joining.stop()
        if last and self._settings.hand_over:
            self._handing_over.leave(cell)
            for metadata in kept:  # the last copies
                if metadata.key in self._nucleus.held:
                    self._passive[metadata.key] = None
        for metadata in kept:
            if metadata.key not in self._passive:
                self._nucleus.held.pop(metadata.key, None)
        self.desk.state.clear()
        self._matching.forget()
        self._assembling.clear()

    def populated(self, cell: Cell) -> None:
        if self._settings.hand_over and self._acts():
            self._handing_over.filled(cell)

    # As a member

    def _acts(self) -> bool:
        return self.joining.complete and self.desk.router.leads

    def _became_member(self) -> None:
        """In a new cell: tell where this host's subscriptions and copies are now (5.2.3, 5.4.4)."""
        desk, cell = self.desk, self.desk.router.cell
        if cell is None:
            return
        cells = dict.fromkeys(each for parts in self._parts.values() for part in parts for each in self._cells_of(part))
        held = [found.metadata.tags for key in self._passive if (found := self._nucleus.held.get(key)) is not None]
        for tags in (*(each.metadata.tags for each in self._nucleus.published.values()), *held):
            cells.update(self._homes(tags))
        if cells:
            number = self._operations.number()
            message = Relocated(number, desk.router.address, *cell, desk.now())
            self._operations.begin(number, [(cells, message)])

    def _tick(self) -> None:
        self.desk.state.prune(self.desk.now())
        self._matching.tidy()
        if self._acts():
            if self._settings.anti_entropy:
                self._anti_entropy.tick()
            if self._settings.hand_over:
                self._handing_over.tidy()

    def _told(self, source: Address, message: Message) -> None:
        """To all members of the cell, by one of them."""
        if isinstance(message, Copy):
            self._assemble(message)
        elif isinstance(message, Digest):
            if self._settings.anti_entropy and self.joining.complete:
                self._anti_entropy.receive(source, message)
        elif isinstance(message, Handed):
            home = Cell(message.column, message.row)
            if home in self.desk.grid:
                self._handing_over.drop(home)

    def _receive(self, source: Address, message: Message) -> None:
        """To this host alone."""
        if isinstance(message, Answered):
            self._operations.answered(message.operation, Cell(message.column, message.row))
        elif isinstance(message, Notify):
            self._know(message.item)
            for key in message.subscriptions:
                if key.owner == self._nucleus.name:
                    self._nucleus.notify(key, message.item.metadata)
        elif isinstance(message, Found):
            self._found(message)
        elif isinstance(message, Fetched):
            self._downloading.fetched(message)
        elif isinstance(message, Lacking):
            self._downloading.lacking(message.operation)
        elif isinstance(message, Located):
            self._located(message)
        elif self.desk.router.cell is None:
            return
        elif isinstance(message, Join):
            self.joining.asked(source)
        elif isinstance(message, State):
            self.joining.told(message)
        elif isinstance(message, Sums | Listing | Lack | Entries):
            self._anti_entropy.receive(source, message)

    def _serve(self, destination: Destination, message: Fetch) -> None:
        router = self.desk.router
        if destination.node is None and not router.leads:
            return
        others = [each for each in router.members() if each != message.node]
        member = self._random.choice(others) if others and destination.node is None else None
        self._downloading.serve(message, member)

    # Copies

    def _assemble(self, message: Copy) -> None:
        metadata = message.metadata
        if self._nucleus.content_of(metadata.key) is not None or not 0 <= metadata.size < 1 << 32:
            return
        found = self._assembling.get(metadata.key)
        if found is None or found.metadata != metadata:
            found = self._assembling[metadata.key] = Assembly(metadata)
            if len(self._assembling) > ASSEMBLING:
                del self._assembling[next(iter(self._assembling))]
        if found.add(message.chunk, message.data) and found.complete:
            del self._assembling[metadata.key]
            content = found.content()
            if content is not None and self._keeping.take(Kept(metadata)) and self.desk.state.kept(metadata.key):
                self._nucleus.held[metadata.key] = Publication(metadata, content)

    def _copy(self, metadata: Metadata) -> None:
        """All members should have it, but this one has not heard (all of) it."""
        members, cell = self.desk.router.members(), self.desk.router.cell
        if members and cell is not None and metadata.key not in self._copying:
            self._copying[metadata.key] = None
            sources = [Destination(cell, member) for member in members[: self._settings.tries]]
            self._downloading.begin(metadata, sources, partial(self._copied, metadata))

    def _copied(self, metadata: Metadata, content: bytes | None, _failure: Failure | None) -> None:
        self._copying.pop(metadata.key, None)
        if content is not None and self.desk.state.kept(metadata.key):
            self._nucleus.held[metadata.key] = Publication(metadata, content)

    def _let_go(self, key: ObjectKey) -> None:
        """An object was withdrawn: active copies go, passive ones stay (5.3)."""
        if key not in self._passive:
            self._nucleus.held.pop(key, None)

    # Answers

    def _know(self, item: Item) -> None:
        places = (item.active, *(place.cell for place in item.replicas))
        if all(Cell(*place) in self.desk.grid for place in places):
            self._known[item.metadata.key] = item
            if len(self._known) > KNOWN:
                del self._known[next(iter(self._known))]

    def _found(self, message: Found) -> None:
        cell = Cell(message.column, message.row)
        for item in message.items:
            self._know(item)
            self._nucleus.notify(message.subscription, item.metadata)
        key = message.subscription, message.number, cell
        if message.items and message.total > len(message.items) and self._nucleus.subscription(message.subscription):
            last = message.items[-1].metadata
            self._further[key] = last.published, last.key
        self._operations.answered(message.operation, cell)

    def _located(self, message: Located) -> None:
        metadata, done = self._locating.pop(message.operation, (None, None))
        if metadata is None or done is None:
            return
        self._operations.answered(message.operation, self.desk.grid.cell_of(metadata.tags[0]))
        if message.item is None or message.item.metadata != metadata:
            done(Outcome(Failure.NOT_FOUND))
            return
        self._know(message.item)
        self._fetch(self._known.get(metadata.key, message.item), done)

    def _not_located(self, number: int, outcome: Outcome) -> None:
        waiting = self._locating.pop(number, None)
        if waiting is not None:
            waiting[1](outcome)

    def _fetch(self, item: Item, done: Done) -> None:
        sources = sources_of(item, self.desk, self._settings.tries)
        self._downloading.begin(item.metadata, sources, partial(self._got, item.metadata, done))

    def _got(self, metadata: Metadata, done: Done, content: bytes | None, failure: Failure | None) -> None:
        if content is not None:
            desk = self.desk
            self._nucleus.held[metadata.key] = Publication(metadata, content)
            self._passive[metadata.key] = None
            number = self._operations.number()
            copy = Replicated(number, metadata.key, desk.router.address, *desk.here, desk.now())
            self._operations.begin(number, [(self._homes(metadata.tags), copy)])
        done(Outcome(failure, content))

    def _homes(self, tags: tuple[str, ...]) -> dict[Cell, None]:
        return dict.fromkeys(map(self.desk.grid.cell_of, tags))

    def _cells_of(self, part: Part) -> dict[Cell, None]:
        return dict.fromkeys(self.desk.grid) if part.tag == EVERYTHING else self._homes((part.tag,))


def _one_ended(left: list[int], failures: list[Outcome], done: Done, outcome: Outcome) -> None:
    """Of the conjunctions of a subscription: it is done when all are."""
    left[0] -= 1
    if not outcome.ok:
        failures.append(outcome)
    if not left[0]:
        done(failures[0] if failures else outcome)


def _heedless(_outcome: Outcome) -> None:
    """Nobody asked for it."""
