"""Devices go off and come back with their data (THYME 6.4.2): what matches is told when they are back, at the latest."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.effort import examples

from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec("PL/SG")
HOSTS = 6

steps = st.lists(
    st.one_of(
        st.tuples(st.just("switch"), st.integers(0, HOSTS - 1)),
        st.tuples(st.just("publish"), st.integers(0, HOSTS - 1)),
        st.tuples(st.just("subscribe"), st.just(0)),
    ),
    max_size=20,
)


@examples(20)
@given(steps, st.randoms(use_true_random=False))
def test_all_is_told_once_when_everybody_is_back(script: list[tuple[str, int]], random: Random) -> None:
    places = [(random.uniform(0, 75), random.uniform(0, 75)) for _ in range(HOSTS)]
    crowd = Crowd(places, PLSG, seed=random.randrange(1000), remembering=True)
    crowd.run(20)
    for what, node in script:
        host = crowd.world.hosts[f"n{node}"]
        if what == "switch":
            if host.up:
                host.fail()
            else:
                host.join()
        elif host.up:
            if what == "subscribe":
                crowd.subscribe(host.name, "t")
            else:
                crowd.publish(host.name, f"o{len(crowd.things)}", "t")
        # Long enough to join; for routes, too, since some of those around always speak.
        crowd.run(20)
    for host in crowd.world.hosts.values():
        host.join()
    crowd.run(30)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


@pytest.mark.parametrize("away", [10, 40, 300])
def test_a_subscriber_that_was_away_hears_of_what_it_missed_and_of_nothing_twice(away: float) -> None:
    crowd = Crowd([(20, 20), (60, 20), (100, 20)], MechanismSpec.of("PL/SG", batch=2), remembering=True)
    crowd.run(60)
    crowd.subscribe("n2", "goal")
    crowd.run(10)
    crowd.publish("n0", "before", "goal")
    crowd.run(5)
    crowd.world.hosts["n2"].fail()
    crowd.run(away)
    for number in range(5):  # more than a batch: it is not the past of the subscription, so none of it is held back
        crowd.publish("n0", f"meanwhile{number}", "goal")
        crowd.run(2)
    crowd.run(away)
    crowd.world.hosts["n2"].join()
    crowd.run(120)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


def test_who_returns_is_told_what_it_missed_and_not_what_it_was_told() -> None:
    crowd = Crowd([(20, 20), (60, 20)], PLSG, remembering=True)
    crowd.run(60)
    crowd.publish("n0", "past", "goal")
    crowd.subscribe("n1", "goal")
    crowd.run(30)
    crowd.world.hosts["n1"].fail()
    crowd.publish("n0", "missed", "goal")
    crowd.run(30)
    crowd.world.hosts["n1"].join()
    crowd.run(30)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n1"].statistics().duplicates == 0


def test_whoever_cannot_be_reached_hears_later_of_all_that_is_published_meanwhile() -> None:
    """However much, and however much later: of packets, only five wait for a way, for 30 s."""
    crowd = Crowd([(20, 20), (120, 20), (220, 20)], MechanismSpec.of("PL/SG", batch=7), remembering=True)
    crowd.run(60)
    crowd.subscribe("n2", "goal")
    crowd.run(10)
    crowd.publish("n0", "before", "goal")
    crowd.run(10)
    crowd.world.hosts["n1"].fail()
    crowd.run(60)
    for number in range(20):
        crowd.publish("n0", f"meanwhile {number}", "goal")
        crowd.run(5)
    assert len(crowd.heard.notified) == 1
    crowd.world.hosts["n1"].join()
    crowd.run(60)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    assert crowd.stores["n2"].statistics().duplicates == 0


def test_who_was_told_of_by_others_while_it_was_away_is_told_all_when_it_is_back() -> None:
    crowd = Crowd([(20, 20), (60, 20), (80, 20)], PLSG, remembering=True)
    crowd.run(60)
    crowd.publish("n0", "past", "goal")
    crowd.world.hosts["n0"].fail()
    crowd.run(30)
    crowd.subscribe("n2", "goal")
    crowd.run(20)
    # For a while there still seems to be a way to it.
    crowd.world.hosts["n2"].fail()
    crowd.world.hosts["n0"].join()
    crowd.run(40)
    crowd.world.hosts["n2"].join()
    crowd.run(60)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
