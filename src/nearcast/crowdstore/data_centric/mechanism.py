"""THYME-DCS, put together: one host's part in it (THYME 5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from nearcast.crowdstore.data_centric.announcing import Announcing
from nearcast.crowdstore.data_centric.anti_entropy import AntiEntropy
from nearcast.crowdstore.data_centric.copies import Copies
from nearcast.crowdstore.data_centric.desk import Desk
from nearcast.crowdstore.data_centric.downloading import Downloading
from nearcast.crowdstore.data_centric.entries import Gone, Kept
from nearcast.crowdstore.data_centric.handing_over import HandingOver
from nearcast.crowdstore.data_centric.joining import Joining
from nearcast.crowdstore.data_centric.keeping import Keeping
from nearcast.crowdstore.data_centric.matching import Matching
from nearcast.crowdstore.data_centric.messages import (
    Answered,
    Arrived,
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
    Located,
    Notify,
    Operation,
    Replicated,
    State,
    Sums,
)
from nearcast.crowdstore.data_centric.operations import Operations
from nearcast.crowdstore.data_centric.parameters import Settings
from nearcast.crowdstore.data_centric.requests import Requests
from nearcast.crowdstore.data_centric.retrieving import Retrieving
from nearcast.crowdstore.data_centric.statistics import DataCentricStatistics
from nearcast.crowdstore.data_centric.telling import Telling
from nearcast.crowdstore.geographic.grid import Cell, CellGrid
from nearcast.crowdstore.geographic.interface import Destination, Passenger
from nearcast.crowdstore.geographic.presence import Presence
from nearcast.crowdstore.geographic.router import CellRouter
from nearcast.crowdstore.nucleus import Nucleus
from nearcast.crowdstore.objects import CrowdSubscription, Metadata, ObjectKey, Publication, SubscriptionKey
from nearcast.crowdstore.storage import DONE, Done, Storage
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Address, Cancellable


class DataCentricStorage(Storage, Passenger):
    """Its parts, who gets which message, and what happens when this host joins and leaves a cell."""

    def __init__(self, nucleus: Nucleus, grid: CellGrid, settings: Settings) -> None:
        self._nucleus: Final = nucleus
        self._settings: Final = settings
        desk = self.desk = Desk(nucleus, grid, settings.memory)
        presence = Presence(beacon=settings.beacon, settle=settings.settle, skip=settings.skip)
        desk.router = CellRouter(nucleus.host, nucleus.link.interface, grid, self, presence)
        self._operations: Final = Operations(desk, settings.timeout, settings.tries)
        self._downloading: Final = Downloading(desk, settings.timeout, self._operations.number)
        self._copies: Final = Copies(desk, self._downloading, settings.tries, self._find)
        self._requests: Final = Requests(desk, self._operations)
        self._announcing: Final = Announcing(desk, settings.gather)
        self._retrieving: Final = Retrieving(
            desk, self._operations, self._downloading, self._copies, self._announcing, settings.tries
        )
        self._matching: Final = Matching(desk, settings.patience)
        self._keeping: Final = Keeping(
            desk,
            self._matching,
            settings.batch,
            self._acts,
            self._copies.lacks,
            self._copies.withdrawn,
            self._withdrawn,
        )
        self._anti_entropy: Final = AntiEntropy(desk, self._keeping.absorb)
        self._handing_over: Final = HandingOver(
            desk, self._operations, 1.5 * settings.beacon, 1.25 * settings.listen * (settings.tries + 1)
        )
        self.joining: Final = Joining(
            desk, settings.listen, settings.tries, self._keeping.absorb, self._is_informed, self._became_member
        )
        self._telling: Final = Telling(nucleus, self, lasting=settings.hand_over)
        self._timers: Final[list[Cancellable]] = []

    # Mechanism.  A predecessor has the port until it was stopped: so it is opened afterwards.

    def bootstrap(self) -> None:
        """What is in the nucleus becomes known as soon as this host is a member of a cell (``_became_member``)."""
        self.desk.router.start()
        settings, timers = self._settings, self.desk.host.timers
        first = settings.period * (0.5 + self.desk.host.random("crowdstore ticks").random())
        self._timers.append(timers.every(settings.period, self._tick, first=first))
        self._timers.append(timers.after(settings.timeout * settings.tries, self._telling.wait_no_longer))

    def tell_again(self) -> None:
        self._telling.again()

    def stop_mechanism(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self.joining.stop()
        self._telling.stop()
        self._operations.stop()
        self._downloading.stop()
        self._copies.stop()
        self._handing_over.stop()
        self._retrieving.stop()
        self._announcing.stop()
        self.desk.router.stop()

    # Storage

    def publish(self, publication: Publication, done: Done) -> None:
        self._telling.when_member(partial(self._publish, publication, done))

    def _publish(self, publication: Publication, done: Done) -> None:
        key, cell = publication.key, self.desk.router.cell
        if key not in self._nucleus.published:  # withdrawn while it waited
            done(DONE)
            return
        self._requests.publish(publication.metadata, self._telling.noting(key, done))
        if cell is not None and cell == self._requests.active(key) and not self.desk.state.kept(key):
            self._keeping.take(Kept(publication.metadata))
            self._copies.spread(publication)

    def unpublish(self, metadata: Metadata, done: Done) -> None:
        self._telling.forget(metadata.key)
        self._requests.unpublish(metadata, done)

    def subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        noting = self._telling.noting(subscription.key, done)
        if self.desk.router.place is not None:
            self._requests.subscribe(subscription, noting)
        else:  # nobody could answer
            self._telling.when_member(partial(self._subscribe, subscription, noting))

    def _subscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        if self._nucleus.subscription(subscription.key) is None:  # ended while it waited
            done(DONE)
        else:
            self._requests.subscribe(subscription, done)

    def more(self, subscription: SubscriptionKey) -> None:
        self._requests.more(subscription)

    def unsubscribe(self, subscription: CrowdSubscription, done: Done) -> None:
        self._telling.forget(subscription.key)
        self._requests.unsubscribe(subscription, done)

    def download(self, metadata: Metadata, done: Done) -> None:
        self._retrieving.download(metadata, done)

    def statistics(self) -> DataCentricStatistics:
        desk, matching = self.desk, self._matching
        return DataCentricStatistics(
            desk.router.cell, self.joining.complete, len(desk.state), len(self._operations), self._operations.repeated,
            matching.sent, matching.undelivered, matching.waiting, matching.sent_again, self._downloading.served,
            self._anti_entropy.differences, self._handing_over.handed, desk.router.statistics(),
        )  # fmt: skip

    # Passenger: who gets which message

    def arrived(self, source: Address, origin: Cell, destination: Destination, payload: bytes) -> None:
        message = self.desk.read(source, payload)
        if message is None:
            return
        if isinstance(message, Operation):
            if self.desk.router.cell is not None and destination.node is None:
                self._operate(source, origin, destination.cell, message)
        elif isinstance(message, Fetch):
            self._downloading.asked(destination, message)
        elif destination.node is None:
            self._told(source, message)
        else:
            self._receive(source, message)

    def _operate(self, source: Address, origin: Cell, home: Cell, message: Operation) -> None:
        if source == self.desk.router.address:
            self._handing_over.came_back(message.operation)
        elif isinstance(message, Arrived) and self._settings.hand_over and self._acts():
            self._handing_over.tell_first(origin)
        self._keeping.receive(source, origin, home, message)

    def undeliverable(self, destination: Destination, payload: bytes) -> None:
        message = self.desk.read(self.desk.router.address, payload)
        if isinstance(message, Notify):
            self._matching.undeliverable(destination, message)
        elif isinstance(message, Fetch):
            self._downloading.undeliverable(message.operation, destination)

    def _told(self, source: Address, message: Message) -> None:
        """To all members of the cell, by one of them."""
        if isinstance(message, Copy):
            # From the first chunk on, all members should have it: whoever misses another one knows what it lacks.
            if self._keeping.take(Kept(message.metadata)) and self.desk.state.kept(message.metadata.key):
                publication = self._copies.told(message)
                if publication is not None:
                    self._copies.hold(publication)
        elif isinstance(message, Replicated):
            self._keeping.replicated(source, message)
        elif isinstance(message, Digest):
            if self._settings.anti_entropy and self.joining.complete:
                self._anti_entropy.receive(source, message)
        elif isinstance(message, Handed):
            home = Cell(message.column, message.row)
            if home in self.desk.grid:
                self._handing_over.drop(home, message.stamps)

    def _receive(self, source: Address, message: Message) -> None:
        """To this host alone."""
        if isinstance(message, Answered):
            self._operations.answered(message.operation, Cell(message.column, message.row))
        elif isinstance(message, Notify):
            self._retrieving.know(message.item)
            for key in message.subscriptions:
                if key.owner == self._nucleus.name:
                    self._nucleus.notify(key, message.item.metadata)
        elif isinstance(message, Found):
            for item in message.items:
                self._retrieving.know(item)
                self._nucleus.notify(message.subscription, item.metadata)
            self._requests.found(message)
        elif isinstance(message, Fetched):
            self._downloading.fetched(message, source)
        elif isinstance(message, Lacking):
            self._downloading.lacking(message.operation, source)
        elif isinstance(message, Located):
            self._retrieving.located(message)
        elif self.desk.router.cell is not None:
            self._among_members(source, message)

    def _among_members(self, source: Address, message: Message) -> None:
        if isinstance(message, Join):
            self.joining.asked(source)
        elif isinstance(message, State):
            self.joining.told(source, message)
        elif isinstance(message, Sums | Listing | Lack | Entries):
            self._anti_entropy.receive(source, message)

    # As a member

    def settled(self, cell: Cell) -> None:
        del cell
        self.joining.begin()

    def unsettled(self, cell: Cell) -> None:
        left = partial(self._left, self._copies.leave())
        if self._settings.hand_over and self.joining.complete:
            self._handing_over.leave(cell, left)
        else:
            left(False)
        self.joining.stop()
        self.desk.state.clear()
        self._matching.forget()

    def _left(self, keys: list[ObjectKey], last: bool) -> None:
        self._copies.left(keys, last)
        if self.joining.complete:
            self._tell_copies()

    def _tell_copies(self) -> None:
        for metadata in self._copies.alone():
            self._announcing.tell(metadata)

    def populated(self, cell: Cell) -> None:
        del cell
        if self._settings.hand_over and self._acts():
            self._handing_over.tidy()

    def member_joined(self, member: Address) -> None:
        self._handing_over.member(member)

    def member_left(self, member: Address) -> None:
        self._handing_over.member_gone(member)

    def _withdrawn(self, cell: Cell, gone: Gone) -> None:
        self._handing_over.tell(cell, gone)

    def _find(self, metadata: Metadata, found: Callable[[bytes | None], None]) -> None:
        self._retrieving.find(metadata, lambda _item, content, _failure: found(content))

    def _acts(self) -> bool:
        return self.joining.complete and self.desk.router.leads

    def _is_informed(self) -> bool:
        return self.joining.complete and self._handing_over.informed

    def _became_member(self, informed: bool) -> None:
        cell = self.desk.router.cell
        if cell is not None:
            self._handing_over.settled(informed=informed)
            if self._settings.hand_over and self._acts():
                self._handing_over.inquire()
            self._requests.relocated(cell, self._copies.tags())
            self._tell_copies()
            self._telling.became_member()

    def _tick(self) -> None:
        self.desk.state.prune(self.desk.now())
        self._matching.tidy()
        if self.joining.complete:
            self._copies.mend()
        if self._acts():
            if self._settings.anti_entropy:
                self._anti_entropy.tick()
            if self._settings.hand_over:
                self._handing_over.tick()
