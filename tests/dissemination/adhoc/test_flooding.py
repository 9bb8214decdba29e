"""FLOODING and its kin: who is reached, and how often anybody sends."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dissemination.adhoc.village import (
    EVERYWHERE,
    Frame,
    Village,
    chain,
    connected_to,
    nowhere,
    of,
    scattered,
    star,
)

from nearcast.dissemination.adhoc import registry
from nearcast.dissemination.adhoc.gossip import Gossip
from nearcast.dissemination.wire import message_of
from nearcast.runtime.simulation.radio.network import RadioNetwork
from nearcast.runtime.simulation.radio.profile import wifi_b
from nearcast.transition.registry import Entry
from nearcast.transition.specification import MechanismSpec

FLOODING = of("FLOODING")
SPREADING = [FLOODING, of("GOSSIP", p=0.7), of("HYPERG"), of("PLAN-B")]
CROWDS = st.tuples(st.randoms(use_true_random=False), st.integers(2, 25), st.floats(50.0, 400.0)).map(
    lambda drawn: scattered(*drawn)
)


@given(CROWDS, st.booleans())
def test_flooding_reaches_all_that_hops_can_reach_and_each_sends_once(
    places: list[tuple[float, float]], local: bool
) -> None:
    village = Village(places, FLOODING)
    village.publish(0, "e", local=local)
    village.after(1.0)
    reachable = connected_to(0, places)
    assert village.reached("e") == reachable - {0}
    assert sorted(village.senders("e")) == sorted(reachable)


def test_a_notification_says_how_many_hops_it_took_and_over_what_path() -> None:
    village = Village(nowhere(4), FLOODING, edges=chain(4))
    village.publish(0, "e")
    village.after(1.0)
    rows = [(client, path, outcome, hops) for _, _, client, path, outcome, _, hops in village.rows["notifications"]]
    # The publisher hears its own event back from its neighbour: a copy, which is no row.
    delivered = [("h1", "wifi", "delivered", 1), ("h2", "wifi", "delivered", 2), ("h3", "wifi", "delivered", 3)]
    assert sorted(row for row in rows if row[2] == "delivered") == delivered
    assert [row for row in rows if row[2] != "delivered"] == []


def unmarked(frames: list[Frame]) -> list[tuple[int, int, tuple[tuple[str, int], ...]]]:
    return [(frame.time, frame.sender, frame.events) for frame in frames]


@given(CROWDS, st.integers(0, 99))
@settings(max_examples=30)
def test_gossip_at_certainty_is_flooding_frame_by_frame(places: list[tuple[float, float]], seed: int) -> None:
    runs = []
    for mechanism in (FLOODING, of("GOSSIP", p=1.0)):
        village = Village(places, mechanism, seed=seed)
        for number in range(3):
            village.publish(number % len(places), f"e{number}")
            village.after(0.004)
        village.after(1.0)
        runs.append(unmarked(village.frames))
    assert runs[0] == runs[1]
    assert runs[0]


class OnAir(Village):
    """The same on a radio, with carrier sense, backoff and collisions."""

    def _network(self, _pairs: object, *, check_wire: bool) -> RadioNetwork:
        return RadioNetwork(self.simulation, wifi_b(), self.world.motion, check_wire=check_wire)


def test_on_the_radio_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    # A name as long as the other: the mechanism stands in every frame, and longer frames take longer.
    monkeypatch.setitem(registry._OURS, "CERTAIN!", Entry(Gossip, {"p": 1.0}))
    places = scattered(Random(3), 40, 300.0)
    outcomes = []
    for mechanism in (FLOODING, of("CERTAIN!")):
        village = OnAir(places, mechanism)
        for number in range(40):
            village.publish(number, f"e{number}")
            village.after(0.02)
        village.after(2.0)
        outcomes.append((village.rows["notifications"], village.total("forwarded"), village.network.statistics()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1] > 1_000


def test_flooding_reaches_nearly_all_on_an_unloaded_radio() -> None:
    random = Random(7)
    missed = wanted = 0
    for seed in range(10):
        places = scattered(random, 30, 250.0)
        village = OnAir(places, FLOODING, seed=seed)
        village.publish(0, "e")
        village.after(1.0)
        reachable = connected_to(0, places) - {0}
        assert village.reached("e") <= reachable
        missed, wanted = missed + len(reachable - village.reached("e")), wanted + len(reachable)
    assert missed / wanted < 0.02
    assert wanted > 200


@pytest.mark.parametrize("mechanism", [of("BROADCAST"), of("GOSSIP", p=0.0)])
def test_one_hop_is_one_hop(mechanism: MechanismSpec) -> None:
    village = Village(nowhere(4), mechanism, edges=chain(4))
    village.publish(1, "e")
    village.after(1.0)
    assert village.reached("e") == {0, 2}
    assert village.senders("e") == [1]


def test_unicast_reaches_whom_it_is_for_if_they_are_near() -> None:
    village = Village(nowhere(4), of("UNICAST"), edges=star(2))
    village.adhoc(0).disseminate(message_of(village.event(0, "e")), ["h2", "h3"])
    village.after(1.0)
    assert village.reached("e") == {2}
    assert [(frame.sender, frame.receiver) for frame in village.frames] == [(0, "h2"), (0, "h3")]
    village.publish(0, "nobody named")
    village.after(1.0)
    assert len(village.frames) == 2


@given(CROWDS, st.sampled_from(SPREADING), st.floats(0.0, 0.5), st.integers(0, 9))
def test_nobody_sends_an_event_on_twice_and_nobody_gets_it_twice_whatever_is_lost(
    places: list[tuple[float, float]], mechanism: MechanismSpec, loss: float, seed: int
) -> None:
    village = Village(places, mechanism, seed=seed)
    random = Random(seed)
    village.network.lost = lambda _sender, _receiver: random.random() < loss
    village.after(0.3)
    for number in range(3):
        village.publish(number % len(places), f"e{number}")
        village.after(0.01)
    village.after(1.0)
    sent = Counter((frame.sender, name) for frame in village.frames for name, _ in frame.events)
    assert sum(count - 1 for count in sent.values()) <= village.total("repeated")
    assert mechanism.name == "HYPERG" or village.total("repeated") == 0
    for node in range(len(places)):
        got = village.listener(node).got
        assert len(got) == len(set(got))
    assert village.total("forwarded") == sum(hops > 1 for frame in village.frames for _, hops in frame.events), (
        "the books say what was on air"
    )


def test_what_others_publish_to_elsewhere_is_forwarded_by_whoever_hears_it() -> None:
    nobody = Village(nowhere(3), FLOODING, edges=chain(3), subscriptions=())
    nobody.publish(0, "local")
    nobody.publish(0, "elsewhere", local=False)
    nobody.after(1.0)
    assert nobody.senders("local") == [0]
    assert nobody.senders("elsewhere") == [0, 1, 2]
    assert nobody.total("fenced") == 1


def test_the_same_bytes_come_out_of_the_wire() -> None:
    village = Village(nowhere(3), FLOODING, edges=chain(3), check_wire=True, subscriptions=[EVERYWHERE])
    village.publish(0, "e", attributes={"kind": "jam", "cars": 3}, tags=["a", "b"], payload=b"\x00\xff")
    village.after(1.0)
    assert village.reached("e") == {1, 2}
