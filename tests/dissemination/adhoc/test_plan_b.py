"""PLAN-B: far ones first, who hears somebody farther on gives up, several events share a frame."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.adhoc.village import (
    HOME,
    Village,
    chain,
    connected_to,
    nowhere,
    of,
    scattered,
)

from nearcast.dissemination.adhoc.messages import Carried
from nearcast.dissemination.adhoc.plan_b import ROOM, farther_on, packed
from nearcast.dissemination.wire import message_of
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.runtime.messages import encoded
from nearcast.runtime.simulation.plane import Plane

PLAN_B = of("PLAN-B")
AT_ONCE = of("PLAN-B", window=0.0)


@given(st.permutations([15.0, 30.0, 45.0, 60.0, 75.0]))
def test_the_farthest_sends_first_and_nobody_before_it_then(distances: list[float]) -> None:
    places = [(0.0, 0.0), *((east, 0.0) for east in distances)]
    village = Village(places, AT_ONCE)
    village.publish(0, "e")
    village.after(1.0)
    assert village.reached("e") == {1, 2, 3, 4, 5}
    assert [places[node][0] for node in village.senders("e")] == [0.0, 75.0]
    assert village.total("cancelled") == 4


def test_those_on_the_other_side_send_as_well() -> None:
    places = [(0.0, 0.0), (80.0, 0.0), (-70.0, 0.0), (0.0, 60.0), (10.0, 0.0)]
    village = Village(places, AT_ONCE)
    village.publish(0, "e")
    village.after(1.0)
    assert village.senders("e") == [0, 1, 2, 3], (
        "in the order of their distance, but for the one that all others surpass"
    )


@given(st.floats(-100, 100), st.floats(-100, 100), st.floats(-100, 100), st.floats(-100, 100))
def test_farther_on_is_beyond_the_line_through_here(x: float, y: float, u: float, v: float) -> None:
    plane = Plane(HOME)
    beyond = u * x + v * y - (x * x + y * y)
    if abs(beyond) > 1e-3 * (1 + x * x + y * y):  # not where rounding decides
        assert farther_on(HOME, plane.to_point(x, y), plane.to_point(u, v)) == (beyond > 0)


@given(st.randoms(use_true_random=False), st.integers(2, 40), st.floats(50.0, 400.0))
def test_it_never_sends_more_than_flooding_does(random: Random, count: int, side: float) -> None:
    places = scattered(random, count, side)
    village = Village(places, PLAN_B)
    village.publish(0, "e")
    village.after(1.0)
    assert len(village.senders("e")) <= len(connected_to(0, places))
    assert village.reached("e") <= connected_to(0, places) - {0}


def test_in_a_crowd_it_sends_much_less_than_flooding_and_reaches_nearly_as_many() -> None:
    random = Random(11)
    sent = reached = reachable = 0
    for seed in range(10):
        places = scattered(random, 60, 300.0)
        village = Village(places, PLAN_B, seed=seed)
        village.publish(0, "e")
        village.after(1.0)
        sent, reached = sent + len(village.senders("e")), reached + len(village.reached("e")) + 1
        reachable += len(connected_to(0, places))
    assert sent < 0.6 * reachable, "FLOODING sends as often as it reaches hosts"
    assert reached > 0.95 * reachable


def test_without_a_position_it_works_all_the_same() -> None:
    """From a host that runs something else, frames say no position."""
    village = Village(nowhere(4), PLAN_B, edges=chain(4))
    village.exchange(0, of("FLOODING"))
    village.publish(0, "e")
    village.after(1.0)
    assert village.reached("e") == {1, 2, 3}


def test_events_that_are_due_together_share_a_frame_and_none_is_lost() -> None:
    places = [(0.0, 0.0), (80.0, 0.0), (160.0, 0.0)]
    names = [f"e{number}" for number in range(8)]
    frames = {}
    for window in (0.0, 0.05):
        village = Village(places, of("PLAN-B", window=window), check_wire=True)
        for name in names:
            village.publish(0, name, payload=bytes(64))
            village.after(0.002)
        village.after(1.0)
        assert village.reached("e0") == {1, 2}
        assert sorted(village.listener(2).got) == names
        frames[window] = [frame for frame in village.frames if frame.sender == 1]
    assert [len(frame.events) for frame in frames[0.0]] == [1] * 8
    assert len(frames[0.05]) < 4
    assert sorted(name for frame in frames[0.05] for name, _ in frame.events) == names


def carried(size: int, number: int) -> Carried:
    event = Event(f"e{number}", "t", 0, payload=bytes(size), place=Point(49.0, 8.0))
    return Carried(message_of(event), 1)


@given(st.lists(st.integers(0, 2 * ROOM), max_size=30))
def test_packing_keeps_order_and_room_and_loses_nothing(sizes: list[int]) -> None:
    events = [carried(size, number) for number, size in enumerate(sizes)]
    frames = packed(events)
    assert [each for frame in frames for each in frame] == events
    for frame in frames:
        assert len(frame) == 1 or sum(len(encoded(each.event)) for each in frame) <= ROOM
    for frame, after in pairwise(frames):
        assert sum(len(encoded(each.event)) for each in [*frame, after[0]]) > ROOM, "no more frames than needed"


def test_a_copy_from_farther_on_cancels_what_is_ready_to_go() -> None:
    """Also while it waits for others to share its frame."""
    places = [(0.0, 0.0), (80.0, 0.0), (60.0, 0.0)]
    village = Village(places, of("PLAN-B", hesitation=0.0, tie=0.0, window=0.0))
    village.exchange(2, of("PLAN-B", hesitation=0.0, tie=0.0, window=0.5))
    village.publish(0, "e")
    village.after(2.0)
    assert village.senders("e") == [0, 1]
    assert village.adhoc(2).statistics().cancelled == 1
