"""Over the air, through an uplink, and from one to the other in the middle of a stream: nothing lost, nothing doubled."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.proximity.town import BROKER, WARNING, Town, at

from nearcast.errors import TransitionFailed
from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.proximity.event_type import EventType
from nearcast.proximity.settings import AIR, UPLINK, ProximitySettings
from nearcast.transition.specification import MechanismSpec

NEWS = EventType.of("news", {"number": "integer"})
PEOPLE = {"ada": (0.0, 0.0), "bob": (60.0, 0.0), "eve": (90.0, 0.0), "ian": (140.0, 0.0)}


def uplinked(settings: ProximitySettings | None = None, seed: int = 1) -> Town:
    town = Town(PEOPLE, settings, uplink=True, seed=seed)
    for name in ("bob", "eve", "ian"):
        town.listen(name, "news")
    town["ada"].announce(NEWS, Circle(100))
    return town


def test_the_broker_knows_who_stands_in_a_proximity() -> None:
    town = uplinked(ProximitySettings(mechanism=UPLINK))
    town.run(2.0)
    event = town["ada"].raise_event("news", {"number": 1})
    town.run(1.0)
    assert [town.got[name] for name in ("bob", "eve", "ian")] == [[event], [event], []]
    assert town.sent("proximity event") == town.sent("beacon") == 0
    # Ian is within the margin: the broker sends, and its own last check says no.
    assert town.broker.statistics().sent == 3
    assert town["ian"].statistics().outside == 1
    town.put("ian", 400, 0)
    town.run(2.0)
    town["ada"].raise_event("news", {"number": 2})
    town.run(1.0)
    assert town.broker.statistics().sent == 5, "not to ian, who is far away now"


def test_through_the_uplink_leaving_stops_delivery_and_entering_starts_it() -> None:
    town = uplinked(ProximitySettings(mechanism=UPLINK))
    for number in range(12):
        town.raise_at(2.05 + number, "ada", "news", {"number": number})
    town.at(5.5, lambda: town.put("bob", 400, 0))
    town.at(9.5, lambda: town.put("bob", 60, 0))
    town.run(16.0)
    # It says where it is once a second: 8 may come before the broker knows.
    heard = [event.attributes["number"] for event in town.got["bob"]]
    assert [number for number in heard if number != 8] == [0, 1, 2, 3, 9, 10, 11]


def test_filters_order_deadlines_and_own_proximities_hold_through_the_uplink() -> None:
    ordered = EventType.of("ordered", {"number": "integer"}, order="producer")
    brief = EventType.of("brief", {"number": "integer"}, deadline=0.05)
    town = Town(PEOPLE, ProximitySettings(mechanism=UPLINK), uplink=True)
    town.listen("bob", "ordered", "number <> 3")
    town.listen("bob", "brief")
    town.listen("ian", "ordered", area=Circle(200))
    town["ada"].announce(ordered, Circle(100))
    town["ada"].announce(brief, Circle(100))
    town.run(2.0)
    for number in range(20):
        town.raise_at(2.0 + number / 50, "ada", "ordered", {"number": number})
    town.raise_at(3.0, "ada", "brief", {"number": 1})
    town.run(6.0)
    assert [event.attributes["number"] for event in town.got["bob"]] == [n for n in range(20) if n != 3]
    assert town["bob"].statistics().late == 1, "no uplink is that quick"
    assert len(town.got["ian"]) == 20


def test_who_leaves_or_unsubscribes_is_no_longer_told() -> None:
    town = uplinked(ProximitySettings(mechanism=UPLINK))
    town.run(2.0)
    town["bob"].unsubscribe("news", town.got["bob"].append)
    town.world.hosts["eve"].leave()
    town.run(2.0)
    town["ada"].raise_event("news", {"number": 1})
    town.run(1.0)
    assert town.broker.statistics().sent == 1, "to ian, who is near"
    town["ada"].unannounce(NEWS)
    town.run(1.0)
    assert town.broker.statistics().announcements == 0


def test_a_broker_that_forgot_everything_is_told_again() -> None:
    town = uplinked(ProximitySettings(mechanism=UPLINK))
    town.run(2.0)
    town.world.hosts[BROKER].fail()
    town.broker._devices.clear()
    town.world.hosts[BROKER].join()
    town["ada"].raise_event("news", {"number": 1})
    town.run(12.0)
    assert town.broker.statistics().unannounced == 1
    event = town["ada"].raise_event("news", {"number": 2})
    town.run(1.0)
    assert town.got["bob"] == [event]


def test_the_broker_forgets_the_silent() -> None:
    town = uplinked(ProximitySettings(mechanism=UPLINK))
    town.run(2.0)
    assert town.broker.statistics().devices == 4
    for name in ("bob", "eve", "ian"):
        town.world.hosts[name].fail()
    town.run(80.0)
    assert town.broker.statistics().devices == 1


SWITCHES = st.lists(
    st.tuples(st.sampled_from(sorted(PEOPLE)), st.sampled_from([AIR, UPLINK]), st.floats(0.0, 0.5)), max_size=8
)


@examples(12)
@given(st.sampled_from([AIR, UPLINK]), st.floats(0.0, 0.4), st.permutations(sorted(PEOPLE)), st.integers(1, 99))
def test_nothing_is_lost_or_doubled_when_all_switch_within_half_a_second(
    first: MechanismSpec, spread: float, order: list[str], seed: int
) -> None:
    """The overlap is longer than the spread and a beacon period together."""
    town = uplinked(ProximitySettings(mechanism=first), seed)
    second = UPLINK if first == AIR else AIR
    for number in range(240):
        town.raise_at(2.0 + number / 20, "ada", "news", {"number": number})
    for place, name in enumerate(order):
        town.at(4.0 + place * spread / 3, partial(town[name].use, second))
        town.at(9.0 + place * spread / 3, partial(town[name].use, first))
    town.run(18.0)
    expected = Counter(event.id for event in town.raised)
    for name in ("bob", "eve"):
        assert Counter(town.ids(name)) == expected, name
    assert town.got["ian"] == []
    assert town["bob"].statistics().duplicates > 0, "both ways were in use for a while"
    assert town["bob"].statistics().mechanisms == (str(first),)


def test_without_overlap_something_is_lost() -> None:
    """So it is the overlap that keeps everything."""
    town = uplinked(ProximitySettings(overlap=0.0))
    for number in range(100):
        town.raise_at(2.0 + number / 20, "ada", "news", {"number": number})
    for name in PEOPLE:
        town.at(4.0, partial(town[name].use, UPLINK))
    town.run(10.0)
    assert 90 < len(town.got["bob"]) < 100


@examples(15)
@given(SWITCHES)
def test_whatever_is_switched_to_what_and_back_nothing_comes_twice(
    switches: list[tuple[str, MechanismSpec, float]],
) -> None:
    town = uplinked(ProximitySettings(overlap=1.0))
    for number in range(60):
        town.raise_at(2.0 + number / 10, "ada", "news", {"number": number})
    when = 2.0
    for name, mechanism, wait in switches:
        when += wait
        town.at(when, partial(town[name].use, mechanism))
    town.run(12.0)
    for name in ("bob", "eve"):
        assert max(Counter(town.ids(name)).values(), default=0) <= 1


def test_back_before_the_overlap_is_over_it_is_the_same_mechanism_again() -> None:
    town = uplinked()
    town.run(2.0)
    assert town["bob"].use(UPLINK)
    assert not town["bob"].use(UPLINK)
    town.run(1.0)
    assert town["bob"].statistics().mechanisms == ("UPLINK", "AIR")
    assert town["bob"].use(AIR)
    town.run(10.0)
    assert town["bob"].statistics().mechanisms == ("AIR",)
    event = town["ada"].raise_event("news", {"number": 1})
    town.run(1.0)
    assert town.got["bob"] == [event]


def test_without_an_uplink_there_is_no_way_through_one_and_the_air_goes_on() -> None:
    town = Town(PEOPLE)
    town.listen("bob", "news")
    town["ada"].announce(NEWS, Circle(100), at(0, 0))
    town.run(0.5)
    with pytest.raises(TransitionFailed, match="has no uplink"):
        town["ada"].use(UPLINK)
    with pytest.raises(TransitionFailed, match="AIR or UPLINK, not by PIGEON"):
        town["ada"].use(MechanismSpec("PIGEON"))
    event = town["ada"].raise_event("news", {"number": 1})
    town.run(0.5)
    assert town.got["bob"] == [event]


def test_what_others_send_through_an_uplink_is_no_event_of_a_proximity() -> None:
    town = uplinked(ProximitySettings(mechanism=UPLINK))
    town.run(2.0)
    active = town["bob"]._proxy.active
    active._arrived(Event("not-numbered", "news", 0, publisher="somebody"), WARNING.attributes)  # type: ignore[attr-defined]
    assert town["bob"].statistics().foreign == 1
    assert town.got["bob"] == []
