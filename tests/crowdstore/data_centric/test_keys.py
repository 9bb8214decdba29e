"""Which tag of a conjunction its key is, and so which cell keeps it (THYME 5.4.1)."""

from __future__ import annotations

from collections import Counter

from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import JOINED, dcs, in_cell, storage, tag_at

from nearcast.crowdstore.data_centric.entries import EVERYTHING, Part
from nearcast.crowdstore.data_centric.requests import key_of
from nearcast.crowdstore.formula import Conjunction
from nearcast.crowdstore.objects import SubscriptionKey


def test_any_tag_that_must_be_there_with_the_same_probability() -> None:
    conjunction = Conjunction(frozenset("abc"), frozenset("d"))
    drawn = Counter(key_of(conjunction, SubscriptionKey("ada", f"{number}")) for number in range(3_000))
    assert set(drawn) == {*"abc"}
    assert all(abs(count - 1_000) < 130 for count in drawn.values())  # five standard deviations
    assert key_of(Conjunction(frozenset(), frozenset("d")), SubscriptionKey("ada", "1")) == EVERYTHING


def _kept(crowd: Crowd) -> set[tuple[str, str]]:
    """Conjunctions, by who keeps them and by which key."""
    entries = ((name, each) for name in crowd.stores for each in storage(crowd, name).desk.state.entries.values())
    return {(name, each.tag) for name, each in entries if isinstance(each, Part)}


def _crowd() -> Crowd:
    crowd = Crowd([in_cell(number % 3, 0, number) for number in range(6)], dcs(3, 1), remembering=True)
    crowd.run(JOINED)
    return crowd


def test_who_returns_tells_the_same_cells_and_takes_all_of_it_back() -> None:
    crowd = _crowd()
    first, second = tag_at(crowd, 1), tag_at(crowd, 2)
    keys = [crowd.subscribe("n0", f"{first} & {second}") for _ in range(8)]
    crowd.run(5)
    before = _kept(crowd)
    assert {tag for _, tag in before} == {first, second}
    crowd.world.hosts["n0"].fail()
    crowd.run(20)
    crowd.world.hosts["n0"].join()
    crowd.run(60)
    assert _kept(crowd) == before
    for key in keys:
        crowd.unsubscribe("n0", key)
    crowd.run(20)
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)
    assert not _kept(crowd)
    crowd.publish("n3", "x", first, second)
    crowd.run(10)
    assert crowd.stores["n0"].nucleus.tally.late == 0


def test_who_ends_a_subscription_of_an_earlier_life_before_telling_of_it_again_ends_it_everywhere() -> None:
    crowd = _crowd()
    key = crowd.subscribe("n0", tag_at(crowd, 1))
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(20)
    crowd.world.hosts["n0"].join()
    crowd.unsubscribe("n0", key)
    crowd.run(60)
    assert crowd.heard.outcomes[-1][1].ok
    assert not _kept(crowd)
