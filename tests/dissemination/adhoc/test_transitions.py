"""One mechanism gives way to another while events are on their way."""

from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dissemination.adhoc.village import Village, chain, connected_to, nowhere, of, scattered

from nearcast.dissemination.adhoc.carrier import AdHocSettings
from nearcast.transition.specification import NULL, MechanismSpec

MECHANISMS = [of("BROADCAST"), of("UNICAST"), of("FLOODING"), of("GOSSIP"), of("HYPERG"), of("PLAN-B"), NULL]
PAIRS = list(permutations(MECHANISMS, 2))


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=[f"{one.name} to {other.name}" for one, other in PAIRS])
def test_nothing_comes_twice_and_those_who_run_the_same_go_on_hearing_each_other(
    source: MechanismSpec, target: MechanismSpec
) -> None:
    places = scattered(Random(2), 30, 200.0)
    village = Village(places, source)
    village.after(0.2)
    order = Random(3).sample(range(30), 30)
    published: list[tuple[str, int]] = []
    for number, node in enumerate(order):
        # In the middle of what is on its way: hesitations last up to 50 ms.
        for publisher in Random(number).sample(range(30), 3):
            name = f"{number}/{publisher}"
            village.publish(publisher, name)
            published.append((name, publisher))
        village.after(0.003)
        village.exchange(node, target)
    village.after(0.5)
    for node in range(30):
        got = village.listener(node).got
        assert len(got) == len(set(got))
        assert village.adhoc(node).running == target
    # Neighbours hear each other directly, if both run something that sends without being told to whom.
    silent = {of("UNICAST"), NULL}
    running = [source] * 30
    for (name, publisher), step in zip(published, sorted(list(range(30)) * 3), strict=True):
        for changed in order[:step]:
            running[changed] = target
        reached = village.reached(name)
        near = connected_to(publisher, [place if place in _near(places, publisher) else (1e6, 0.0) for place in places])
        for node in near - {publisher}:
            if running[publisher] == running[node] and running[publisher] not in silent:
                later = order.index(node)
                # Who changed to nothing before the frame arrived may have missed it.
                assert node in reached or (target == NULL and later == step)
    village.after(0.5)
    village.publish(0, "at last")
    village.after(0.5)
    assert (0 in village.senders("at last")) == (target not in silent)


def _near(places: list[tuple[float, float]], node: int) -> set[tuple[float, float]]:
    x, y = places[node]
    return {place for place in places if (place[0] - x) ** 2 + (place[1] - y) ** 2 <= 88.0**2}


@given(st.lists(st.sampled_from(MECHANISMS), min_size=1, max_size=6), st.integers(0, 20))
@settings(max_examples=40)
def test_any_way_through_the_mechanisms_leaves_no_timer_and_no_state_behind(
    way: list[MechanismSpec], seed: int
) -> None:
    village = Village(nowhere(3), of("FLOODING"), edges=chain(3), seed=seed)
    for number, mechanism in enumerate(way):
        village.publish(0, f"e{number}")
        village.after(0.002)
        for node in range(3):
            village.exchange(node, mechanism)
    for node in range(3):
        village.exchange(node, of("BROADCAST"))
    village.after(0.1)
    before = len(village.network.frames)
    village.after(5.0)
    assert len(village.network.frames) == before, "nobody says hello any more, and nothing waits"


@pytest.mark.parametrize("target", [of("GOSSIP", p=0.0), of("HYPERG"), of("PLAN-B"), of("FLOODING", hesitation=0.01)])
def test_what_waits_is_sent_on_by_the_successor(target: MechanismSpec) -> None:
    village = Village(nowhere(3), of("FLOODING", hesitation=5.0), edges=chain(3))
    village.publish(0, "e")
    village.after(0.01)
    assert village.reached("e") == {1}
    village.exchange(1, target)
    village.after(0.1)
    assert village.reached("e") == {1, 2}
    assert village.senders("e").count(1) == 1


@pytest.mark.parametrize("target", [of("BROADCAST"), NULL])
def test_a_successor_that_sends_nothing_on_does_not_do_that_either(target: MechanismSpec) -> None:
    village = Village(nowhere(3), of("FLOODING", hesitation=5.0), edges=chain(3))
    village.publish(0, "e")
    village.after(0.01)
    village.exchange(1, target)
    village.after(6.0)
    assert village.senders("e") == [0]


def test_events_of_hosts_that_run_something_else_are_taken_or_lost_as_the_documents_have_it() -> None:
    reached = {}
    for foreign in (True, False):
        how = AdHocSettings(of("FLOODING"), self_healing=False, foreign=foreign)
        village = Village(nowhere(4), of("FLOODING"), edges=chain(4), settings=how)
        village.exchange(0, of("GOSSIP", p=1.0))
        village.exchange(1, of("GOSSIP", p=0.99))
        village.publish(0, "e")
        village.after(1.0)
        reached[foreign] = village.reached("e")
        assert village.adhoc(2).statistics().foreign > 0
        assert village.adhoc(1).statistics().foreign == (1 if foreign else 0), "parameters make no other mechanism"
    assert reached == {True: {1, 2, 3}, False: {1}}


def test_a_mechanism_may_not_speak_while_it_is_exchanged() -> None:
    village = Village(nowhere(2), of("FLOODING"), edges=chain(2))
    engine = village.adhoc(0)._host.components[0].engine  # type: ignore[attr-defined]
    before = len(village.network.frames)
    for mechanism in MECHANISMS:
        engine.execute("lc", mechanism)
    assert len(village.network.frames) == before
    assert engine.statistics().failed == 0
