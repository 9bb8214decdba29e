"""Subscriptions that are not for one's own events, and clients that take what is addressed to them: as delivery is defined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.oracle.strategies import BEGINNING
from tests.pipeline.matching.worlds import Recording

from nearcast.model.area import Circle
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.subscription import Subscription
from nearcast.model.time import MICROSECONDS
from nearcast.pipeline.matching import MatchSettings, Strategy, match

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE, THERE = Point(49.87, 8.65), Point(52.52, 13.40)
CLIENTS = ("ada", "bob", "cyd", "dan")


class Refusals:
    """Rows of the record tables, and the definition beside them."""

    def __init__(self) -> None:
        self.made = Recording()
        self.history = History()
        self.events: list[Event] = []

    def row(self, table: str, second: int, **said: Any) -> None:
        offset = sum(map(len, self.made.tables.values()))
        self.made.tables[table].append({"time": BEGINNING + second * MICROSECONDS, "offset": offset, **said})

    def enters(self, client: str, place: Point) -> None:
        self.row("clients", 0, client=client, state="joined")
        self.row("reports", 0, client=client, lat=place.lat, lon=place.lon)
        self.row("contexts", 0, client=client, name="c", attributes='{"kind": "car"}')
        self.history.moved(client, BEGINNING, place)
        self.history.registered(client, BEGINNING, "c", {"kind": "car"})

    def subscribes(self, second: int, client: str, name: str, *, no_local: bool) -> None:
        held = Subscription("t", area=Circle(500.0), id=name, no_local=no_local)
        self.history.subscribed(client, BEGINNING + second * MICROSECONDS, held)
        said = {"action": "subscribed", "topic_filter": "t", "radius": 500.0, "no_local": 1 if no_local else None}
        self.row("subscriptions", second, client=client, subscription=name, **said)

    def accepts(self, second: int, client: str, accepts: bool) -> None:
        self.history.accepts_addressed(client, BEGINNING + second * MICROSECONDS, accepts)
        self.row("clients", second, client=client, state="accepting" if accepts else "declining")

    def publishes(self, second: int, client: str, place: Point, topic: str = "t", to: str | None = None) -> None:
        at = BEGINNING + second * MICROSECONDS
        event = Event(f"e{len(self.events)}", topic, at, publisher=client, place=place, to=to)
        self.events.append(event)
        said = {"event": event.id, "publisher": client, "topic": topic, "lat": place.lat, "lon": place.lon, "bytes": 0}
        self.row("events", second, **said, addressing=to)

    def expected(self) -> dict[str, set[str]]:
        return {event.id: set(receivers(self.history, event, event.published)) for event in self.events}


@pytest.fixture(scope="module")
def played() -> Refusals:
    world = Refusals()
    for client in CLIENTS:
        world.enters(client, THERE if client == "dan" else HERE)
    world.subscribes(1, "ada", "mine", no_local=True)
    world.subscribes(1, "bob", "all", no_local=False)
    world.accepts(1, "cyd", True)
    world.accepts(1, "dan", True)
    for second in range(2, 10):
        for client in CLIENTS:
            world.publishes(second, client, HERE)
            world.publishes(second, client, THERE, "other", "kind = 'car'")
        if second == 4:
            world.subscribes(second, "ada", "theirs too", no_local=False)
        if second == 6:
            world.accepts(second, "cyd", False)
            world.subscribes(second, "bob", "all", no_local=True)
    expected = world.expected()
    assert {"ada" in expected[event.id] for event in world.events if event.publisher == "ada"} == {True, False}
    assert {"cyd" in expected[event.id] for event in world.events if event.to is not None} == {True, False}
    return world


@pytest.mark.parametrize(
    "way",
    [
        MatchSettings(strategy=Strategy.SLICES, slices=3, parallelism=2),
        MatchSettings(strategy=Strategy.BLOCKS, slices=2, blocks=3, cells=50),
    ],
    ids=["slices", "blocks"],
)
def test_refusals_are_respected(spark: SparkSession, played: Refusals, way: MatchSettings) -> None:
    found = match(**played.made.frames(spark), settings=way).collect()
    assert {row.event: set(row.receivers) for row in found} == played.expected()


def test_tables_from_before_there_was_such_a_column_are_for_everything(spark: SparkSession, played: Refusals) -> None:
    frames = played.made.frames(spark)
    frames["subscriptions"] = frames["subscriptions"].drop("no_local")
    found = match(**frames, settings=MatchSettings(strategy=Strategy.SLICES, slices=1, parallelism=1))
    own = {row.event for row in found.collect() if "ada" in row.receivers}
    assert own == {event.id for event in played.events if event.topic == "t"}
