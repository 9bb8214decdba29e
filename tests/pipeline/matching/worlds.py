"""Random worlds as record tables, and who receives what in them by the definition of delivery.

Several worlds stand in one set of tables, so that Spark has to be asked only once: clients and topics of each bear its
number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import strategies as st
from tests.oracle.strategies import (
    BEGINNING,
    CLIENTS,
    WORLDS,
    World,
    addressing,
    areas_of_interest,
    attributes,
    contexts,
    fixed_areas,
    frames,
    predicates,
    sometimes,
    topic_filters,
    topics,
)
from tests.pipeline.examples import examples
from tests.pipeline.frames import table_frame

from nearcast.errors import UnknownName
from nearcast.matching.open_cases import asks_direction
from nearcast.model.area_text import area_text
from nearcast.model.cql2 import parse
from nearcast.model.delivery import receivers
from nearcast.model.event import Event
from nearcast.model.history import History
from nearcast.model.predicate import Predicate
from nearcast.model.predicate_text import to_text
from nearcast.model.subscription import Subscription
from nearcast.model.time import EVER, MICROSECONDS
from nearcast.model.value_text import tree_of_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tables = dict[str, list[dict[str, Any]]]


@dataclass
class Recording:
    """Tables in the making, and the definition beside them."""

    tables: Tables = field(
        default_factory=lambda: {name: [] for name in ("events", "reports", "subscriptions", "contexts", "clients")}
    )
    expected: dict[str, set[str]] = field(default_factory=dict)

    def play(self, number: int, script: list[tuple[Any, ...]]) -> None:
        """One world: operations of a name, a second and arguments, in the order of time."""
        prefix, history = f"w{number}", History()
        events: list[Event] = []
        for second, operation, *arguments in script:
            at = BEGINNING + second * MICROSECONDS
            if operation == "publish":
                events.append(self._publish(prefix, f"{prefix} {len(events)}", at, *arguments))
            else:
                self._change(prefix, history, at, operation, *arguments)
        for event in events:  # at one instant, what changes later counts as well
            self.expected[event.id] = {f"{prefix} {client}" for client in receivers(history, event, event.published)}

    def frames(self, spark: SparkSession) -> dict[str, DataFrame]:
        return {name: table_frame(spark, name, rows).drop("receivers") for name, rows in self.tables.items()}

    def _offset(self) -> int:
        return sum(len(rows) for rows in self.tables.values())

    def _change(self, prefix: str, history: History, at: int, operation: str, client: str, *arguments: Any) -> None:
        row = {"time": at, "client": f"{prefix} {client}", "offset": self._offset()}
        if history.client(client).session_ends is not None and operation != "leave":
            history.connected(client, at)
        match operation, *arguments:
            case "move", point:
                history.moved(client, at, point)
                place = {"lat": None, "lon": None} if point is None else {"lat": point.lat, "lon": point.lon}
                self.tables["reports"].append({**row, **place})
            case "subscribe", subscription:
                history.subscribed(client, at, subscription)
                self.tables["subscriptions"].append({**row, **_subscription(prefix, subscription)})
            case "unsubscribe", name:
                if any(
                    held.subscription.id == name and held.unsubscribed is None for held in history.client(client).held
                ):
                    history.unsubscribed(client, at, name)
                ended = {"subscription": name, "action": "unsubscribed", "topic_filter": "#"}
                self.tables["subscriptions"].append({**row, **ended})
            case "register", name, attributes_:
                history.registered(client, at, name, attributes_)
                said = _json(attributes_)
                if at % 2:  # as older lakes have it
                    said = f'{{"type":"Feature","geometry":null,"properties":{said}}}'
                self.tables["contexts"].append({**row, "name": name, "attributes": said})
            case "deregister", name:
                try:
                    history.deregistered(client, at, name)
                except UnknownName:
                    return
                self.tables["contexts"].append({**row, "name": name, "attributes": None})
            case ("leave",):
                if history.client(client).session_ends is None:
                    history.disconnected(client, at)
                self.tables["contexts"].append({**row, "name": "", "attributes": None})

    def _publish(self, prefix: str, name: str, at: int, said: dict[str, Any]) -> Event:
        event = Event(id=name, published=at, **said)
        place, reach = event.place, event.reach
        self.tables["events"].append(
            {
                "time": at,
                "event": name,
                "topic": f"{prefix}/{event.topic}",
                "lat": None if place is None else place.lat,
                "lon": None if place is None else place.lon,
                "bytes": 0,
                "attributes": _json(event.attributes) if event.attributes else None,
                "tags": sorted(event.tags) or None,
                "reach_area": None if reach is None else area_text(reach),
                "addressing": None if event.to is None else to_text(event.to),
                "offset": self._offset(),
            }
        )
        return event


def _subscription(prefix: str, subscription: Subscription) -> dict[str, Any]:
    return {
        "subscription": subscription.id,
        "action": "subscribed",
        "topic_filter": f"{prefix}/{subscription.topic}",
        "area": None if subscription.area is None else area_text(subscription.area),
        "condition": None if subscription.where is None else to_text(subscription.where),
        "frame_since": subscription.frame.since,
        "frame_until": subscription.frame.until,
    }


def _json(attributes_: Any) -> str:
    tree = {name: tree_of_value(name, value) for name, value in attributes_.items()}
    return msgspec.json.encode(tree).decode()


# Strategies


def _can_be_written(predicate: Predicate) -> bool:
    """Not all that can be said in Python has a form in CQL2."""
    try:
        return not asks_direction(predicate) and parse(to_text(predicate)) == predicate
    except ValueError:
        return False


def _subscriptions(world: World) -> st.SearchStrategy[Subscription]:
    return st.builds(
        Subscription,
        topic=topic_filters,
        where=sometimes(predicates(world).filter(_can_be_written), 3),
        area=areas_of_interest(world),
        frame=sometimes(frames, 4, EVER),
        id=st.sampled_from(["", "s", "t"]),
    )


def _operations(world: World) -> st.SearchStrategy[tuple[Any, ...]]:
    client, place = st.sampled_from(CLIENTS), st.sampled_from(world.points)
    context = st.sampled_from(["here", "there"])
    event = st.fixed_dictionaries(
        {
            "topic": topics,
            "attributes": attributes(world),
            "tags": st.sampled_from([frozenset()] * 6 + [frozenset({"x"}), frozenset({"x", "y"})]),
            "place": st.one_of(place, place, place, st.none()),
            "reach": sometimes(st.sampled_from(fixed_areas(world)), 4),
            "to": sometimes(addressing(world).filter(_can_be_written), 4),
        },
    )
    publish = st.tuples(st.just("publish"), event)
    subscribe = st.tuples(st.just("subscribe"), client, _subscriptions(world))
    move = st.tuples(st.just("move"), client, place)
    rare = (
        st.tuples(st.just("move"), client, st.none()),
        st.tuples(st.just("unsubscribe"), client, st.sampled_from(["", "s", "t"])),
        st.tuples(st.just("register"), client, context, contexts(world)),
        st.tuples(st.just("deregister"), client, context),
        st.tuples(st.just("leave"), client),
    )
    return st.sampled_from((publish, publish, publish, subscribe, subscribe, move, move, move, *rare)).flatmap(
        lambda kind: kind
    )


@st.composite
def _script(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """Most clients stand somewhere and want something; then whatever may happen happens, often at one instant."""
    world = draw(st.sampled_from(WORLDS))
    begin = [
        (0, *change)
        for client in CLIENTS[:3]
        for change in (
            ("move", client, draw(st.sampled_from(world.points))),
            ("subscribe", client, draw(_subscriptions(world))),
        )
    ]
    later = draw(st.lists(st.tuples(st.integers(0, 3), _operations(world)), min_size=5, max_size=25))
    second, script = 0, begin
    for pause, operation in later:
        second += pause
        script.append((second, *operation))
    return script


scripts = _script()


def found_worlds(count: int) -> Recording:
    """So many worlds, as Hypothesis finds them, in one set of tables."""
    return recording(examples(scripts, count))


def recording(scripts_: list[list[tuple[Any, ...]]]) -> Recording:
    made = Recording()
    for number, script in enumerate(scripts_):
        made.play(number, script)
    return made
