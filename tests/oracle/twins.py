"""Two matchers and a history that are told the same, and asked the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import numpy as np

from nearcast.errors import InvalidContext, UnknownName
from nearcast.matching import EventBatch, Matcher, Texts
from nearcast.model.delivery import Delivery, delivery
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS, Instant, instant

START: Final = 1_767_225_600 * MICROSECONDS


class Twins:
    """``single`` matches one event after the other, ``batched`` several at once; ``history`` is the oracle."""

    def __init__(self) -> None:
        self.single = Matcher()
        self.batched = Matcher()
        self.history = History()
        self.now: Instant = START
        self.known: set[str] = set()
        self._gone: set[str] = set()
        self._published = 0

    def run(self, script: list[tuple[Any, ...]]) -> None:
        for name, *arguments in script:
            getattr(self, name)(*arguments)

    # Reports

    def begin(self, client: str, place: Point, subscription: Subscription) -> None:
        self.move(client, place)
        self.subscribe(client, subscription)

    def move(self, client: str, place: Point) -> None:
        self.history.moved(client, self._report(client), place)
        for matcher in (self.single, self.batched):
            matcher.move(client, place.lat, place.lon)

    def move_many(self, steps: list[tuple[str, Point]]) -> None:
        steps = [(client, place) for client, place in steps if client in self.known]
        for client, place in steps:
            self.history.moved(client, self._report(client), place)
        for matcher in (self.single, self.batched):
            numbers = matcher.numbers(client for client, _ in steps)
            matcher.move_many(numbers, [place.lat for _, place in steps], [place.lon for _, place in steps])

    def forget_position(self, client: str) -> None:
        if client in self.known:
            self.history.moved(client, self._report(client), None)
            for matcher in (self.single, self.batched):
                matcher.forget_position(client)

    def register(self, client: str, context: str, attributes: dict[str, Any]) -> None:
        self.history.registered(client, self._report(client), context, attributes)
        for matcher in (self.single, self.batched):
            matcher.register_context(client, context, attributes)

    def deregister(self, client: str, context: str) -> None:
        if client in self.known:
            refused = _refuses(lambda: self.history.deregistered(client, self._report(client), context))
            for matcher in (self.single, self.batched):
                assert _refuses(lambda matcher=matcher: matcher.deregister_context(client, context)) == refused

    def accept_addressed(self, client: str, accepts: bool) -> None:
        self.history.accepts_addressed(client, self._report(client), accepts)
        for matcher in (self.single, self.batched):
            matcher.accept_addressed(client, accepts)

    def subscribe(self, client: str, subscription: Subscription) -> None:
        self.history.subscribed(client, self._report(client), subscription)
        for matcher in (self.single, self.batched):
            matcher.subscribe(client, subscription)

    def subscribe_many(self, clients: list[str], subscription: Subscription) -> None:
        clients = [client for client in clients if client in self.known]
        refused = any(held.id == subscription.id for client in clients for held in self.single.subscriptions(client))
        for matcher in (self.single, self.batched):
            numbers = matcher.numbers(clients)
            try:
                matcher.subscribe_many(numbers, subscription)
                assert not refused
            except InvalidContext:
                assert refused
        if not refused:
            for client in clients:
                self.history.subscribed(client, self._report(client), subscription)

    def unsubscribe(self, client: str, subscription_id: str) -> None:
        if client in self.known:
            refused = _refuses(lambda: self.history.unsubscribed(client, self._report(client), subscription_id))
            for matcher in (self.single, self.batched):
                assert _refuses(lambda matcher=matcher: matcher.unsubscribe(client, subscription_id)) == refused

    def remove_client(self, client: str) -> None:
        if client in self.known:
            self.history.disconnected(client, self._report(client))
            self.known.discard(client)
            self._gone.add(client)
            for matcher in (self.single, self.batched):
                matcher.remove_client(client)

    def _report(self, client: str) -> Instant:
        self.now += MICROSECONDS // 2
        if client in self._gone:
            self.history.connected(client, self.now)
            self._gone.discard(client)
        self.known.add(client)
        return self.now

    # Events

    def publish(self, descriptions: list[dict[str, Any]], form: str) -> None:
        events = [self._event(description) for description in descriptions]
        for event in events:
            self.history.published(event)
        columns = as_columns(events) if form == "columns" else None
        matches = self.batched.match_batch(events if columns is None else columns)
        assert len(matches) == len(events)
        for i, event in enumerate(events):
            expected = self.expected(event)
            receivers = self.single.match(event)
            told = f"{event!r}\nsingle"
            assert sorted(receivers) == sorted(expected), told
            assert {copy.client: copy for copy in receivers.deliveries()} == expected, told
            assert sorted(matches[i]) == sorted(expected), f"{event!r}\nbatch of {len(events)}"
            assert {copy.client: copy for copy in matches.deliveries(i)} == expected, f"{event!r}\nbatch"
            for client in self.known:
                explanation = self.single.explain(event, client)
                assert explanation.holds == (client in expected), f"{event!r}\n{explanation}"
                assert explanation.holds == all(part.holds for part in explanation.parts), str(explanation)

    def expected(self, event: Event) -> dict[str, Delivery]:
        copies = (delivery(self.history, event, client, event.published) for client in self.history.clients())
        return {copy.client: copy for copy in copies if copy is not None}

    def _event(self, description: dict[str, Any]) -> Event:
        self.now += MICROSECONDS
        self._published += 1
        return Event(id=f"e{self._published}", published=self.now, **description)


def _refuses(action: Any) -> bool:
    try:
        action()
    except UnknownName:
        return True
    return False


def as_columns(events: list[Event]) -> EventBatch | None:
    """The events as columns, or ``None`` if they say what columns cannot hold."""
    batch = EventBatch.of(events)
    columns: dict[str, Any] = {}
    for name in {name for event in events for name in event.attributes}:
        column = _column([event.attributes.get(name) for event in events])
        if column is None:
            return None
        columns[name] = column
    if any(event.tags for event in events):
        return None
    return EventBatch(
        published=batch.published,
        lat=batch.lat,
        lon=batch.lon,
        topics=batch.topics,
        topic=batch.topic,
        attributes=columns,
        publishers=batch.publishers,
        reaches=batch.reaches,
        addressing=batch.addressing,
    )


def _column(values: list[Any]) -> Any:
    types = {type(value) for value in values if value is not None}
    if types == {str}:
        texts = sorted({value for value in values if value is not None})
        codes = [-1 if value is None else texts.index(value) for value in values]
        return Texts(np.array(codes, np.int32), tuple(texts))
    if types == {datetime}:
        return np.array(
            [np.datetime64("NaT") if value is None else np.datetime64(instant(value), "us") for value in values],
            "datetime64[us]",
        )
    if types == {int} and None not in values:
        return np.array(values, np.int64)
    if types == {bool} and None not in values:
        return np.array(values, np.bool_)
    if types and types <= {int, float} and all(value is None or abs(value) < 2**53 for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return None
