"""Who is inside gets it once, who is outside never; leaving and entering need no new subscription (STEAM 3)."""

from __future__ import annotations

import pytest
from tests.proximity.town import WARNING, Town, at

from nearcast.model.area import Circle, Outline, Polygon, Rectangle
from nearcast.proximity.event_type import EventType
from nearcast.proximity.settings import ProximitySettings

NEWS = EventType.of("city/news", {"text": "string"})


def test_who_is_inside_and_subscribed_gets_an_event_once() -> None:
    town = Town({"ada": (0, 0), "bob": (90, 0), "eve": (110, 0), "ian": (50, 0)})
    for name in ("bob", "eve"):
        town.listen(name)
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.5)
    event = town["ada"].raise_event("traffic/warning", {"severity": 3})
    town.run(0.5)
    assert town.got["bob"] == [event]
    assert (town.got["eve"], town.got["ian"]) == ([], [])
    assert town["eve"].statistics().air.relevant == 0  # type: ignore[union-attr]
    assert town["ian"].statistics().air.ignored == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "area",
    [
        Circle(150),
        Rectangle(300, 40),
        Outline(((-150, -20), (150, -20), (150, 20), (-150, 20), (-150, -20))),
        Polygon(
            (
                (
                    tuple(
                        (at(x, y).lon, at(x, y).lat)
                        for x, y in ((-150, -20), (150, -20), (150, 20), (-150, 20), (-150, -20))
                    ),
                ),
            )
        ),
    ],
    ids=lambda area: type(area).__name__,
)
def test_proximities_have_any_shape(area: Circle | Rectangle | Outline | Polygon) -> None:
    town = Town({"ada": (0, 0), "far": (149, 0), "farther": (151, 0)})
    for name in ("far", "farther"):
        town.listen(name)
    town["ada"].announce(WARNING, area)
    town.run(0.5)
    town["ada"].raise_event("traffic/warning", {"severity": 3})
    town.run(0.5)
    assert [len(town.got[name]) for name in ("far", "farther")] == [1, 0]


def test_entering_starts_delivery_and_leaving_stops_it_without_resubscribing() -> None:
    town = Town({"light": (0, 0), "car": (-150, 0)})
    town.listen("car")
    town["light"].announce(WARNING, Circle(100), at(0, 0))
    town.drive("car", (-150.0, 0.0), (10.0, 0.0))
    raised: dict[str, float] = {}

    def tell() -> None:
        raised[town["light"].raise_event("traffic/warning", {"severity": 1}).id] = town.world.motion.at(1)[0]

    for tenth in range(5, 350, 5):
        town.at(tenth / 10 + 0.01, tell)
    town.run(36)
    # A beacon a second: at 10 m/s the proximity is found within 10 m of its border.
    assert {name for name, x in raised.items() if -89 <= x <= 100} <= set(town.ids("car"))
    assert set(town.ids("car")) <= {name for name, x in raised.items() if -100 <= x <= 100}
    assert len(town.ids("car")) > 30


def test_a_proximity_moves_with_its_producer() -> None:
    town = Town({"ambulance": (-300, 0), "near": (0, 0), "far": (0, 150)})
    for name in ("near", "far"):
        town.listen(name)
    town.drive("ambulance", (-300.0, 0.0), (20.0, 0.0))
    town["ambulance"].announce(WARNING, Circle(100))
    places: dict[str, float] = {}

    def warn() -> None:
        places[town["ambulance"].raise_event("traffic/warning", {"severity": 1}).id] = town.world.motion.at(0)[0]

    for number in range(1, 60):
        town.at(number / 2 + 0.01, warn)
    town.run(31)
    heard = town.ids("near")
    assert set(heard) <= {name for name, x in places.items() if abs(x) <= 100}
    assert {name for name, x in places.items() if -79 <= x <= 99} <= set(heard)
    assert town.got["far"] == []
    assert town["near"].statistics().air.relevant == 0, "left behind, and forgotten"  # type: ignore[union-attr]


def test_nested_and_overlapping_proximities_are_kept_apart() -> None:
    town = Town({"stage": (0, 0), "bar": (60, 0), "a": (0, 30), "b": (35, 0), "c": (100, 0), "d": (0, 90)})
    for name in "abcd":
        town.listen(name)
        town.listen(name, "city/news")
    town["stage"].announce(WARNING, Circle(120))
    town["stage"].announce(NEWS, Circle(40))
    town["bar"].announce(NEWS, Rectangle(100, 20))
    town.run(0.5)
    wide = town["stage"].raise_event("traffic/warning", {"severity": 1})
    narrow = town["stage"].raise_event("city/news", {"text": "now"})
    other = town["bar"].raise_event("city/news", {"text": "happy hour"})
    town.run(0.5)
    assert town.got["a"] == [wide, narrow]
    assert town.got["b"] == [wide, narrow, other]
    assert town.got["c"] == [wide, other]
    assert town.got["d"] == [wide]


