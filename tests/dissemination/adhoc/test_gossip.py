"""GOSSIP and HYPERG reach the share that their rules predict."""

import math
from itertools import pairwise
from random import Random

import pytest
from tests.dissemination.adhoc.village import Village, chain, clique, nowhere, of, scattered, star

from nearcast.dissemination.adhoc.hypergossip import HyperGossipSpreading
from nearcast.errors import TransitionFailed
from nearcast.transition.engine import HostEngine
from nearcast.transition.specification import MechanismSpec

EVENTS = 400


def shares(village: Village, publisher: int, events: int = EVENTS) -> list[float]:
    """Of many events, the share that reached each host."""
    village.after(1.0)
    for number in range(events):
        village.publish(publisher, f"e{number}")
        village.after(0.25)
    return [len(village.listener(node).got) / events for node in range(len(village.places))]


def close(share: float, expected: float, events: int = EVENTS) -> bool:
    """Within four standard deviations of chance."""
    return abs(share - expected) <= 4 * math.sqrt(expected * (1 - expected) / events) + 1e-9


@pytest.mark.parametrize("p", [0.0, 0.4, 0.7, 1.0])
def test_along_a_chain_gossip_loses_one_toss_per_hop(p: float) -> None:
    length = 6
    found = shares(Village(nowhere(length), of("GOSSIP", p=p), edges=chain(length)), 0)
    for hop in range(1, length):
        assert close(found[hop], p ** (hop - 1)), (hop, found)


def test_around_a_star_all_hear_it_or_none_does() -> None:
    leaves = 8
    village = Village(nowhere(leaves + 1), of("GOSSIP"), edges=star(leaves))
    found = shares(village, 1)
    assert found[0] == 1.0
    assert close(found[2], 0.4)
    assert len(set(found[2:])) == 1


def test_a_new_probability_holds_at_once_and_only_within_its_bounds() -> None:
    village = Village(nowhere(3), of("GOSSIP", p=0.0), edges=chain(3))
    engine = village.host(1).component(HostEngine).engine
    village.publish(0, "before")
    engine.execute_self("lc", "p", 1.0)
    village.publish(0, "after")
    village.after(1.0)
    assert village.reached("after") == {1, 2}
    assert village.adhoc(1).running == of("GOSSIP", p=1.0)
    with pytest.raises(TransitionFailed, match="p"):
        engine.execute_self("lc", "p", 1.5)
    assert village.adhoc(1).running == of("GOSSIP", p=1.0)


def spreading(village: Village, node: int) -> HyperGossipSpreading:
    active = village.adhoc(node)._proxy.active
    assert isinstance(active, HyperGossipSpreading)
    return active


def test_hypergossip_knows_who_is_near_and_forgets_who_has_gone() -> None:
    village = Village(nowhere(5), of("HYPERG"), edges=star(4))
    village.after(0.3)
    assert set(spreading(village, 0).neighbours) == {"h1", "h2", "h3", "h4"}
    assert [set(spreading(village, leaf).neighbours) for leaf in (1, 4)] == [{"h0"}, {"h0"}]
    village.world.hosts["h2"].fail()
    village.after(0.5)
    assert "h2" in spreading(village, 0).neighbours, "a few hellos may be lost"
    village.after(1.0)
    assert set(spreading(village, 0).neighbours) == {"h1", "h3", "h4"}


def test_hellos_come_every_hundred_milliseconds() -> None:
    village = Village(nowhere(2), of("HYPERG"), edges=[(0, 1)])
    village.after(10.0)
    assert [sum(frame.sender == node for frame in village.network.frames) for node in (0, 1)] == [100, 100]
    greeted = [frame.time for frame in village.network.frames if frame.sender == 0]
    assert {later - earlier for earlier, later in pairwise(greeted)} == {100_000}


@pytest.mark.parametrize("forwarders", [1.0, 1.6, 2.0, 5.0])
def test_along_a_chain_hypergossip_tosses_by_its_two_neighbours(forwarders: float) -> None:
    length, p = 5, min(1.0, forwarders / 2)
    found = shares(Village(nowhere(length), of("HYPERG", forwarders=forwarders), edges=chain(length)), 0)
    for hop in range(1, length):
        assert close(found[hop], p ** (hop - 1)), (hop, found)


@pytest.mark.parametrize("leaves", [3, 5, 10, 20])
def test_in_the_middle_of_a_star_hypergossip_sends_on_the_less_the_more_are_near(leaves: int) -> None:
    village = Village(nowhere(leaves + 1), of("HYPERG", forwarders=4.0), edges=star(leaves))
    found = shares(village, 1, events=200)
    assert close(found[2], min(1.0, 4.0 / leaves), 200), found


def test_whoever_hears_enough_copies_while_it_waits_does_not_send_on() -> None:
    """Among hosts that all hear each other, so many send before the rest have heard enough, if they send one by one."""
    senders = {}
    for copies in (1, 2, 4):
        mechanism = of("HYPERG", forwarders=1_000.0, copies=copies, hesitation=5.0)
        village = Village(nowhere(30), mechanism, edges=clique(range(30)))
        village.after(0.5)
        village.publish(0, "e")
        village.after(8.0)
        assert village.reached("e") == set(range(1, 30))
        senders[copies] = village.total("forwarded")
        assert village.total("cancelled") == 29 - senders[copies]
    # A copy takes a millisecond; of 29 that wait up to five seconds, hardly any two are closer than that.
    assert senders == {1: 1, 2: 2, 4: 4}


@pytest.mark.parametrize("mechanism", [of("GOSSIP", p=0.7), of("HYPERG", forwarders=8.0, copies=4)])
def test_in_a_crowd_nearly_all_are_reached_with_fewer_frames_than_flooding(mechanism: MechanismSpec) -> None:
    places = scattered(Random(5), 80, 350.0)
    reached, sent = {}, {}
    for each in (of("FLOODING"), mechanism):
        village = Village(places, each)
        village.after(0.5)
        for number in range(40):
            village.publish(number, f"e{number}")
            village.after(0.2)
        reached[each] = sum(len(village.reached(f"e{number}")) for number in range(40)) / (40 * 79)
        sent[each] = len(village.frames)
    assert reached[mechanism] > 0.9 * reached[of("FLOODING")]
    assert sent[mechanism] < 0.8 * sent[of("FLOODING")]
