"""Deadline, validity, priority, order: promised by the type, kept by the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.proximity.town import Town

from nearcast.model.area import Circle
from nearcast.model.event import Event
from nearcast.model.time import MICROSECONDS
from nearcast.proximity.event_type import EventType
from nearcast.proximity.outbox import PAUSE, Outbox
from nearcast.proximity.settings import ProximitySettings
from nearcast.proximity.streams import InOrder, Numbers
from nearcast.runtime.messages import Message
from nearcast.runtime.ports import Sending
from nearcast.runtime.simulation.kernel import Simulation
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import Ranges, wifi_b
from nearcast.runtime.simulation.timers import Life, SimulatedTimers
from nearcast.runtime.simulation.world import World


def far_town(event_type: EventType, hops: int = 3, **more: Any) -> Town:
    """The consumer is several hops away, each of which takes a while."""
    names = {f"n{number}": (150.0 * number, 0.0) for number in range(hops + 1)}
    town = Town(names, ProximitySettings(jitter=0.05, **more))
    for number in range(1, hops + 1):
        town.listen(f"n{number}", event_type.subject)
    town["n0"].announce(event_type, Circle(1_000))
    town.run(1.5)
    return town


@pytest.mark.parametrize("promise", ["deadline", "validity"])
def test_what_comes_too_late_is_dropped_and_counted(promise: str) -> None:
    quick, slow = (EventType.of(name, **{promise: seconds}) for name, seconds in (("quick", 0.005), ("slow", 5.0)))
    for event_type, delivered in ((quick, False), (slow, True)):
        town = far_town(event_type)
        town["n0"].raise_event(event_type.subject)
        town.run(1.0)
        last = town["n3"].statistics()
        assert bool(town.got["n3"]) is delivered
        assert town.got["n1"], "one hop is soon enough"
        # Either it came too late, or nobody on the way passed it on any more.
        outboxes = [town[name].statistics().air.outbox for name in ("n1", "n2")]  # type: ignore[union-attr]
        assert (last.late + sum(box.late for box in outboxes) + town["n2"].statistics().late > 0) is not delivered


def test_an_ordered_event_that_waited_past_its_deadline_is_late() -> None:
    event_type = EventType.of("news", order="producer", deadline=0.3)
    town = Town({"ada": (0, 0), "bob": (50, 0)}, ProximitySettings(patience=0.5))
    town.listen("bob", "news")
    town["ada"].announce(event_type, Circle(100))
    town.run(0.1)
    town.disc.cut = lambda _sender, _receiver: True
    town["ada"].raise_event("news")
    town.disc.cut = lambda _sender, _receiver: False
    town["ada"].raise_event("news")
    town.run(1.0)
    assert town.got["bob"] == []
    assert town["bob"].statistics().late == 1


# Order


class Waits:
    """An ordered stream on a virtual clock."""

    def __init__(self, patience: float = 1.0) -> None:
        self.simulation = Simulation(1)
        self.got: list[int] = []
        self.order = InOrder(
            SimulatedTimers(self.simulation, Life()), patience, lambda event: self.got.append(int(event.id))
        )

    def add(self, number: int, since: int | None = 0) -> bool:
        return self.order.add(number, Event(str(number), "news", 0), since)


def test_a_missing_event_is_waited_for() -> None:
    waits = Waits()
    assert all(waits.add(number) for number in (1, 3, 4))
    assert waits.got == [1]
    assert waits.add(2)
    assert waits.got == [1, 2, 3, 4]


def test_but_not_for_ever_and_what_comes_then_is_overtaken() -> None:
    waits = Waits(patience=1.0)
    for number in (1, 3, 5):
        waits.add(number)
    waits.simulation.run(round(0.9 * MICROSECONDS))
    assert waits.got == [1]
    waits.simulation.run(round(1.1 * MICROSECONDS))
    assert waits.got == [1, 3]
    assert not waits.add(2)
    waits.add(4)
    assert waits.got == [1, 3, 4, 5]


def test_who_comes_into_the_middle_of_a_stream_waits_for_nothing_that_was_before() -> None:
    waits = Waits()
    waits.add(8, since=7)
    assert waits.got == [8]


def test_who_was_not_told_where_a_stream_is_waits_before_its_first_event() -> None:
    """Through an uplink there are no beacons that would tell; and the first to come need not be the first."""
    waits = Waits(patience=1.0)
    for number in (8, 7, 10):
        waits.add(number, since=None)
    assert waits.got == []
    waits.simulation.run(round(1.1 * MICROSECONDS))
    assert waits.got == [7, 8]
    waits.simulation.run(round(2.2 * MICROSECONDS))
    assert waits.got == [7, 8, 10]


def test_what_need_not_be_waited_for_makes_way() -> None:
    waits = Waits()
    waits.add(1)
    waits.add(3)
    waits.order.add(2, None, 0)
    assert waits.got == [1, 3]


@given(st.permutations(range(1, 9)), st.sets(st.integers(1, 8)))
def test_whatever_the_order_of_arrival_and_whatever_is_lost_delivery_is_in_order_and_all_that_can_be(
    arriving: list[int], lost: set[int]
) -> None:
    waits = Waits(patience=1.0)
    for number in arriving:
        if number not in lost:
            waits.add(number)
    waits.simulation.run(60 * MICROSECONDS)
    assert waits.got == sorted(set(range(1, 9)) - lost), "all came before patience was over"


def test_events_of_an_ordered_type_come_in_order_although_the_network_reorders_them() -> None:
    """Who passes something on waits a random while: without the promise, events overtake each other."""
    orders = {}
    for promised in ("none", "producer"):
        event_type = EventType.of("news", {"number": "integer"}, order=promised)
        town = far_town(event_type, patience=2.0)
        for number in range(40):
            town.at(2.0 + number / 100, _raiser(town, number))
        town.run(5.0)
        orders[promised] = [event.attributes["number"] for event in town.got["n3"]]
        assert sorted(orders[promised], key=str) == sorted(range(40), key=str)
    assert orders["producer"] == list(range(40))
    assert orders["none"] != list(range(40))


def _raiser(town: Town, number: int) -> Callable[[], object]:
    return lambda: town["n0"].raise_event("news", {"number": number})


# Priority


class Frame(Message, frozen=True, tag="frame"):
    text: str


class Busy:
    """A link that takes one message at a time."""

    def __init__(self) -> None:
        self.simulation = Simulation(1)
        self.sent: list[str] = []
        self.outbox = Outbox(self.simulation, SimulatedTimers(self.simulation, Life()), self.broadcast)
        self.answer = Sending.QUEUED

    def broadcast(self, message: Message) -> Sending:
        assert isinstance(message, Frame)
        self.sent.append(message.text)
        return self.answer


def test_the_urgent_overtakes_what_waits_and_equals_keep_their_order() -> None:
    busy = Busy()
    for text, priority in (("first", 0), ("a", 0), ("b", 0), ("alarm", 7), ("c", 3)):
        busy.outbox.send(Frame(text), priority)
    assert busy.sent == ["first"], "it was given to the link before anything else was there"
    busy.simulation.run(MICROSECONDS)
    assert busy.sent == ["first", "alarm", "c", "a", "b"]


def test_a_link_that_takes_everything_at_once_is_given_everything_at_once() -> None:
    busy = Busy()
    busy.answer = Sending.ACCEPTED
    for text in "abc":
        busy.outbox.send(Frame(text))
    assert busy.sent == ["a", "b", "c"]


def test_what_waited_too_long_is_not_sent() -> None:
    busy = Busy()
    busy.outbox.send(Frame("first"))
    busy.outbox.send(Frame("stale"), until=round(PAUSE * MICROSECONDS / 2))
    busy.outbox.send(Frame("fresh"))
    busy.simulation.run(MICROSECONDS)
    assert busy.sent == ["first", "fresh"]
    assert busy.outbox.statistics().late == 1


def test_a_queue_that_is_full_drops_and_counts() -> None:
    busy = Busy()
    for number in range(1_200):
        busy.outbox.send(Frame(str(number)))
    assert busy.outbox.statistics().dropped == 199
    assert busy.outbox.statistics().waiting == 1_000


def test_on_a_busy_radio_the_urgent_type_arrives_first() -> None:
    def radio(simulation: Simulation, world: World) -> RadioNetwork:
        return RadioNetwork(simulation, wifi_b(Ranges(reception=200.0, interference=400.0)), world.motion)

    calm = EventType.of("calm", {"number": "integer"})
    alarm = EventType.of("alarm", {"number": "integer"}, priority=7)
    town = Town({"ada": (0, 0), "bob": (50, 0)}, radio=radio)
    for event_type in (calm, alarm):
        town["ada"].announce(event_type, Circle(100))
        town.listen("bob", event_type.subject)
    town.run(0.5)
    for number in range(20):
        town["ada"].raise_event("calm", {"number": number})
    town["ada"].raise_event("alarm", {"number": 99})
    town.run(1.0)
    arrived = [event.topic for event in town.got["bob"]]
    assert arrived.count("calm") == 20
    assert arrived.index("alarm") <= 3, "behind those that the radio had already"


# Numbers


@given(st.lists(st.integers(0, 30)), st.integers(-1, 30), st.integers(0, 30))
def test_missing_is_what_was_due_and_did_not_come(taken: list[int], since: int, latest: int) -> None:
    numbers = Numbers()
    came: set[int] = set()
    for number in taken:
        assert numbers.take(number) is (number not in came)
        came.add(number)
    assert numbers.missing(latest) == []
    numbers.since = since
    named = {number for first, last in numbers.missing(latest) for number in range(first, last + 1)}
    assert named == set(range(since + 1, latest + 1)) - came


def test_numbers_are_forgotten_but_never_taken_twice() -> None:
    numbers = Numbers()
    assert all(numbers.take(number) for number in range(20_000))
    assert not any(numbers.take(number) for number in range(20_000))
    assert len(numbers._seen) <= 4_096
