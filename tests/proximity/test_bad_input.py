"""What cannot be is refused, says what to do, and changes nothing."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from tests.proximity.town import WARNING, Town, at

from nearcast.errors import (
    InvalidArea,
    InvalidEvent,
    InvalidInput,
    InvalidPredicate,
    InvalidSubscription,
    InvalidTopic,
    InvalidValue,
    UnknownName,
)
from nearcast.model.area import Box, Circle
from nearcast.proximity.announcement import Announcement, announcement_of
from nearcast.proximity.event_type import Attributes, EventType
from nearcast.proximity.messages import Beacon, RaisedMessage
from nearcast.proximity.settings import ProximitySettings
from nearcast.proximity.uplink_messages import Position, Registration
from nearcast.runtime.messages import Codec, encoded
from nearcast.runtime.simulation.disc import DiscNetwork
from nearcast.transition.specification import MechanismSpec


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"deadline": 0}, "deadline is a positive number of seconds"),
        ({"validity": -1.0}, "validity is a positive"),
        ({"validity": float("inf")}, "validity is a positive"),
        ({"deadline": True}, "deadline is a positive"),
        ({"priority": 8}, "between 0 and 7"),
        ({"priority": True}, "between 0 and 7"),
        ({"order": "total"}, "none, producer"),
        ({"persistence": -1}, "0 or more"),
    ],
)
def test_attributes_that_cannot_be(attributes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidEvent, match=says):
        EventType.of("news", **attributes)


def test_types_that_cannot_be() -> None:
    with pytest.raises(InvalidTopic):
        EventType.of("news/#")
    with pytest.raises(InvalidValue, match="unknown attribute type 'text'"):
        EventType.of("news", {"a": "text"})
    for name in ("place", "position", "tags", ""):
        with pytest.raises(InvalidEvent, match="cannot be the name of a parameter"):
            EventType.of("news", {name: "string"})
    with pytest.raises(InvalidEvent, match="different names, in order"):
        EventType("news", (("b", "string"), ("a", "string")))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({}, "have the parameters severity; these are none"),
        ({"severity": 1, "more": 2}, "these are more, severity"),
        ({"severity": "high"}, "of type integer, not 'high'"),
        ({"severity": True}, "of type integer, not True"),
        ({"severity": 1.0}, "of type integer"),
    ],
)
def test_events_of_another_structure_are_not_raised(parameters: dict[str, Any], says: str) -> None:
    town = Town({"ada": (0, 0)})
    town["ada"].announce(WARNING, Circle(100))
    with pytest.raises(InvalidEvent, match=says):
        town["ada"].raise_event(WARNING.subject, parameters)
    assert town["ada"].statistics().raised == 0
    assert town["ada"].raise_event(WARNING.subject, {"severity": 1}).id.endswith("/1"), "no number was used up"


def test_a_whole_number_is_a_float_where_one_is_expected() -> None:
    assert EventType.of("news", {"speed": "float"}).checked({"speed": 3}) == {"speed": 3.0}


def test_what_is_not_announced_cannot_be_raised_or_unannounced() -> None:
    town = Town({"ada": (0, 0)})
    town["ada"].announce(WARNING, Circle(100))
    with pytest.raises(
        UnknownName, match=r"'traffic/warnings' is not announced on 'ada'.*traffic/warning.*announce it first"
    ):
        town["ada"].raise_event("traffic/warnings")
    with pytest.raises(UnknownName, match="announce it first"):
        town["ada"].unannounce(EventType.of("other"))


def test_an_absolute_area_takes_no_anchor_and_does_not_move() -> None:
    box = Box(-6.3, 53.3, -6.2, 53.4)
    with pytest.raises(InvalidEvent, match="give no anchor"):
        announcement_of(WARNING, box, at(0, 0), at(0, 0))
    assert not announcement_of(WARNING, box, None, None).moves
    with pytest.raises(InvalidEvent, match="position is not known"):
        announcement_of(WARNING, Circle(100), None, None)
    with pytest.raises(InvalidEvent, match="absolute and cannot move"):
        Announcement(WARNING, '{"box": [-6.3, 53.3, -6.2, 53.4]}', None, moves=True)
    with pytest.raises(InvalidEvent, match="it needs an anchor"):
        Announcement(WARNING, "100", None, moves=False)
    with pytest.raises(InvalidEvent, match="not known where it is"):
        announcement_of(WARNING, Circle(100), None, at(0, 0)).reach(None)


def test_subscriptions_that_cannot_be() -> None:
    town = Town({"ada": (0, 0)})
    handler = town.got["ada"].append
    with pytest.raises(InvalidTopic):
        town["ada"].subscribe("news/+", handler)
    with pytest.raises(InvalidPredicate):
        town["ada"].subscribe("news", handler, "severity >")
    with pytest.raises(InvalidSubscription, match="ContentFilter, CQL2 text or a predicate, not 3"):
        town["ada"].subscribe("news", handler, 3)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="no subscription to 'news'"):
        town["ada"].unsubscribe("news", handler)
    town["ada"].subscribe("news", handler, "a = 1")
    with pytest.raises(InvalidSubscription, match="already"):
        town["ada"].subscribe("news", handler, "a = 1")
    with pytest.raises(UnknownName):
        town["ada"].unsubscribe("news", handler, "a = 2")
    assert town["ada"].statistics().subscriptions == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"beacon_period": 0.0}, "beacon_period must be positive"),
        ({"transmission_range": float("nan")}, "transmission_range must be positive"),
        ({"gossip": 1.2}, "a probability"),
        ({"overlap": -1.0}, "overlap must be 0 or more"),
        ({"mechanism": MechanismSpec("PIGEON")}, "AIR or UPLINK"),
    ],
)
def test_settings_that_cannot_be(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        ProximitySettings(**changes)


def test_a_radio_that_cannot_be() -> None:
    town = Town({"ada": (0, 0)})
    for radius, delay in ((0.0, 1), (-5.0, 1), (float("nan"), 1), (5.0, -1)):
        with pytest.raises(InvalidInput, match="cannot be"):
            DiscNetwork(town.simulation, town.world.motion, radius, delay=delay, interface="other")


def test_what_is_sent_comes_out_of_its_bytes_and_what_cannot_be_does_not() -> None:
    codec: Codec[Any] = Codec(Beacon, RaisedMessage)
    announcement = announcement_of(
        EventType.of("news", {"where": "point"}, deadline=2.5, order="producer"), Circle(100), None, at(0, 0)
    )
    beacon = Beacon("ada", 5, announcement, (53.0, -6.0), 7, 1.0, relay=True)
    assert codec.decoded(encoded(beacon)) == beacon
    for good, bad in (
        (b"\xa3100", b"\xa3-10"),
        (b"point", b"poimt"),
        (b"producer", b"producez"),
        (b"\xcb@\x04", b"\xcb\xc0\x04"),
    ):
        assert good in encoded(beacon)
        with pytest.raises(msgspec.DecodeError):
            codec.decoded(encoded(beacon).replace(good, bad))


def test_hostile_events_harm_nobody() -> None:
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob")
    town["ada"].announce(WARNING, Circle(100), at(0, 0))
    town.run(0.1)
    active: Any = town["bob"]._proxy.active
    group = town["ada"]._nucleus.locals[WARNING.subject].group
    hostile: list[tuple[tuple[float, float] | None, dict[str, Any]]] = [
        ((95.0, 0.0), {"severity": 1}),
        (None, {"severity": {"point": [1]}}),
        (None, {"severity": None}),
    ]
    for number, (place, parameters) in enumerate(hostile):
        message = RaisedMessage(group, "ada", WARNING.subject, number, 0, place, parameters, relay=False)
        active._receive("ada", message)
    assert town.got["bob"] == []
    assert town["bob"].statistics().foreign == 3


def test_beacons_and_reports_from_nowhere_are_refused_where_they_are_read() -> None:
    announcement = announcement_of(WARNING, Circle(100), None, at(0, 0))
    beacon = encoded(Beacon("ada", 5, announcement, (53.0, -6.0), 7, 1.0, relay=True))
    place = encoded(Position(1, (53.0, -6.0)))
    north = encoded(Position(1, (53.0, -6.0)))[-18:-9]
    assert north in beacon
    beyond = b"\xcb" + struct.pack(">d", 153.0)
    for kind, data in ((Beacon, beacon), (Position, place)):
        codec: Codec[Any] = Codec(kind)
        codec.decoded(data)
        with pytest.raises(msgspec.DecodeError, match="latitude"):
            codec.decoded(data.replace(north, beyond))
    with pytest.raises(InvalidArea):
        Registration(1, (), (("news", ("nowhere",)),), None)


def test_defaults_are_the_papers() -> None:
    assert ProximitySettings().transmission_range == 200.0
    assert Attributes() == EventType.of("news").attributes
