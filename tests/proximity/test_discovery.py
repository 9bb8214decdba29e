"""Beacons find proximities, in time or too late; colliding identifiers bring nothing that is not wanted (STEAM 4.4, 4.5)."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from tests.proximity.town import WARNING, Town, at

from nearcast.model.area import Circle, Rectangle
from nearcast.model.geometry import Point
from nearcast.proximity.announcement import announcement_of, identifier
from nearcast.proximity.discovery import Discovery
from nearcast.proximity.event_type import EventType
from nearcast.proximity.messages import Beacon
from nearcast.proximity.settings import ProximitySettings

RADIUS, PERIOD = 40.0, 10.0


@pytest.mark.parametrize(("speed", "offset"), [(16.0, 0.0), (10.0, 0.0), (16.0, 30.0), (6.0, 0.0)])
def test_the_chance_to_find_a_proximity_is_the_chord_over_the_way_between_two_beacons(
    speed: float, offset: float
) -> None:
    """A consumer that crosses it at any phase of the beacons (5.1.2); of phases spread evenly, a share must find it."""
    chord = 2 * math.sqrt(RADIUS**2 - offset**2)
    crossings = 40
    names = {f"c{number}": (-150.0, offset) for number in range(crossings)}
    town = Town({"light": (0.0, 0.0), **names}, ProximitySettings(beacon_period=PERIOD))
    town["light"].announce(WARNING, Circle(RADIUS), at(0, 0))
    town.run(0.1)  # what is announced is said at once: nobody is there to hear it
    for number, name in enumerate(names):
        town.listen(name)
        start = -60.0 - speed * PERIOD * (number + 0.5) / crossings
        town.drive(name, (start, offset), (speed, 0.0))
    found: set[str] = set()

    def look() -> None:
        found.update(name for name in names if _relevant(town, name))

    for tenth in range(1, 500):
        town.at(0.1 + tenth / 10, look)
    town.run((60 + speed * PERIOD + RADIUS) / speed + 1)
    expected = min(1.0, chord / (speed * PERIOD))
    assert len(found) / crossings == pytest.approx(expected, abs=1.5 / crossings)


def _relevant(town: Town, name: str) -> bool:
    air = town[name].statistics().air
    assert air is not None
    return bool(air.relevant)


def test_a_shorter_period_finds_sooner() -> None:
    waits = []
    for period in (0.2, 2.0):
        town = Town({"ada": (0, 0), "bob": (300, 0)}, ProximitySettings(beacon_period=period))
        town["ada"].announce(WARNING, Circle(100))
        town.run(5.05)
        town.put("bob", 50, 0)
        since = town.now
        while not _relevant(town, "bob"):
            town.run(0.01)
        waits.append(town.now - since)
    assert waits[0] <= 0.2
    assert 0.5 < waits[1] <= 2.0


def test_a_stationary_proximity_is_dropped_by_who_leaves_it_even_without_a_beacon() -> None:
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town["ada"].announce(WARNING, Circle(100), at(0, 0))
    town.run(0.1)
    town.world.hosts["ada"].fail()
    town.run(5)
    assert _relevant(town, "bob"), "as long as it is inside (4.5.2)"
    town.put("bob", 120, 0)
    town.run(1.1)
    assert not _relevant(town, "bob")


def test_a_moving_proximity_is_judged_by_fresh_beacons_only() -> None:
    """The device goes away from where the producer was; where that is now, only a beacon tells (4.5.2)."""
    town = Town({"ada": (0, 0), "bob": (50, 0)}, settings_of={"ada": ProximitySettings(beacon_period=4.0)})
    town.listen("bob")
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    town.put("ada", 150, 0)
    town.put("bob", 190, 0)  # 190 m from the old place, 40 m from the new one
    town.run(3.0)
    assert _relevant(town, "bob"), "not judged by the place that was heard of"
    event = town["ada"].raise_event(WARNING.subject, {"severity": 1})
    town.run(0.1)
    assert town.got["bob"] == [event]


def test_who_hears_no_more_of_a_moving_producer_forgets_it() -> None:
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    town.world.hosts["ada"].fail()
    town.run(2.5)
    assert _relevant(town, "bob")
    town.run(2.0)
    assert not _relevant(town, "bob")


def test_a_device_that_travels_does_not_remember_everybody_it_met() -> None:
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob")
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.5)
    town["ada"].raise_event(WARNING.subject, {"severity": 1})
    town.run(0.5)
    nucleus = town["bob"]._nucleus
    assert nucleus._numbers
    assert nucleus._bearings._heard
    town.world.hosts["ada"].fail()
    town.run(700.0)
    assert not nucleus._numbers
    assert not nucleus._bearings._heard


# Identifiers


def test_identifiers_have_24_bits_and_depend_on_the_whole_pair_but_not_on_where_it_has_moved() -> None:
    here, there = Point(53.0, -6.0), Point(53.1, -6.0)
    base = announcement_of(WARNING, Circle(100), None, here)
    assert 0 <= identifier(base.description) < 2**24
    others = [
        announcement_of(EventType.of("traffic/other", {"severity": "integer"}), Circle(100), None, here),
        announcement_of(EventType.of("traffic/warning", {"severity": "float"}), Circle(100), None, here),
        announcement_of(WARNING, Circle(101), None, here),
        announcement_of(WARNING, Rectangle(200, 200), None, here),
        announcement_of(WARNING, Circle(100), here, there),
        announcement_of(WARNING, Circle(100), None, there),
    ]
    assert len({identifier(each.description) for each in (base, *others)}) == 7
    assert base.reach(there) == Circle(100, there), "it has moved, and is the same group"


def test_forty_types_of_14_to_18_characters_do_not_collide() -> None:
    """5.3.1."""
    area, here = Circle(200), Point(53.35, -6.28)
    names = [f"traffic/{'event' * 2:.{4 + number % 4}}{number:02}" for number in range(40)]
    assert {len(name) for name in names} <= set(range(14, 19))
    found = {identifier(announcement_of(EventType.of(name), area, here, here).description) for name in names}
    assert len(found) == 40


def test_identifiers_scatter_evenly() -> None:
    """Of 4,000 pairs, about 4000**2 / 2 / 2**24 = 0.5 collide, and every bit is set in about half of them."""
    found = [identifier(f"pair {number}") for number in range(4_000)]
    assert len(set(found)) >= 3_996
    for bit in range(24):
        assert sum(value >> bit & 1 for value in found) == pytest.approx(2_000, abs=200)


@pytest.mark.parametrize("identify", [lambda _text: 7, lambda text: identifier(text) % 2], ids=["one", "two"])
def test_a_collision_brings_events_that_are_thrown_away_and_never_delivered(identify: Callable[[str], int]) -> None:
    """4.4: run-time type check."""
    town = Town({"ada": (0, 0), "eve": (20, 0), "bob": (50, 0)}, ProximitySettings(identify=identify), check_wire=True)
    others = [EventType.of(f"other/{name}", {"severity": "integer"}) for name in "abcd"]
    town.listen("bob")
    town["ada"].announce(WARNING, Circle(100), at(0, 0))  # whose group any producer may raise events in
    for other in others:
        town["eve"].announce(other, Circle(100), at(0, 0))
    town.run(0.1)
    wanted = town["ada"].raise_event(WARNING.subject, {"severity": 1})
    for other in others:
        town["eve"].raise_event(other.subject, {"severity": 1})
    town.run(0.1)
    assert town.got["bob"] == [wanted]
    assert town["bob"].statistics().foreign > 0


def test_an_event_of_the_subject_that_is_none_of_the_type_is_thrown_away() -> None:
    """Two producers do not agree on what a warning is, and their groups collide."""
    town = Town({"ada": (0, 0), "eve": (20, 0), "bob": (50, 0)}, ProximitySettings(identify=lambda _text: 7))
    town.listen("bob")
    odd = EventType.of(WARNING.subject, {"severity": "string"})
    town["ada"].announce(WARNING, Circle(100), at(0, 0))
    town.run(0.1)
    town.disc.cut = lambda _sender, _receiver: True
    town["eve"].announce(odd, Circle(100), at(0, 0))
    town.disc.cut = lambda _sender, _receiver: False
    town["eve"].raise_event(WARNING.subject, {"severity": "high"})
    town.run(0.1)
    assert town.got["bob"] == []
    assert town["bob"].statistics().foreign == 1


def test_a_beacon_that_changes_an_announcement_replaces_it_in_its_group() -> None:
    here = Point(53.0, -6.0)
    discovery = Discovery(identifier, 3.0)
    for radius in (100.0, 200.0):
        announcement = announcement_of(WARNING, Circle(radius), here, here)
        beacon = Beacon("ada", 0, announcement, (here.lat, here.lon), 0, 1.0, relay=False)
        found = discovery.hear(beacon, 0, inside=True)
        assert found is not None
        assert [each.announcement for each in discovery.in_group(found.group)] == [announcement]
    assert len(discovery) == 1
