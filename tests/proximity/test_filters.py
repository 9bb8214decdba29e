"""Content filters: the model's predicates, what comes nearer, where the consumer is; proximities that consumers define."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.proximity.town import WARNING, Town, at

from nearcast.model.area import Circle
from nearcast.model.content_filter import ContentFilter
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.event_type import EventType
from nearcast.proximity.settings import ProximitySettings
from nearcast.proximity.whereabouts import Bearings, OwnTrack
from nearcast.runtime.ports import Fix

LIGHT = EventType.of("traffic/light", {"approach": "string", "green": "boolean", "at": "point"})


@pytest.mark.parametrize(
    "content",
    [
        ContentFilter([("approach", "=", "north"), ("green", "=", True)]),
        "approach = 'north' AND green = TRUE",
        ContentFilter([("approach", "=", "north"), ("green", "=", True)]).to_predicate(),
    ],
    ids=["terms", "text", "predicate"],
)
def test_terms_and_cql2_are_the_same(content: Any) -> None:
    town = Town({"light": (0, 0), "car": (50, 0)})
    town.listen("car", LIGHT.subject, content)
    town["light"].announce(LIGHT, Circle(100))
    town.run(0.1)
    for approach in ("north", "south"):
        for green in (True, False):
            town["light"].raise_event(LIGHT.subject, {"approach": approach, "green": green, "at": at(0, 0)})
    town.run(0.1)
    assert [(event.attributes["approach"], event.attributes["green"]) for event in town.got["car"]] == [("north", True)]
    assert town["car"].statistics().filtered == 3


def test_one_event_for_several_filters_and_handlers_is_handed_to_each_once() -> None:
    town, calls = Town({"ada": (0, 0), "bob": (50, 0)}), list[str]()

    def told(name: str, event: Event) -> None:
        calls.append(f"{name} {event.attributes['severity']}")

    for name, content in (("any", None), ("high", "severity > 2"), ("low", "severity < 2")):
        town["bob"].subscribe(WARNING.subject, partial(told, name), content)
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    for severity in (1, 3):
        town["ada"].raise_event(WARNING.subject, {"severity": severity})
    town.run(0.1)
    assert calls == ["any 1", "low 1", "any 3", "high 3"]


def test_a_filter_may_ask_where_the_consumer_is() -> None:
    inside = at(0, 50)
    content = f"S_DWITHIN(position, POINT({inside.lon} {inside.lat}), 20)"
    town = Town({"ada": (0, 0), "bob": (0, 60), "eve": (0, 90)})
    for name in ("bob", "eve"):
        town.listen(name, WARNING.subject, content)
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    town["ada"].raise_event(WARNING.subject, {"severity": 1})
    town.run(0.1)
    assert [len(town.got[name]) for name in ("bob", "eve")] == [1, 0]


# Coming nearer


@pytest.mark.parametrize("content", ["distance_decreases()", "distance_decreases(at)"])
def test_a_vehicle_hears_the_light_until_it_passes_it(content: str) -> None:
    """STEAM 5.2: vehicle 2 approaches, vehicle 3 has passed."""
    town = Town({"light": (0, 0), "car": (-100, 0)}, ProximitySettings(beacon_period=0.2))
    town["light"].announce(LIGHT, Circle(40), at(0, 0))
    town.listen("car", LIGHT.subject, content)
    town.drive("car", (-100.0, 0.0), (10.0, 0.0))
    places: dict[str, float] = {}

    def tell() -> None:
        parameters = {"approach": "north", "green": True, "at": at(0, 0)}
        places[town["light"].raise_event(LIGHT.subject, parameters).id] = town.world.motion.at(1)[0]

    for tenth in range(200):
        town.at(tenth / 10 + 0.05, tell)
    town.run(20)
    heard = [places[name] for name in town.ids("car")]
    assert heard == [x for x in places.values() if x in heard]
    assert -40 <= heard[0] < -37
    assert -1.0 < heard[-1] <= 0.0
    assert len(heard) == pytest.approx(39, abs=2)


def test_a_producer_that_comes_nearer_and_goes_away() -> None:
    town = Town({"ambulance": (-90, 0), "car": (0, 0)}, ProximitySettings(beacon_period=0.2))
    town.listen("car", WARNING.subject, "distance_decreases()")
    town.drive("ambulance", (-90.0, 0.0), (20.0, 0.0))
    town["ambulance"].announce(WARNING, Circle(100))
    places: dict[str, float] = {}

    def warn() -> None:
        places[town["ambulance"].raise_event(WARNING.subject, {"severity": 1}).id] = town.world.motion.at(0)[0]

    for tenth in range(90):
        town.at(tenth / 10 + 0.35, warn)
    town.run(10)
    heard = [places[name] for name in town.ids("car")]
    assert heard
    assert max(heard) <= 0.5
    assert len(heard) == sum(x < 0 for x in places.values())


def test_who_drives_behind_at_the_same_speed_does_not_come_nearer() -> None:
    town = Town({"ambulance": (0, 0), "car": (-50, 0), "racer": (-90, 0)}, ProximitySettings(beacon_period=0.2))
    for name, speed in (("ambulance", 20.0), ("car", 20.0), ("racer", 25.0)):
        town.drive(name, town.world.motion.at(town.world.hosts[name].node), (speed, 0.0))
    for name in ("car", "racer"):
        town.listen(name, WARNING.subject, "distance_decreases()")
    town["ambulance"].announce(WARNING, Circle(100))
    for tenth in range(5, 45):
        town.at(tenth / 10 + 0.05, lambda: town["ambulance"].raise_event(WARNING.subject, {"severity": 1}))
    town.run(5)
    # What is left is rounding: a millimetre or so of one second's way.
    assert len(town.got["racer"]) == 40
    assert len(town.got["car"]) < 40


HERE = Point(53.0, -6.0)


def standing(place: Point) -> Fix:
    return Fix(0, place, 0.0, 0.0, None)


def test_without_courses_the_last_time_counts_and_nobody_knows_before_it() -> None:
    bearings, light = Bearings(), Point(53.001, -6.0)
    what = "ada", "light", None
    assert bearings.approaching(what, 0, light, standing(HERE)) is None
    bearings.note(what, 0, light, HERE)
    nearer, farther = Point(53.0005, -6.0), Point(52.9995, -6.0)
    assert bearings.approaching(what, MICROSECONDS, light, standing(nearer)) is True
    assert bearings.approaching(what, MICROSECONDS, light, standing(farther)) is False
    assert bearings.approaching(what, MICROSECONDS, light, standing(HERE)) is False, "as near as before is not nearer"
    assert bearings.approaching(what, 60 * MICROSECONDS, light, standing(nearer)) is None, "that was long ago"
    bearings.forget(MICROSECONDS)
    assert bearings.approaching(what, MICROSECONDS, light, standing(nearer)) is None


def test_a_course_tells_at_once() -> None:
    bearings, light = Bearings(), Point(53.001, -6.0)
    north, south, east = (Fix(0, HERE, 0.0, 10.0, heading) for heading in (0.0, 180.0, 90.0))
    assert bearings.approaching(("ada", "light", None), 0, light, north) is True
    assert bearings.approaching(("ada", "light", None), 0, light, south) is False
    assert bearings.approaching(("ada", "light", None), 0, HERE, east) is False, "here already"


def test_a_track_says_where_one_was() -> None:
    track = OwnTrack()
    assert track.at(0) is None
    track.note(0, HERE)
    assert track.at(5) == HERE
    track.note(10, Point(53.1, -6.0))
    assert track.at(5) == Point(53.05, -6.0)
    assert (track.at(-5), track.at(50)) == (HERE, Point(53.1, -6.0))
    track.note(10, Point(53.2, -6.0))
    assert track.at(10) == Point(53.2, -6.0)
    track.note(20, Point(53.2, 179.9))
    track.note(30, Point(53.2, -179.9))
    assert track.at(25) == Point(53.2, 179.9), "not by way of Greenwich"
    for time in range(40, 10_000, 10):
        track.note(time, HERE)
    assert len(track._times) <= 600
    assert track.at(9_985) == HERE


# Proximities of consumers


def test_a_consumer_may_define_a_larger_proximity_of_its_own() -> None:
    """3.2: a police car needs the light's status from farther away than others."""
    town = Town({"light": (0, 0), "car": (150, 0), "police": (150, 10)})
    town.listen("car", LIGHT.subject)
    town.listen("police", LIGHT.subject, area=Circle(180))
    town["light"].announce(LIGHT, Circle(40), at(0, 0))
    town.run(1.5)
    event = town["light"].raise_event(LIGHT.subject, {"approach": "north", "green": True, "at": at(0, 0)})
    town.run(0.2)
    assert town.got["police"] == [event]
    assert town.got["car"] == []
    town["police"].unsubscribe(LIGHT.subject, town.got["police"].append, area=Circle(180))
    town.run(0.2)
    sent = town.sent("proximity event")
    town["light"].raise_event(LIGHT.subject, {"approach": "north", "green": True, "at": at(0, 0)})
    town.run(0.2)
    assert town.got["police"] == [event]
    assert town.sent("proximity event") == sent + 1, "nobody else wants it any more"


