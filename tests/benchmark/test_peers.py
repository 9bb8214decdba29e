"""Peers answer nearcast's question: the same receivers, outside the border band."""

import numpy as np
import pytest

from nearcast.benchmark.agreement import Agreement, Truth
from nearcast.benchmark.peers import PEERS, Pairs, Peer, RedisGeo
from nearcast.benchmark.workload import City, city

EVENTS = 256


@pytest.fixture(scope="module")
def world() -> City:
    return city(2_000, EVENTS)


@pytest.fixture(scope="module")
def truth(world: City) -> Truth:
    return Truth(world, EVENTS)


@pytest.mark.parametrize("kind", PEERS, ids=[kind.name for kind in PEERS])
def test_a_peer_gives_the_exact_answers(kind: type[Peer], world: City, truth: Truth) -> None:
    if reason := kind.available():
        pytest.skip(f"{kind.name}: {reason}")
    total = Agreement(0, 0, 0)
    with kind(world) as peer:
        for first in range(0, EVENTS, 100):
            last = min(first + 100, EVENTS)
            pairs = peer.pairs(peer.query(peer.prepare(first, last)))
            total += truth.check(pairs, first, last, filtered=False)
        assert peer.version() != "unknown"
    assert total.answers > 10 * EVENTS
    # Redis rounds positions to a quarter of a metre, which is wider than the band.
    allowed = total.answers // 200 if kind is RedisGeo else 0
    assert total.lacking + total.superfluous <= allowed


def everybody(world: City) -> Pairs:
    clients, events = len(world.ids), EVENTS
    return Pairs(np.repeat(np.arange(events), clients), np.tile(np.arange(clients), events))


def test_no_answer_and_every_answer_are_found_out(world: City, truth: Truth) -> None:
    nothing = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
    assert truth.check(nothing, 0, EVENTS, filtered=False).lacking > 10 * EVENTS
    assert truth.check(everybody(world), 0, EVENTS, filtered=False).superfluous > 1_000 * EVENTS


def test_an_answer_given_twice_is_superfluous(world: City, truth: Truth) -> None:
    once = Pairs(np.zeros(1, np.int64), np.zeros(1, np.int64))
    twice = Pairs(np.zeros(2, np.int64), np.zeros(2, np.int64))
    difference = truth.check(twice, 0, EVENTS, filtered=False).superfluous
    assert difference > truth.check(once, 0, EVENTS, filtered=False).superfluous


def test_topics_and_predicates_are_applied_to_spatial_answers(world: City, truth: Truth) -> None:
    left = truth.filtered(everybody(world), 0)
    for event, client in list(zip(left.event.tolist(), left.client.tolist(), strict=True))[:2_000]:
        assert world.interests[world.interest[client]].accepts(world.events.part(event, event + 1)).all()
    assert 0.8 < len(left.event) / (EVENTS * len(world.ids)) < 1.0
