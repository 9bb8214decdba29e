"""The matcher: who receives an event now.

It holds the present - clients with their positions and contexts, and their subscriptions - and answers exactly what
``model.delivery`` defines for an event that is published at this moment.  Every change is incremental; a change that is
refused has changed nothing.

The way of an event: the grid (or the clients inside its reach) yields candidates, filters and time frames are judged on
the way (``kernels``); the few cases that only the model can judge are judged by it; then reach and addressing, the
sender's side, are applied (``relevance``); last, a client with several subscriptions is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.errors import HistoryNeeded, InvalidContext, InvalidPosition, InvalidSubscription, UnknownName
from nearcast.matching.approach import ApproachLog
from nearcast.matching.columns import (
    ADDRESSED,
    BORDERS,
    CANDIDATES,
    CELLS,
    OPEN_CASES,
    RESULTS,
    Output,
)
from nearcast.matching.contexts import ContextTable
from nearcast.matching.encoding import Encoder
from nearcast.matching.events import EventBatch, positions_valid
from nearcast.matching.filters import NONE, FilterTable
from nearcast.matching.grid import CELLS_USED, FILTER_BITS, Floats, Int32s, units_of
from nearcast.matching.growing import grown
from nearcast.matching.matches import Matches, Pairs, Receivers, grouped, once
from nearcast.matching.open_cases import Judge, asks_direction
from nearcast.matching.relevance import relevant
from nearcast.matching.runner import KernelRunner
from nearcast.matching.subscribers import SubscriberTable
from nearcast.matching.templates import TemplateTable, row_of
from nearcast.model.event import Event
from nearcast.model.explanation import Explanation, explain
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription

MANY: Final = 8
"""Subscriptions of a client that are looked through one by one; whoever holds more has them in a table."""


@dataclass(frozen=True, slots=True)
class MatcherStatistics:
    """What a matcher holds, and what it has done since it was made."""

    clients: int
    subscriptions: int
    contexts: int
    filters: int
    """Distinct combinations of topic filter, predicate and class of radius."""
    topic_filters: int
    predicates: int
    cells: int
    """Cells of the grid that hold, or held, areas of interest."""
    events: int
    cells_visited: int
    candidates: int
    """Distance tests."""
    border_cases: int
    """Distances too near to a border for single precision."""
    open_cases: int
    """Cases that were left to the model."""
    matches: int
    """Pairs of event and subscription."""


class Matcher:
    """Millions of subscriptions of moving clients."""

    def __init__(self) -> None:
        self._filters = FilterTable()
        self._subscribers = SubscriberTable()
        self._contexts = ContextTable()
        self._templates = TemplateTable()
        self._approach = ApproachLog()
        self._acceptors: dict[int, None] = {}
        self._with_several: set[int] = set()
        self._with_many: dict[int, dict[str, int]] = {}
        """Subscriptions by their ids, of clients that hold many of them: nearly nobody."""
        self._encoder = Encoder(self._filters, self._subscribers.numbers)
        self._kernels = KernelRunner(self._filters, self._subscribers)
        self._seen = np.full(16, -1, np.int32)
        self._events = 0
        self._matches = 0
        self._one_number = np.zeros(1, np.int32)
        self._one_lat = np.zeros(1)
        self._one_lon = np.zeros(1)

    # Clients

    def add_clients(
        self, ids: Sequence[str], lat: npt.ArrayLike | None = None, lon: npt.ArrayLike | None = None
    ) -> Int32s:
        """Add clients that are not known yet, at their positions if given; their numbers serve ``move_many``."""
        if isinstance(ids, str):
            raise InvalidContext(f"ids are a list of texts; for one client write [{ids!r}]")
        if len(set(ids)) != len(ids) or any(client in self._subscribers.numbers for client in ids):
            known = next((c for c in ids if c in self._subscribers.numbers), None)
            raise InvalidContext(
                "a client stands twice in the list" if known is None else f"client {known!r} is known already"
            )
        if (lat is None) != (lon is None):
            raise InvalidPosition("latitudes and longitudes are given together, or neither")
        where = None if lat is None or lon is None else _checked_positions(lat, lon, len(ids))
        numbers = self._subscribers.add_clients(ids)
        if where is not None:
            self._subscribers.move(numbers, *where)
        return numbers

    def __contains__(self, client: object) -> bool:
        """Whether anything is known of that client."""
        return client in self._subscribers.numbers

    def numbers(self, clients: Iterable[str]) -> Int32s:
        """The numbers of known clients."""
        return np.fromiter((self._subscribers.number(client) for client in clients), np.int32)

    def number(self, client: str) -> int | None:
        """The number of a client, if anything is known of it."""
        return self._subscribers.numbers.get(client)

    @property
    def ids(self) -> Sequence[str | None]:
        """The id of every number."""
        return self._subscribers.ids

    @property
    def positions(self) -> tuple[Floats, Floats]:
        """Latitudes and longitudes by number, as they are now (not a number: not known); to look at, not to keep."""
        count, columns = len(self._subscribers.ids), self._subscribers.columns
        return columns.lat[:count], columns.lon[:count]

    def remove_client(self, client: str) -> None:
        """Forget a client with all that it holds."""
        number = self._subscribers.number(client)
        for item in list(self._subscribers.items_of(number)):
            self._remove_item(item)
        self._contexts.forget(number)
        self._approach.forget(number)
        self._acceptors.pop(number, None)
        self._subscribers.remove_client(number)

    def accept_addressed(self, client: str, accepts: bool = True) -> None:
        """Whether the client takes events that are addressed to its context although it never subscribed."""
        number = self._known(client)
        if accepts:
            self._acceptors[number] = None
        else:
            self._acceptors.pop(number, None)

    # Positions and contexts

    def move(self, client: str, lat: float, lon: float) -> None:
        """A position report of one client."""
        try:
            valid = -90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0
        except TypeError:
            valid = False
        if not valid:
            Point(lat, lon)  # says what is wrong
        number = self._subscribers.numbers.get(client)
        if number is None:
            number = self._known(client)
        self._one_number[0], self._one_lat[0], self._one_lon[0] = number, lat, -180.0 if lon == 180.0 else lon
        self._subscribers.move(self._one_number, self._one_lat, self._one_lon)
        if self._approach:
            self._approach.moved(number, self._subscribers.position(number))

    def move_many(self, numbers: Int32s, lat: npt.ArrayLike, lon: npt.ArrayLike) -> None:
        """Position reports of many clients; of several reports for one client the last one counts."""
        numbers = self._checked_numbers(numbers)
        where = _checked_positions(lat, lon, len(numbers))
        self._subscribers.move(numbers, *where)
        if self._approach:
            for number in numbers.tolist():
                self._approach.moved(number, self._subscribers.position(number))

    def move_together(self, clients: Sequence[str], lat: npt.ArrayLike, lon: npt.ArrayLike) -> None:
        """Position reports of many clients, known or not."""
        where = _checked_positions(lat, lon, len(clients))  # before anybody becomes known
        self.move_many(np.array([self._known(client) for client in clients], np.int32), *where)

    def forget_position(self, client: str) -> None:
        """The position of a client is no longer known."""
        number = self._subscribers.number(client)
        self._subscribers.forget_position(number)
        if self._approach:
            self._approach.moved(number, None)

    def register_context(self, client: str, name: str, attributes: Mapping[str, object]) -> None:
        """Register a context of a client, or replace the one of this name."""
        ContextTable().register(0, name, attributes)  # refuse it before the client becomes known
        self._contexts.register(self._known(client), name, attributes)

    def deregister_context(self, client: str, name: str) -> None:
        self._contexts.deregister(self._subscribers.number(client), name)

    # Subscriptions

    def subscribe(self, client: str, subscription: Subscription) -> None:
        """Add a subscription; the client's subscription of the same id is replaced."""
        if not isinstance(subscription, Subscription):
            raise InvalidSubscription(f"a Subscription is needed, not {subscription!r}")
        number = self._known(client)
        self._unsubscribe(number, subscription.id)
        self._subscribe(np.array([number], np.int32), subscription)

    def subscribe_many(self, numbers: Int32s, subscription: Subscription) -> None:
        """The same subscription for many clients, which must not hold one of this id yet."""
        numbers = self._checked_numbers(numbers)
        if not len(numbers):
            return
        ids = self._subscribers.ids
        if len(np.unique(numbers)) != len(numbers):
            raise InvalidContext("a client stands twice in the list")
        for number in numbers[self._subscribers.columns.first[numbers] >= 0].tolist():
            if self._item_of(number, subscription.id) is not None:
                raise InvalidContext(f"client {ids[number]!r} holds subscription {subscription.id!r} already")
        self._subscribe(numbers, subscription)

    def unsubscribe(self, client: str, subscription_id: str = "") -> None:
        number = self._subscribers.number(client)
        if not self._unsubscribe(number, subscription_id):
            raise UnknownName(f"client {client!r} holds no subscription {subscription_id!r}")

    def subscriptions(self, client: str) -> list[Subscription]:
        return [self._subscription(item) for item in self._subscribers.items_of(self._subscribers.number(client))]

    # Matching

    def match(self, event: Event) -> Receivers:
        """The clients that receive an event published now."""
        if event.when is not None:
            raise HistoryNeeded(_ABOUT_TIME.format(event.id))
        if event.reach is not None or event.to is not None or self._approach:
            pairs = self._pairs(EventBatch.of([event]))
            owners, marks = pairs.owners.tolist(), pairs.marks.tolist()
        else:
            out = self._kernels.one(self._encoder.one(event))
            count = int(out.progress[RESULTS])
            owners, marks = out.owners[:count].tolist(), out.marks[:count].tolist()
            if out.progress[OPEN_CASES]:
                _, more_owners, more_items = self._judged(EventBatch.of([event]), out)
                owners += more_owners.tolist()
                marks += more_items.tolist()
        self._events += 1
        self._matches += len(owners)
        clients = list(dict.fromkeys(owners)) if self._may_repeat(event.to is not None) else owners
        return Receivers(clients, owners, marks, self._subscribers.ids, self._asked)

    def match_batch(self, events: EventBatch | Sequence[Event]) -> Matches:
        """The receivers of events that are all published now."""
        batch = events if isinstance(events, EventBatch) else EventBatch.of(events)
        for event in batch.events or ():
            if event.when is not None:
                raise HistoryNeeded(_ABOUT_TIME.format(event.id))
        pairs = self._pairs(batch)
        self._events += len(batch)
        self._matches += len(pairs.owners)
        offsets, clients = pairs.offsets, pairs.owners
        if self._may_repeat(bool(batch.addressing)):
            self._seen = grown(self._seen, len(self._subscribers.ids), -1)
            offsets, clients = np.empty_like(pairs.offsets), np.empty_like(pairs.owners)
            clients = clients[: once(pairs.offsets, pairs.owners, self._seen, offsets, clients)]
        return Matches(offsets, clients, pairs, self._subscribers.ids, self._asked)

    def _may_repeat(self, addressed: bool) -> bool:
        """Whether a client may stand in several pairs of one event: by several subscriptions, or one and being addressed."""
        return bool(self._with_several) or (addressed and bool(self._acceptors))

    def _pairs(self, batch: EventBatch) -> Pairs:
        """All pairs of event and subscription."""
        encoded = self._encoder.many(batch)
        if self._approach:
            self._approach.published(batch)
        everything = np.arange(len(batch), dtype=np.int32)
        reached = np.array(sorted(batch.reaches), np.int32)
        placed = np.setdiff1d(everything, reached) if len(reached) else everything
        out = self._kernels.places(encoded, placed)
        pairs = self._kernels.taken(out, len(placed))
        if not len(reached) and not batch.addressing and not out.progress[OPEN_CASES]:
            return pairs
        found = [(placed[pairs.events()], pairs.owners, pairs.marks), self._judged(batch, out)]
        if len(reached):
            out = self._kernels.reaches(batch, encoded, reached)
            pairs = self._kernels.taken(out, len(reached))
            found += [(reached[pairs.events()], pairs.owners, pairs.marks), self._judged(batch, out)]
        if self._acceptors:
            found += [self._addressees(event) for event in batch.addressing]
        events, owners, marks = (np.concatenate(columns) for columns in zip(*found, strict=True))
        pairs = grouped(len(batch), events, owners, marks)
        if not batch.reaches and not batch.addressing:
            return pairs
        keep = relevant(batch, pairs, self._subscribers, self._contexts)
        return grouped(len(batch), pairs.events()[keep], pairs.owners[keep], pairs.marks[keep])

    def _judged(self, batch: EventBatch, out: Output) -> tuple[Int32s, Int32s, Int32s]:
        """The open cases that turn out well, as events, owners and items."""
        count = int(out.progress[OPEN_CASES])
        events, items = out.open_event[:count].copy(), out.open_item[:count].copy()
        if count:
            judge = Judge(batch, self._subscribers, self._templates, self._approach)
            accepted = judge.accepted(events, items, out.open_what[:count])
            events, items = events[accepted], items[accepted]
        return events, self._subscribers.columns.client[items], items

    def _addressees(self, event: int) -> tuple[Int32s, Int32s, Int32s]:
        """Those who accept what is addressed to them without a subscription."""
        owners = np.array(list(self._acceptors), np.int32)
        return np.full_like(owners, event), owners, np.full_like(owners, ADDRESSED)

    # Looking inside

    def explain(self, event: Event, client: str) -> Explanation:
        """Why the event is, or is not, delivered to the client now, term by term."""
        if event.when is not None:
            raise HistoryNeeded(_ABOUT_TIME.format(event.id))
        return explain(self._history_of(client, event), event, client, event.published)

    @property
    def distance_tests(self) -> int:
        """How many there were so far; ``statistics().candidates``, for who asks with every event."""
        return int(self._kernels.totals[CANDIDATES])

    def statistics(self) -> MatcherStatistics:
        totals = self._kernels.totals
        return MatcherStatistics(
            clients=self._subscribers.clients,
            subscriptions=self._subscribers.subscriptions,
            contexts=len(self._contexts),
            filters=len(self._filters),
            topic_filters=self._filters.topic_filters,
            predicates=len(self._filters.predicates),
            cells=int(self._subscribers.grid.ledger[CELLS_USED]),
            events=self._events,
            cells_visited=int(totals[CELLS]),
            candidates=int(totals[CANDIDATES]),
            border_cases=int(totals[BORDERS]),
            open_cases=int(totals[OPEN_CASES]),
            matches=self._matches,
        )

    def _history_of(self, client: str, event: Event) -> History:
        """The present of one client as a history in which the event comes last."""
        number, now = self._subscribers.number(client), event.published
        history = History()
        before = None
        if self._approach and event.publisher is not None:
            before = self._approach.before(event.publisher, event.topic, event.id)
        history.connected(client, now - 4)
        younger = []
        for item in reversed(list(self._subscribers.items_of(number))):
            if before is not None and not self._approach.saw(item, before):
                younger.append(item)  # it has not seen the previous event
            else:
                history.subscribed(client, now - 3, self._subscription(item))
        if before is not None:
            if number in self._approach.clients():
                history.moved(client, now - 2, self._approach.position_at(number, before))
            history.published(before.as_event(event, now - 2))
        for item in younger:
            history.subscribed(client, now - 1, self._subscription(item))
        history.moved(client, now, self._subscribers.position(number))
        for name, attributes in self._contexts.contexts(number).items():
            history.registered(client, now, name, attributes)
        history.accepts_addressed(client, now, number in self._acceptors)
        return history

    # Inside

    def _checked_numbers(self, numbers: npt.ArrayLike) -> Int32s:
        given = np.asarray(numbers)
        if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
            raise InvalidContext("clients are named by a list of the numbers that add_clients gave them")
        if not self._subscribers.are_known(given):  # before anything is cut to 32 bits
            raise UnknownName("a number belongs to no client")
        return np.ascontiguousarray(given, np.int32)

    def _known(self, client: str) -> int:
        """The number of a client; it becomes known by its first report."""
        number = self._subscribers.numbers.get(client)
        return int(self._subscribers.add_clients([client])[0]) if number is None else number

    def _subscribe(self, numbers: Int32s, subscription: Subscription) -> None:
        area = subscription.area
        units = NONE if area is None else int(units_of(area.bounding_radius()))
        filter_number = self._filters.add(subscription.topic, subscription.where, units, len(numbers))
        row = row_of(subscription, self._templates.add(subscription, len(numbers)), filter_number)
        items = self._subscribers.add_items(numbers, row, self._filters.arrays, filter_number)
        next_of_client = self._subscribers.columns.next_of_client
        self._with_several.update(numbers[next_of_client[items] >= 0].tolist())
        if self._with_many:
            for item, number in zip(items.tolist(), numbers.tolist(), strict=True):
                if number in self._with_many:
                    self._with_many[number][subscription.id] = item
        if asks_direction(subscription.where):
            for item, number in zip(items.tolist(), numbers.tolist(), strict=True):
                self._approach.watch(item, number, self._subscribers.position(number))

    def _unsubscribe(self, number: int, subscription_id: str) -> bool:
        item = self._item_of(number, subscription_id)
        if item is None:
            return False
        self._remove_item(item)
        return True

    def _remove_item(self, item: int) -> None:
        client = int(self._subscribers.columns.client[item])
        filter_number = int(self._subscribers.columns.tag[item]) & FILTER_BITS
        self._approach.unwatch(item)
        many = self._with_many.get(client)
        if many is not None:
            del many[self._id_of(item)]
            if not many:
                del self._with_many[client]
        self._subscribers.remove_item(item, self._filters.arrays, filter_number)
        self._filters.remove(filter_number)
        self._templates.remove(int(self._subscribers.template[item]))
        first = self._subscribers.columns.first[client]
        if first < 0 or self._subscribers.columns.next_of_client[first] < 0:
            self._with_several.discard(client)

    def _item_of(self, number: int, subscription_id: str) -> int | None:
        many = self._with_many.get(number)
        if many is None:
            for place, item in enumerate(self._subscribers.items_of(number)):
                if self._id_of(item) == subscription_id:
                    return item
                if place >= MANY:
                    many = {self._id_of(each): each for each in self._subscribers.items_of(number)}
                    self._with_many[number] = many
                    break
            else:
                return None
        return many.get(subscription_id)

    def _id_of(self, item: int) -> str:
        return self._templates[int(self._subscribers.template[item])].id

    def _subscription(self, item: int) -> Subscription:
        columns = self._subscribers.columns
        template = self._templates[int(self._subscribers.template[item])]
        return template.subscription(float(columns.radius[item]), int(columns.since[item]), int(columns.until[item]))

    def _asked(self, owner: int, mark: int) -> list[tuple[str, int]]:
        """Ids and qualities of service of the subscriptions that a mark stands for: see ``columns.Output``."""
        if mark == ADDRESSED:
            return []
        tags = self._subscribers.columns.tag
        items = [mark] if mark >= 0 else [item for item in self._subscribers.items_of(owner) if tags[item] == ~mark]
        templates = [self._templates[int(self._subscribers.template[item])] for item in items]
        return [(template.id, template.qos) for template in templates]


_ABOUT_TIME: Final = (
    "event {!r} speaks of other times than the present (its temporal predicate); "
    "who was or will be there is for model.delivery, the archive or the broker to say"
)


def _checked_positions(lat: npt.ArrayLike, lon: npt.ArrayLike, count: int) -> tuple[Floats, Floats]:
    lats, lons = np.ascontiguousarray(lat, np.float64), np.ascontiguousarray(lon, np.float64)
    if lats.shape != (count,) or lons.shape != (count,):
        raise InvalidPosition(f"{count} clients need as many latitudes ({lats.shape}) and longitudes ({lons.shape})")
    if np.isnan(lats).any() or not positions_valid(lats, lons):
        raise InvalidPosition("a latitude is outside [-90, 90] or a longitude outside [-180, 180] degrees")
    return lats, np.where(lons == 180.0, -180.0, lons)
