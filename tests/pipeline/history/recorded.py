"""Random pasts: a history for the definition of delivery, and the same in rows of the record tables.

Many small cases share the tables, since a Spark job costs more than a case; each has its own clients and topics.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
from hypothesis import strategies as st
from tests.oracle.strategies import (
    BEGINNING,
    WORLDS,
    World,
    _event,
    areas_of_interest,
    contexts,
    sometimes,
    subscriptions,
)
from tests.pipeline.examples import examples
from tests.pipeline.frames import plain_table

from nearcast.errors import InvalidPredicate, UnknownName
from nearcast.model.area_text import area_text
from nearcast.model.cql2 import parse
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.predicate import Predicate
from nearcast.model.predicate_text import to_text
from nearcast.model.subscription import Subscription
from nearcast.model.temporal import RELATIONS, WITH_TOLERANCE, TemporalPredicate
from nearcast.model.time import MICROSECONDS, Instant
from nearcast.model.value_text import tree_of_value
from nearcast.pipeline.history.archive import Archive
from nearcast.pipeline.schemas import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENTS: Final = ("ada", "bob", "cyd")
TABLES: Final = ("events", "reports", "contexts", "clients", "subscriptions", "unpublished")
Script = list[tuple[Any, ...]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    client: str
    subscription: Subscription
    at: Instant
    first: int | None


@dataclass
class Case:
    """What happened to a few clients, told twice."""

    number: int
    rows: dict[str, list[Row]]
    history: History = field(default_factory=History)
    now: Instant = BEGINNING
    questions: list[Asked] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)

    def run(self, script: Script) -> None:
        for wait, name, *arguments in script:
            self.now += wait
            getattr(self, name)(*arguments)

    def _row(self, table_name: str, /, **values: Any) -> None:
        offset = sum(map(len, self.rows.values()))
        self.rows[table_name].append({**values, "offset": offset})

    def _client(self, client: str) -> str:
        """Its name in this case; who is new, or comes back after the end of its session, says so first."""
        client = f"{self.number} {client}"
        if client not in self.known or client in self.gone:
            if client in self.gone:
                self.history.connected(client, self.now)
            self.known.add(client)
            self.gone.discard(client)
            self._row("clients", time=self.now, client=client, state="joined")
        return client

    # Presence

    def move(self, client: str, place: Point | None) -> None:
        client = self._client(client)
        self.history.moved(client, self.now, place)
        lat, lon = (None, None) if place is None else (place.lat, place.lon)
        self._row("reports", time=self.now, client=client, lat=lat, lon=lon)

    def register(self, client: str, name: str, attributes: dict[str, Any]) -> None:
        client = self._client(client)
        self.history.registered(client, self.now, name, attributes)
        self._row("contexts", time=self.now, client=client, name=name, attributes=json_of(attributes))

    def deregister(self, client: str, name: str) -> None:
        client = self._client(client)
        try:
            self.history.deregistered(client, self.now, name)
        except UnknownName:
            return
        self._row("contexts", time=self.now, client=client, name=name, attributes=None)

    def leave(self, client: str) -> None:
        """Its session ends with its connection."""
        client = self._client(client)
        self.history.disconnected(client, self.now)
        self.gone.add(client)
        self._row("clients", time=self.now, client=client, state="left")
        self._row("contexts", time=self.now, client=client, name="", attributes=None)

    def accept(self, client: str, accepts: bool) -> None:
        """What is addressed to it, without a subscription."""
        client = self._client(client)
        self.history.accepts_addressed(client, self.now, accepts)
        self._row("clients", time=self.now, client=client, state="accepting" if accepts else "declining")

    # Interest

    def subscribe(self, client: str, subscription: Subscription) -> None:
        client = self._client(client)
        subscription = self._here(subscription)
        self.history.subscribed(client, self.now, subscription)
        self._row(
            "subscriptions",
            time=self.now,
            client=client,
            action="subscribed",
            radius=None,
            **columns_of(subscription),
            no_local=1 if subscription.no_local else None,
        )

    def unsubscribe(self, client: str, name: str) -> None:
        client = self._client(client)
        try:
            self.history.unsubscribed(client, self.now, name)
        except UnknownName:
            return
        gone = Subscription("#", id=name)
        self._row("subscriptions", time=self.now, client=client, action="unsubscribed", radius=None, **columns_of(gone))

    def ask(self, client: str, subscription: Subscription, first: int | None) -> None:
        client = self._client(client)
        subscription = replace(self._here(subscription), id=f"q{len(self.questions)}")
        self.questions.append(Asked(client, subscription, self.now, first))

    def _here(self, subscription: Subscription) -> Subscription:
        """Among the topics of this case."""
        return replace(subscription, topic=f"{self.number}/{subscription.topic}", where=sayable(subscription.where))

    # Events

    def publish(self, said: dict[str, Any], lifetime: int | None, when: tuple[Any, ...] | None) -> None:
        number = len(self.history.events())
        publisher = None if said["publisher"] is None else f"{self.number} {said['publisher']}"
        shaped = {**said, "topic": f"{self.number}/{said['topic']}", "publisher": publisher, "to": sayable(said["to"])}
        temporal = None if when is None else self._temporal(*when)
        event = Event(f"{self.number}.{number}", published=self.now, lifetime=lifetime, when=temporal, **shaped)
        self.history.published(event)
        self._row("events", **event_row(event))

    def _temporal(self, relation: str, a: int | None, b: int | None) -> TemporalPredicate:
        tolerance = MICROSECONDS if relation in WITH_TOLERANCE else 0
        first, last = (None if bound is None else self.now + bound for bound in (a, b))
        return TemporalPredicate(relation, first, last, tolerance)

    def unpublish(self, number: int) -> None:
        events = self.history.events()
        if events:
            event = events[number % len(events)]
            self.history.unpublished(event.id, self.now)
            self._row("unpublished", time=self.now, event=event.id, published_offset=self._offset(event.id))

    def _offset(self, event: str) -> int | None:
        """Of every other one it was not recorded."""
        offset: int = next(row["offset"] for row in self.rows["events"] if row["event"] == event)
        return offset if offset % 2 else None


def sayable(predicate: Predicate | None) -> Predicate | None:
    """As it is read again; none instead of the few for which CQL2 has no text, such as integers that no float holds."""
    try:
        return None if predicate is None else parse(to_text(predicate))
    except InvalidPredicate:
        return None


def json_of(attributes: dict[str, Any]) -> str:
    return msgspec.json.encode({name: tree_of_value(name, value) for name, value in attributes.items()}).decode()


def columns_of(subscription: Subscription) -> Row:
    return {
        "subscription": subscription.id,
        "topic_filter": subscription.topic,
        "condition": None if subscription.where is None else to_text(subscription.where),
        "area": None if subscription.area is None else area_text(subscription.area),
        "frame_since": subscription.frame.since,
        "frame_until": subscription.frame.until,
    }


def event_row(event: Event) -> Row:
    place = event.place
    return {
        "time": event.published,
        "event": event.id,
        "publisher": event.publisher,
        "topic": event.topic,
        "lat": None if place is None else place.lat,
        "lon": None if place is None else place.lon,
        "reach": None,
        "bytes": 0,
        "workload": None,
        "receivers": [],
        "payload": event.id.encode(),
        "tags": sorted(event.tags) or None,
        "attributes": json_of(dict(event.attributes)) if event.attributes else None,
        "reach_area": None if event.reach is None else area_text(event.reach),
        "addressing": None if event.to is None else to_text(event.to),
        "timing": None if event.when is None else str(event.when),
        "lifetime": event.lifetime,
    }


# Scripts

_waits: Final = st.sampled_from([0, 1, 500_000, MICROSECONDS, 5 * MICROSECONDS])
_client: Final = st.sampled_from(CLIENTS)
_bounds: Final = (None, -20, -10, -5, -1, 0, 1, 5, 15)
_COMMON: Final = (
    "overlaps",
    "overlaps",
    "contains",
    "during",
    "ends_in",
    "starts_in",
    "after",
    "before",
    "t_intersects",
)


@st.composite
def _when(draw: st.DrawFn) -> tuple[str, int | None, int | None]:
    relation = draw(st.one_of(st.sampled_from(_COMMON), st.sampled_from(RELATIONS)))
    a, b = draw(st.tuples(st.sampled_from(_bounds), st.sampled_from(_bounds)).filter(_ordered))
    return relation, *(None if bound is None else bound * MICROSECONDS for bound in (a, b))  # type: ignore[return-value]


def _ordered(pair: tuple[int | None, int | None]) -> bool:
    a, b = pair
    return a is None or b is None or a <= b


def scripts(world: World, *, temporal: bool) -> st.SearchStrategy[Script]:
    """Somebody moves and subscribes, and then whatever may happen happens."""
    place = st.sampled_from(world.points)
    lifetime = sometimes(st.sampled_from([1, 2 * MICROSECONDS, 20 * MICROSECONDS]), 4)
    when = _when() if temporal else sometimes(_when(), 8)
    publishing = (st.just("publish"), _event(world), lifetime, when)
    # Half of them take whatever happened around somewhere: else few would find anything.
    wanted = st.one_of(subscriptions(world), st.builds(Subscription, area=areas_of_interest(world)))
    asking = (st.just("ask"), _client, wanted, st.sampled_from([None, 1, 2, 5]))
    moving = (st.just("move"), _client, st.one_of(place, place, place, st.none()))
    often = [publishing, publishing, moving, moving, *([] if temporal else [asking])]
    seldom = [
        (st.just("register"), _client, st.sampled_from(["here", "there"]), contexts(world)),
        (st.just("register"), _client, st.just("here"), contexts(world)),
        (st.just("deregister"), _client, st.just("here")),
        (st.just("subscribe"), _client, subscriptions(world)),
        (st.just("unsubscribe"), _client, st.sampled_from(["", "s"])),
        (st.just("leave"), _client),
        (st.just("accept"), _client, st.sampled_from([True, True, False])),
        (st.just("unpublish"), st.integers(0, 9)),
    ]
    kinds = [st.tuples(_waits, *parts) for parts in (*often, *often, *seldom)]
    start = [st.tuples(_waits, st.just("move"), st.just(client), place) for client in CLIENTS[:2]]
    start += [st.tuples(_waits, st.just("subscribe"), st.just(client), subscriptions(world)) for client in CLIENTS[:2]]
    if not temporal:  # else those who ask would find little
        start += [st.tuples(_waits, *publishing)] * 3
    last = st.tuples(_waits, *publishing) if temporal else st.tuples(_waits, *asking)
    middle = st.lists(st.sampled_from(kinds).flatmap(lambda kind: kind), min_size=6, max_size=16)
    return st.tuples(st.tuples(*start), middle, last).map(lambda parts: [*parts[0], *parts[1], parts[2]])


def refusals() -> Script:
    """Ada takes what is addressed to her without a subscription, until she declines; Bob wants all but what he says himself."""
    place, around_now = Point(49.0, 8.0), ("overlaps", -5 * MICROSECONDS, 5 * MICROSECONDS)
    plain: dict[str, Any] = {
        "topic": "a",
        "attributes": {},
        "tags": frozenset(),
        "place": place,
        "reach": None,
        "to": None,
    }
    said = [
        {**plain, "publisher": "bob"},
        {**plain, "publisher": "ada"},
        {**plain, "publisher": "bob", "to": parse("kind = 'car'")},
    ]
    spoken = [(0, "publish", each, None, when) for each in said for when in (None, around_now)]
    return [
        *((0, "move", client, place) for client in CLIENTS),
        (0, "register", "ada", "here", {"kind": "car"}),
        (0, "accept", "ada", True),
        (0, "subscribe", "bob", Subscription(no_local=True)),
        *((MICROSECONDS, *publishing[1:]) for publishing in spoken),
        (MICROSECONDS, "ask", "bob", Subscription(no_local=True), None),
        (0, "accept", "ada", False),
        *((MICROSECONDS, *publishing[1:]) for publishing in spoken),
        (MICROSECONDS, "ask", "ada", Subscription(), 2),
    ]


def cases(count: int, *, temporal: bool) -> list[Case]:
    """So many random pasts, as Hypothesis finds them, and one with refusals; their rows are in the same tables."""
    rows: dict[str, list[Row]] = {name: [] for name in TABLES}
    random = examples(st.sampled_from(WORLDS).flatmap(lambda world: scripts(world, temporal=temporal)), count)
    found = [Case(number, rows) for number in range(len(random) + 1)]
    for case, script in zip(found, [refusals(), *random], strict=True):
        case.run(script)
    return found


# Frames


def archive_of(spark: SparkSession, case: Case) -> Archive:
    """The tables that this case shares with others."""
    return Archive.of(lambda name: spark.createDataFrame(plain_table(name, case.rows[name]), spark_schema(name)))


QUESTION_FIELDS: Final = (
    *((name, pa.string()) for name in ("client", "subscription", "topic_filter", "condition", "area")),
    *((name, pa.timestamp("us", "UTC")) for name in ("frame_since", "frame_until", "asked")),
    ("first", pa.int32()),
    ("cursor", pa.string()),
    ("no_local", pa.bool_()),
)


def questions_of(asked: list[Asked], cursors: Callable[[Asked], str | None] = lambda _: None) -> pa.Table:
    rows = [
        {
            "client": each.client,
            **columns_of(each.subscription),
            "asked": each.at,
            "first": each.first,
            "cursor": cursors(each),
            "no_local": each.subscription.no_local or None,
        }
        for each in asked
    ]
    return pa.Table.from_pylist(rows, pa.schema(QUESTION_FIELDS))
