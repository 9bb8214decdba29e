"""From Wi-Fi to Bluetooth and back while events flow: nothing is lost, nothing comes twice, and everybody follows."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transport.quarter import BLUETOOTH, BLUETOOTH_RANGE, WIFI, Quarter, of
from tests.effort import examples

from nearcast.dissemination.adhoc.carrier import AdHoc
from nearcast.dissemination.transport.local_link import REPEAT, TRANSPORT
from nearcast.dissemination.transport.registry import GRACE, REMINDER
from nearcast.errors import InvalidPlan, TransitionFailed
from nearcast.runtime.links import SENT
from nearcast.transition.agent import TransitionAgent
from nearcast.transition.plan import Exchange, ExecutionPlan, PlanId
from nearcast.transition.specification import NULL

FLOODING = of("FLOODING")


def connected(random: Random, count: int) -> list[tuple[float, float]]:
    """Each one within reach of one before, by either radio."""
    places = [(0.0, 0.0)]
    while len(places) < count:
        x, y = random.choice(places)
        angle, distance = random.uniform(0, math.tau), random.uniform(1.0, BLUETOOTH_RANGE - 1.0)
        places.append((x + distance * math.cos(angle), y + distance * math.sin(angle)))
    return places


@examples(30)
@given(st.integers(2, 8), st.integers(0, 2**32), st.floats(0.0, 2 * GRACE), st.sampled_from(["FLOODING", "PLAN-B"]))
def test_while_transports_are_exchanged_everybody_gets_every_event_once(
    count: int, seed: int, pause: float, mechanism: str
) -> None:
    random = Random(seed)
    quarter = Quarter(connected(random, count), of(mechanism), seed=seed)
    quarter.after(0.2)

    def some_events(seconds: float) -> None:
        for _ in range(max(1, round(seconds / 0.4))):
            quarter.publish(random.randrange(count))
            quarter.after(random.uniform(0.0, 0.8))

    some_events(1.0)
    quarter.of(random.randrange(count)).initiate(BLUETOOTH)
    some_events(pause)
    quarter.of(random.randrange(count)).initiate(WIFI)
    some_events(1.0)
    quarter.of(random.randrange(count)).initiate(BLUETOOTH)
    some_events(2 * GRACE)
    quarter.after(2.0)
    assert quarter.using() == ["BLUETOOTH"] * count
    for node in range(count):
        others = [name for name in quarter.published if not name.startswith(f"{node}/")]
        if mechanism == "FLOODING":  # what PLAN-B's hesitation cancels wrongly is another matter
            assert sorted(quarter.got(node)) == sorted(others)
        assert len(set(quarter.got(node))) == len(quarter.got(node))


def test_a_host_goes_on_over_both_for_the_grace_period_and_then_only_over_the_new_one() -> None:
    quarter = Quarter([(0.0, 0.0), (20.0, 0.0)], FLOODING)
    quarter.of(0).initiate(BLUETOOTH)
    quarter.after(0.5)
    assert quarter.using() == ["BLUETOOTH"] * 2
    assert quarter.of(0).statistics().overlapping == ("wifi",)
    quarter.publish(0)
    quarter.after(0.5)
    # Publisher and neighbour say it once on each; the echo is heard once.
    assert (quarter.frames("wifi", "ad hoc event"), quarter.frames("bluetooth", "ad hoc event")) == (2, 2)
    assert quarter.got(1) == quarter.published
    assert quarter.host(1).component(AdHoc).statistics().copies == 0
    assert quarter.host(0).component(AdHoc).statistics().copies == 1
    assert quarter.of(1).statistics().twins >= 1
    quarter.after(GRACE)
    assert quarter.of(0).statistics().overlapping == ()
    quarter.publish(1)
    quarter.after(0.5)
    assert (quarter.frames("wifi", "ad hoc event"), quarter.frames("bluetooth", "ad hoc event")) == (2, 4)
    assert quarter.got(0) == quarter.published[1:]


def test_who_is_too_far_for_the_new_transport_is_told_all_the_same_and_then_out_of_reach() -> None:
    quarter = Quarter([(0.0, 0.0), (60.0, 0.0)], FLOODING)
    quarter.of(0).initiate(BLUETOOTH)
    quarter.after(2 * GRACE)
    assert quarter.using() == ["BLUETOOTH"] * 2
    quarter.publish(0)
    quarter.after(1.0)
    assert quarter.got(1) == []
    quarter.of(1).initiate(WIFI)
    quarter.after(REMINDER * 1.2)  # nobody hears it by Bluetooth, and nobody listens to Wi-Fi
    assert quarter.using() == ["BLUETOOTH", "WIFI"]
    quarter.world.motion.put(1, BLUETOOTH_RANGE - 1.0, 0.0)
    quarter.after(REMINDER * 1.2)
    assert quarter.using() == ["WIFI", "WIFI"]


def test_who_comes_later_is_told_by_whoever_is_there() -> None:
    quarter = Quarter([(0.0, 0.0), (20.0, 0.0), (40.0, 0.0)], FLOODING, join=False)
    quarter.join(0, 1)
    quarter.of(0).initiate(BLUETOOTH)
    quarter.after(30.0)
    quarter.join(2)
    assert str(quarter.of(2).running) == "WIFI"
    quarter.after(REMINDER * 1.2)
    assert str(quarter.of(2).running) == "BLUETOOTH"
    quarter.publish(0)
    quarter.after(0.5)
    assert quarter.got(2) == quarter.published


def test_of_two_groups_that_meet_the_one_with_the_newer_plan_decides_whatever_it_uses() -> None:
    quarter = Quarter([(0.0, 0.0), (10.0, 0.0), (500.0, 0.0), (510.0, 0.0)], FLOODING)
    quarter.of(0).initiate(BLUETOOTH)
    quarter.of(2).initiate(BLUETOOTH)
    quarter.after(2 * GRACE)
    quarter.of(3).initiate(WIFI)  # clock 2, and nothing but the plan tells it from one that was never told anything
    quarter.after(2 * GRACE)
    assert quarter.using() == ["BLUETOOTH", "BLUETOOTH", "WIFI", "WIFI"]
    quarter.world.motion.put(2, 25.0, 0.0)
    quarter.after(REMINDER * 1.2)
    assert quarter.using() == ["WIFI"] * 4
    quarter.after(5 * REMINDER)
    assert quarter.using() == ["WIFI"] * 4, "nobody goes back to an older plan"


def test_a_newer_plan_is_told_on_even_by_those_who_have_nothing_to_change() -> None:
    quarter = Quarter([(0.0, 0.0), (80.0, 0.0), (160.0, 0.0)], FLOODING, join=False)
    quarter.join(0, 1)
    quarter.of(0).initiate(WIFI)
    quarter.after(1.0)
    assert quarter.of(1).statistics().healing.clock == 1
    quarter.join(2)
    quarter.after(REMINDER * 1.2)
    assert quarter.of(2).statistics().healing.clock == 1


def test_who_has_no_such_radio_stays_where_it_is() -> None:
    quarter = Quarter([(0.0, 0.0), (10.0, 0.0)], FLOODING, without=[1])
    quarter.of(0).initiate(BLUETOOTH)
    quarter.after(2.0)
    assert quarter.using() == ["BLUETOOTH", "WIFI"]
    assert quarter.of(1).statistics().healing.failed >= 1
    quarter.publish(0)
    quarter.after(0.5)
    assert quarter.got(1) == quarter.published, "during the grace period it is still reached"
    with pytest.raises(TransitionFailed, match="has no link 'bluetooth'"):
        quarter.of(1).initiate(BLUETOOTH)
    quarter.publish(1)
    quarter.after(0.5)
    assert quarter.got(0) == quarter.published[1:]


def test_a_plan_of_a_broker_changes_it_too_and_is_told_on() -> None:
    quarter = Quarter([(0.0, 0.0), (20.0, 0.0)], FLOODING, agents=True)
    plan = ExecutionPlan(PlanId(7, "broker"), (Exchange(TRANSPORT, BLUETOOTH),))
    assert quarter.host(0).component(TransitionAgent).execute(plan).ok
    quarter.after(1.0)
    assert quarter.using() == ["BLUETOOTH"] * 2
    assert quarter.of(1).statistics().healing.clock == 7


def test_without_a_transport_nothing_is_sent_and_nobody_is_drawn_in() -> None:
    quarter = Quarter([(0.0, 0.0), (20.0, 0.0)], FLOODING, agents=True)
    off = ExecutionPlan(PlanId(1, "broker"), (Exchange(TRANSPORT, NULL),))
    assert quarter.host(0).component(TransitionAgent).execute(off).ok
    quarter.publish(0)
    quarter.publish(1)
    quarter.after(1.0)
    assert quarter.got(0) == quarter.got(1) == []
    assert str(quarter.of(1).running) == "WIFI"
    on = ExecutionPlan(PlanId(2, "broker"), (Exchange(TRANSPORT, WIFI),))
    assert quarter.host(0).component(TransitionAgent).execute(on).ok
    quarter.publish(0)
    quarter.after(1.0)
    assert quarter.got(1) == quarter.published[2:]


def test_back_within_the_grace_period_nothing_is_opened_or_closed_twice() -> None:
    quarter = Quarter([(0.0, 0.0), (20.0, 0.0)], FLOODING)
    for transport in (BLUETOOTH, WIFI, BLUETOOTH, WIFI):
        quarter.of(0).initiate(transport)
        quarter.after(GRACE / 3)
    assert quarter.using() == ["WIFI"] * 2
    assert quarter.of(0).statistics().overlapping == ("bluetooth",)
    quarter.after(GRACE)
    assert quarter.of(0).statistics().overlapping == ()
    quarter.publish(0)
    quarter.after(1.0)
    assert quarter.got(1) == quarter.published
    assert quarter.frames("bluetooth", "ad hoc event") == 0


def test_announcements_are_few() -> None:
    quarter = Quarter([(0.0, 0.0), (20.0, 0.0)], FLOODING)
    quarter.of(0).initiate(BLUETOOTH)
    quarter.after(GRACE + 10 * REMINDER)
    for node in range(2):
        assert quarter.of(node).statistics().announced <= GRACE / (0.9 * REPEAT) + 10 / 0.9 + 3
    listened = [link.listened for link in quarter.wifi.links.values()]
    assert max(listened) <= (GRACE + 0.2) * 1_000_000, "the radio that is not used is off"
    silent = Quarter([(0.0, 0.0), (20.0, 0.0)], FLOODING)
    silent.after(100.0)
    assert sum(row.messages for row in silent.wifi.traffic() if row.direction == SENT) == 0


def test_mistakes_are_refused_with_what_there_is() -> None:
    quarter = Quarter([(0.0, 0.0)], FLOODING)
    with pytest.raises(TransitionFailed, match="there is no local transport 'ZIGBEE'; there are WIFI, BLUETOOTH"):
        quarter.of(0).initiate(of("ZIGBEE"))
    with pytest.raises((TransitionFailed, InvalidPlan), match="grace"):
        quarter.of(0).initiate(of("BLUETOOTH", grace=-1.0))
    assert quarter.using() == ["WIFI"]
