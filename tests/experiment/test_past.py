"""The lookups of E10 to E13, on a small overlay, against what can be counted by hand."""

from __future__ import annotations

from random import Random

import pytest

from nearcast.experiment.contextcast.history import Asked, Routers, added_hops, asked, hops, setup
from nearcast.experiment.contextcast.past import DEPTHS, breadth, consolidation, delay, load
from nearcast.overlay.temporal.messages import trusted_node_of

ROUTERS = 400


def message(edge: float = 0.3) -> Asked:
    return asked(setup(1, ROUTERS), Random(5), edge)


@pytest.mark.parametrize("name", DEPTHS)
def test_all_identities_come_to_their_trusted_nodes_over_the_fewest_links(name: str) -> None:
    town, sent = setup(1, ROUTERS), message()
    counts = Routers(town, sent, DEPTHS[name]).counts
    assert counts.resolved == sum(map(len, sent.found.values())) > 1_000
    assert counts.questions == sum(map(len, sent.ways.values()))
    if name == "SH":
        # One tree from each node to all trusted nodes of what it has found.
        links = 0
        for node, spans in sent.found.items():
            crossed = set()
            for trusted in {trusted_node_of(span.vid) for span in spans}:
                at = node
                while at != trusted:
                    at = town.spanning.next_hop(at, trusted) or ""
                    crossed.add(at)
            links += len(crossed)
        assert (counts.answers, counts.resolutions) == (0, links)


def test_every_leaf_and_every_branching_point_but_the_first_answers_once() -> None:
    town, sent = setup(1, ROUTERS), message()
    ways, found = sent.ways, sent.found
    branching = {router for router, onwards in ways.items() if len(onwards) + (router in found) > 1}
    counts = Routers(town, sent, DEPTHS["FCH"], resolving=False).counts
    assert counts.answers == len(branching | set(found)) - 1
    assert counts.answer_hops >= counts.answers
    assert len(counts.first_points) == 1
    assert counts.resolutions == 0


def test_the_less_is_collected_the_more_has_to_be_resolved() -> None:
    numbers = load(1, edge=0.3, messages=2, routers=ROUTERS)
    assert numbers["FCH"] < numbers["PCH2"] < numbers["PCH3"] < numbers["PCH4"] <= numbers["SH"]
    assert len({numbers[f"{name} resolved"] for name in DEPTHS}) == 1
    collected = consolidation(1, edge=0.3, messages=2, routers=ROUTERS)
    assert collected["FCH"] > collected["PCH2"] > collected["PCH3"] > collected["SH"] == 0


def test_a_target_four_times_as_large_has_four_times_as_many_nodes() -> None:
    small, large = (breadth(1, edge=edge, messages=60, routers=ROUTERS)["nodes"] for edge in (0.15, 0.3))
    assert 3.0 < large / small < 5.5


def test_who_collects_is_on_the_way_or_makes_it_longer() -> None:
    town, sent = setup(1, ROUTERS), message()
    (point,) = Routers(town, sent, DEPTHS["FCH"], resolving=False).counts.first_points
    longer, later = added_hops(town, sent, point)
    assert 0 <= longer <= later
    assert delay(1, edge=0.3, messages=3, routers=ROUTERS)["later"] > 0
    assert hops(town.spanning, point, point) == 0