def test_a_consumer_inside_both_proximities_gets_an_event_once_and_by_one_message() -> None:
    town = Town({"light": (0, 0), "police": (30, 0)})
    town.listen("police", WARNING.subject, area=Circle(180))
    town["light"].announce(WARNING, Circle(40), at(0, 0))
    town.run(1.5)
    event = town["light"].raise_event(WARNING.subject, {"severity": 1})
    town.run(0.2)
    assert town.got["police"] == [event]
    assert town.sent("proximity event") == 1


def test_a_consumers_proximity_reaches_over_several_hops_by_whoever_is_inside() -> None:
    names = {"light": (0.0, 0.0), "a": (150.0, 0.0), "b": (300.0, 0.0), "police": (450.0, 0.0)}
    town = Town(names)
    town.listen("police", WARNING.subject, area=Circle(500))
    town["light"].announce(WARNING, Circle(40), at(0, 0))
    town.run(1.5)
    event = town["light"].raise_event(WARNING.subject, {"severity": 1})
    town.run(0.5)
    assert town.got["police"] == [event]
    assert (town.got["a"], town.got["b"]) == ([], [])


def test_a_consumers_proximity_moves_with_it() -> None:
    town = Town({"light": (0, 0), "police": (300, 0)})
    town.listen("police", WARNING.subject, area=Circle(100))
    town["light"].announce(WARNING, Circle(10), at(0, 0))
    town.drive("police", (300.0, 0.0), (-20.0, 0.0))
    places: dict[str, float] = {}

    def tell() -> None:
        places[town["light"].raise_event(WARNING.subject, {"severity": 1}).id] = town.world.motion.at(1)[0]

    for number in range(60):
        town.at(number / 2 + 0.05, tell)
    town.run(31)
    assert set(town.ids("police")) <= {name for name, x in places.items() if abs(x) <= 100}
    assert {name for name, x in places.items() if abs(x) <= 78} <= set(town.ids("police"))


def test_handlers_may_end_their_subscription_while_they_are_called() -> None:
    town, calls = Town({"ada": (0, 0), "bob": (50, 0)}), list[Event]()

    def once(event: Event) -> None:
        calls.append(event)
        town["bob"].unsubscribe(WARNING.subject, once)

    town["bob"].subscribe(WARNING.subject, once)
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    for _ in range(2):
        town["ada"].raise_event(WARNING.subject, {"severity": 1})
    town.run(0.1)
    assert len(calls) == 1