def test_subscribing_inside_a_proximity_joins_at_once() -> None:
    """The list of relevant proximities does not depend on subscriptions (4.5.1)."""
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    town.listen("bob")
    event = town["ada"].raise_event("traffic/warning", {"severity": 1})
    town.run(0.1)
    assert town.got["bob"] == [event]
    town["bob"].unsubscribe("traffic/warning", town.got["bob"].append)
    town["ada"].raise_event("traffic/warning", {"severity": 1})
    town.run(0.1)
    assert town.got["bob"] == [event]


def test_unannounced_is_forgotten_and_can_be_announced_again_elsewhere() -> None:
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob")
    town["ada"].announce(WARNING, Circle(100))
    town.run(0.1)
    town["ada"].unannounce(WARNING)
    town.run(0.1)
    assert town["bob"].statistics().air.relevant == 0  # type: ignore[union-attr]
    town["ada"].announce(WARNING, Circle(20))
    town.run(0.1)
    town["ada"].raise_event("traffic/warning", {"severity": 1})
    town["ada"].announce(WARNING, Circle(60))
    town.run(0.1)
    event = town["ada"].raise_event("traffic/warning", {"severity": 2})
    town.run(0.1)
    assert town.got["bob"] == [event]


def test_one_producer_hears_itself_as_any_consumer_does() -> None:
    town = Town({"ada": (0, 0)})
    town.listen("ada")
    town["ada"].announce(WARNING, Circle(10))
    event = town["ada"].raise_event("traffic/warning", {"severity": 1})
    assert town.got["ada"] == [], "not from inside the call"
    town.run(0.1)
    assert town.got["ada"] == [event]


def test_a_producer_outside_its_stationary_proximity_does_not_announce_it() -> None:
    """4.5.2: proximities are announced inside their area only."""
    town = Town({"ada": (0, 0), "bob": (50, 0)})
    town.listen("bob")
    town.put("ada", 110, 0)
    town["ada"].announce(WARNING, Circle(100), at(0, 0))
    town.run(3)
    assert town["bob"].statistics().air.relevant == 0  # type: ignore[union-attr]
    town.put("ada", 90, 0)
    town.run(1.5)
    assert town["bob"].statistics().air.relevant == 1  # type: ignore[union-attr]


def test_over_several_hops_only_members_pass_events_on_and_everybody_inside_passes_beacons() -> None:
    names = {f"n{number}": (150.0 * number, 0.0) for number in range(6)}
    for listening, reached in (({"n1", "n2", "n3", "n4", "n5"}, {"n1", "n2", "n3"}), ({"n1", "n3"}, {"n1"})):
        town = Town(names)
        for name in listening:
            town.listen(name)
        town["n0"].announce(WARNING, Circle(500))
        town.run(0.5)
        event = town["n0"].raise_event("traffic/warning", {"severity": 1})
        town.run(0.5)
        assert {name for name in names if town.got[name] == [event]} == reached
        relevant = [town[name].statistics().air.relevant for name in names]  # type: ignore[union-attr]
        assert relevant == [0, 1, 1, 1, 0, 0]
        # 1 + N_CP, the members in the producer's partition (5.1, equation 2).
        assert town.sent("proximity event") == 1 + len(reached)


def test_one_hop_is_enough_for_a_proximity_no_larger_than_the_range() -> None:
    town = Town({"ada": (0, 0), **{f"n{number}": (10.0 * number, 5.0) for number in range(15)}})
    for number in range(15):
        town.listen(f"n{number}")
    town["ada"].announce(WARNING, Circle(200))
    town.run(0.1)
    town["ada"].raise_event("traffic/warning", {"severity": 1})
    town.run(0.1)
    assert town.sent("proximity event") == 1
    assert all(len(town.got[f"n{number}"]) == 1 for number in range(15))


def test_a_failed_producer_that_returns_is_heard_again() -> None:
    """Its numbers go on, although it remembers nothing."""
    town = Town({"ada": (0, 0), "bob": (50, 0)}, ProximitySettings(beacon_period=0.5))
    town.listen("bob")
    for life in range(2):
        town["ada"].announce(WARNING, Circle(100))
        town.run(1.0)
        town["ada"].raise_event("traffic/warning", {"severity": life})
        town.run(1.0)
        town.world.hosts["ada"].fail()
        town.run(1.0)
        town.world.hosts["ada"].join()
    assert [event.attributes["severity"] for event in town.got["bob"]] == [0, 1]
