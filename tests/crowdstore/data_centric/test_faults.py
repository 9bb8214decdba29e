"""Whatever is lost, whoever fails, comes back or walks about: what must never happen does not, and in the end all is well again.

What must never happen: that an application hears of something it did not ask for, or twice, or for a subscription that it has ended; and, as
long as nothing is lost, that somebody who subscribes after a withdrawal was acknowledged hears of what was withdrawn.  (With losses, a member that
has not heard of the withdrawal may be the only one left before it has compared what it keeps with others: nobody can tell then.)  What must
happen: each operation of a host that stays up ends, once; members of a cell come to have the same; and from then on everything works.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crowdstore.crowd import Crowd
from tests.crowdstore.data_centric.venue import JOINED, cell_of, dcs, in_cell, storage, tag_at, walk
from tests.crowdstore.lossy import lossy
from tests.effort import campaign, examples

from nearcast.crowdstore.data_centric.entries import Entry
from nearcast.crowdstore.geographic.grid import Cell
from nearcast.runtime.simulation.disc import DiscNetwork

HOSTS = 8
COLUMNS, ROWS = 3, 2
FORMULAS = ("a", "b & !a", "a | b", "!a", "a & b | c")

nodes = st.integers(0, HOSTS - 1)
steps = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(st.just("publish"), nodes, st.frozensets(st.sampled_from("abc"), min_size=1)),
            st.tuples(st.just("subscribe"), nodes, st.sampled_from(FORMULAS)),
            st.tuples(st.sampled_from(["unpublish", "unsubscribe", "download"]), nodes, st.integers(0, 9)),
            st.tuples(st.just("walk"), nodes, st.tuples(st.integers(0, COLUMNS - 1), st.integers(0, ROWS - 1))),
            st.tuples(st.just("switch"), nodes, st.none()),
        ),
        st.sampled_from([0, 0.5, 2, 8, 20]),
    ),
    max_size=25,
)


class Fate:
    """What happens to a crowd, and what its applications asked for while they were up."""

    def __init__(self, network: type[DiscNetwork]) -> None:
        self.crowd = Crowd(
            [in_cell(node % COLUMNS, node // COLUMNS % ROWS, node) for node in range(HOSTS)],
            dcs(COLUMNS, ROWS),
            network=network,
            remembering=True,
        )
        self.crowd.run(JOINED)
        self.ended: list[tuple[Any, Any, int]] = []

    def happens(self, what: str, node: int, argument: Any) -> None:
        crowd, name = self.crowd, f"n{node}"
        host = crowd.world.hosts[name]
        there = [key for key, thing in crowd.things.items() if thing.withdrawn is None]
        own = [key for key in there if key.owner == name]
        wished = [key for key, wish in crowd.wishes.items() if key.owner == name and wish.ended is None]
        if what == "switch":
            if host.up:
                host.fail()
            else:
                host.join()
        elif what == "walk":
            walk(crowd, name, argument[0], argument[1], number=node)
        elif not host.up:
            return
        elif what == "publish":
            crowd.publish(name, f"o{len(crowd.things)}", *sorted(argument))
        elif what == "subscribe":
            crowd.subscribe(name, argument)
        elif what == "unpublish" and own:
            crowd.unpublish(name, own[argument % len(own)].name)
        elif what == "unsubscribe" and wished:
            crowd.unsubscribe(name, wished[argument % len(wished)])
            heard = {pair for pair in crowd.heard.notified if pair[0] == wished[argument % len(wished)]}
            self.ended.append((wished[argument % len(wished)], heard, crowd.simulation.now()))
        elif what == "download" and there:
            crowd.download(name, crowd.things[there[argument % len(there)]].metadata)

    def calm(self) -> None:
        """Everybody is there again, and stands; each in a cell in which there is somebody in reach."""
        for host in self.crowd.world.hosts.values():
            host.join()
        self.crowd.run(100)

    def never(self, *, lossless: bool) -> None:
        crowd = self.crowd
        heard = Counter(crowd.heard.notified)
        assert set(heard.values()) <= {1}, "twice"
        for wanted, published in heard:
            wish, thing = crowd.wishes[wanted], crowd.things[published]
            assert wish.formula.accepts(thing.metadata.tags), "not asked for"
            assert wish.frame.contains(thing.metadata.published), "not asked for"
            if lossless and thing.forgotten is not None:
                assert wish.made < thing.forgotten, "withdrawn"
        for wanted, before, _ in self.ended:
            assert {pair for pair in heard if pair[0] == wanted} == before, "after its end"
        downloads = [outcome for what, outcome in crowd.heard.outcomes if what == "download"]
        assert all(outcome.content in (None, b"content") for outcome in downloads)

    def well(self) -> None:
        """Members of a cell have the same; nothing is under way; all that is asked for now succeeds."""
        crowd = self.crowd
        by_cell: dict[Cell | None, list[dict[tuple[str, ...], Entry]]] = {}
        for name in crowd.stores:
            there = storage(crowd, name)
            assert there.joining.complete
            assert crowd.stores[name].statistics().under_way == 0
            by_cell.setdefault(cell_of(crowd, name), []).append(there.desk.state.entries)
        assert None not in by_cell
        assert all(states.count(states[0]) == len(states) for states in by_cell.values())

    def works(self) -> None:
        crowd = self.crowd
        before = len(crowd.heard.outcomes)
        tags = [tag_at(crowd, column, row) for column in range(COLUMNS) for row in range(ROWS)]
        made = [crowd.publish(f"n{number}", "last", tag) for number, tag in enumerate(tags)]
        crowd.run(10)
        keys = [crowd.subscribe(f"n{number + 1}", tag) for number, tag in enumerate(tags)]
        crowd.run(10)
        for number, each in enumerate(made):
            crowd.download(f"n{number + 2}", each)
        crowd.run(20)
        assert {(key, each.key) for key, each in zip(keys, made, strict=True)} <= {*crowd.heard.notified}
        assert [outcome.failure for _, outcome in crowd.heard.outcomes[before:]] == [None] * 3 * len(tags)


def _play(script: list[tuple[tuple[str, int, Any], float]], network: type[DiscNetwork], *, lossless: bool) -> Fate:
    fate = Fate(network)
    for step, pause in script:
        fate.happens(*step)
        fate.crowd.run(pause)
    fate.calm()
    fate.never(lossless=lossless)
    return fate


@examples(20)
@given(steps)
def test_hosts_fail_return_and_walk_about(script: list[tuple[tuple[str, int, Any], float]]) -> None:
    fate = _play(script, DiscNetwork, lossless=True)
    fate.well()
    fate.works()
    fate.never(lossless=True)


@examples(20)
@given(steps, st.sampled_from([0.05, 0.2]))
def test_hosts_fail_return_and_walk_about_while_much_is_lost(
    script: list[tuple[tuple[str, int, Any], float]], share: float
) -> None:
    fate = _play(script, lossy(share), lossless=False)
    assert all(store.statistics().under_way == 0 for store in fate.crowd.stores.values())


@campaign
@pytest.mark.parametrize("share", [0.0, 0.1])
@examples(60)
@given(script=steps)
def test_many_fates(share: float, script: list[tuple[tuple[str, int, Any], float]]) -> None:
    fate = _play(script, lossy(share) if share else DiscNetwork, lossless=not share)
    if not share:
        fate.well()
        fate.works()


def test_what_a_host_published_and_wanted_before_it_failed_is_there_when_it_is_back() -> None:
    """With its memory; meanwhile others have what it published, and what it is not told it is told then."""
    fate = Fate(DiscNetwork)
    crowd = fate.crowd
    tag = tag_at(crowd, 2, 1)
    made = crowd.publish("n0", "x", tag)
    crowd.subscribe("n0", tag)
    crowd.run(5)
    crowd.world.hosts["n0"].fail()
    crowd.run(20)
    crowd.publish("n1", "meanwhile", tag)
    crowd.subscribe("n2", tag)
    crowd.download("n3", made)
    crowd.run(10)
    assert crowd.heard.outcomes[-1][1].content == b"content"
    crowd.world.hosts["n0"].join()
    crowd.run(40)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())
    crowd.unpublish("n0", "x")
    crowd.run(10)
    assert crowd.heard.outcomes[-1][1].ok
    crowd.subscribe("n4", tag)
    crowd.run(5)
    assert sorted(crowd.heard.notified) == sorted(crowd.expected())


@pytest.mark.parametrize("skew", [-3_600, -300, 300, 3_600])
def test_a_clock_that_is_wrong_harms_only_what_it_dates(skew: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects bear their owner's time; that they can be withdrawn, and subscriptions ended, does not depend on it."""
    crowd = Fate(DiscNetwork).crowd
    tag = tag_at(crowd, 1, 1)
    desk = storage(crowd, "n0").desk
    monkeypatch.setattr(desk, "now", lambda: desk.host.now() + skew * 1_000_000)
    key = crowd.subscribe("n0", tag)
    crowd.run(15)
    crowd.publish("n0", "x", tag)
    crowd.run(15)
    if skew > desk.state.memory // 1_000_000:
        # Places from the far future would stay for ever: they are not taken, and the host is told that it failed.
        assert not any(outcome.ok for _, outcome in crowd.heard.outcomes)
        return
    assert (key, crowd.things.popitem()[1].metadata.key) in crowd.heard.notified
    crowd.stores["n0"].unpublish("x")
    crowd.unsubscribe("n0", key)
    crowd.run(15)
    crowd.subscribe("n5", tag)
    crowd.run(10)
    assert len(crowd.heard.notified) == 1
    assert all(outcome.ok for _, outcome in crowd.heard.outcomes)
