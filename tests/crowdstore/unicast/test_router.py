"""Routes converge to the shortest ones, end when hosts go, and come back when they do."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import RANGE, Crowd
from tests.crowdstore.lossy import connected, lossy
from tests.effort import examples

from nearcast.crowdstore.publish_local.mechanism import PublishLocalStorage
from nearcast.crowdstore.unicast.messages import FRAME, MOST_HOPS, Routes
from nearcast.crowdstore.unicast.router import PORT, Router, in_frames
from nearcast.runtime.messages import encoded
from nearcast.transition.specification import MechanismSpec

PLSG = MechanismSpec("PL/SG")


def _router(crowd: Crowd, name: str) -> Router:
    storage = crowd.stores[name]._proxy.active
    assert isinstance(storage, PublishLocalStorage)
    return storage.router


def _distances(places: list[tuple[float, float]], start: int) -> dict[str, int]:
    found, border = {start: 0}, [start]
    for at in border:
        for other, (x, y) in enumerate(places):
            if other not in found and (x - places[at][0]) ** 2 + (y - places[at][1]) ** 2 <= RANGE**2:
                found[other] = found[at] + 1
                border.append(other)
    return {f"n{node}": hops for node, hops in found.items()}


def _reached(crowd: Crowd, name: str) -> dict[str, int]:
    return {to: route.metric for to, route in _router(crowd, name).table.routes.items() if not route.broken}


@examples(10)
@given(st.integers(2, 10), st.randoms(use_true_random=False))
def test_routes_are_shortest_paths_once_all_have_spoken(count: int, random: Random) -> None:
    places = connected(random, count)
    crowd = Crowd(places, PLSG, seed=random.randrange(1000))
    crowd.run(45)
    shortest = {f"n{node}": _distances(places, node) for node in range(count)}
    # A new sequence number may come on a longer way first; within a period it comes on the shortest one, too.
    best = {name: _reached(crowd, name) for name in shortest}
    for _ in range(15):
        crowd.run(2)
        for name, routes in best.items():
            now = _reached(crowd, name)
            assert now.keys() == shortest[name].keys()
            assert all(now[to] >= hops for to, hops in shortest[name].items())
            routes.update({to: min(hops, routes.get(to, hops)) for to, hops in now.items()})
    assert best == shortest


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_routes_form_although_frames_are_lost(share: float) -> None:
    places = [(90.0 * x, 0.0) for x in range(7)]
    crowd = Crowd(places, PLSG, network=lossy(share))
    crowd.run(120)
    assert _reached(crowd, "n0") == _distances(places, 0)


def test_a_crowd_that_parts_and_meets_again() -> None:
    places = [(100.0 * x, 0.0) for x in range(6)]
    crowd = Crowd(places, PLSG)
    crowd.run(60)
    assert len(_reached(crowd, "n0")) == 6
    crowd.world.motion.put(3, 300.0, 9_000.0)
    crowd.run(90)
    assert sorted(_reached(crowd, "n0")) == ["n0", "n1", "n2"]
    assert sorted(_reached(crowd, "n5")) == ["n4", "n5"]
    assert sorted(_reached(crowd, "n3")) == ["n3"]
    crowd.world.motion.put(3, 300.0, 0.0)
    crowd.run(60)
    for node in range(6):
        assert _reached(crowd, f"n{node}") == _distances(places, node)


def test_who_fails_and_returns_is_found_again_at_once() -> None:
    crowd = Crowd([(100.0 * x, 0.0) for x in range(4)], PLSG)
    crowd.run(60)
    crowd.world.hosts["n3"].fail()
    crowd.run(100)
    assert "n3" not in _reached(crowd, "n0")
    crowd.world.hosts["n3"].join()
    crowd.run(5)
    assert _reached(crowd, "n0")["n3"] == 3


def test_a_large_table_goes_out_in_frames_that_fit() -> None:
    routes = [(f"a host with a long name, number {number}", 7, 3_588_000_000) for number in range(300)]
    parts = list(in_frames(routes))
    assert [route for part in parts for route in part] == routes
    sizes = [len(encoded(Routes(part))) for part in parts]
    assert max(sizes) <= FRAME
    assert min(sizes[:-1]) > FRAME - 100


def test_packets_that_go_too_far_end() -> None:
    count = MOST_HOPS + 3
    crowd = Crowd([(100.0 * x, 0.0) for x in range(count)], PLSG)
    crowd.run(80)
    near, _ = crowd.publish("n2", "near", "t"), crowd.publish("n0", "far", "t")
    last = f"n{count - 1}"
    key = crowd.subscribe(last, "t")
    crowd.run(10)
    assert crowd.heard.notified == [(key, near.key)]
    assert sum(store.statistics().storage.routing.worn_out for store in crowd.stores.values()) == 1


def test_packets_wait_for_a_route() -> None:
    crowd = Crowd([(0.0, 0.0), (5_000.0, 0.0)], MechanismSpec.of("PL/SG", timeout=20.0))
    crowd.run(10)
    metadata = crowd.publish("n1", "a", "t", content=b"here")
    crowd.download("n0", metadata)
    crowd.run(1)
    assert _router(crowd, "n0").statistics().waiting == 1
    crowd.world.motion.put(1, 100.0, 0.0)
    crowd.run(16)
    assert [outcome.content for what, outcome in crowd.heard.outcomes if what == "download"] == [b"here"]


def test_a_stopped_router_is_silent() -> None:
    crowd = Crowd([(0.0, 0.0), (50.0, 0.0)], PLSG)
    crowd.run(20)
    _router(crowd, "n0").stop()
    before = crowd.network.links["n0"].books["sent", "crowd-routes"][0]
    crowd.run(60)
    assert crowd.network.links["n0"].books["sent", "crowd-routes"][0] == before
    assert PORT not in crowd.network.links["n0"].open_ports
