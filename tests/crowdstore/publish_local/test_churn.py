"""Devices go off and come back with their data (THYME 6.4.2): what matches is told when they are back, at the latest."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.effort import examples

from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec("PL/SG")
HOSTS = 6

steps = st.lists(
    st.one_of(
        st.tuples(st.just("switch"), st.integers(1, HOSTS - 1)),
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
        elif what == "subscribe":
            crowd.subscribe(host.name, "t")
        elif host.up:
            crowd.publish(host.name, f"o{len(crowd.things)}", "t")
        # Long enough to join; for routes, too, since some of those around always speak.
        crowd.run(20)
    for host in crowd.world.hosts.values():
        host.join()
    crowd.run(30)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
