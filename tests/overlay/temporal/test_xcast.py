"""Shares of trusted nodes, and messages that arrive although wires lose them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.routing_changes import edges_of
from tests.overlay.routing_worlds import GivenTree
from tests.overlay.temporal.worlds import Town

from nearcast.errors import InvalidEvent
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.routing.tree import packed, unpacked
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.temporal.messages import Delivery, Deposit, Span, trusted_node_of
from nearcast.overlay.temporal.settings import TemporalSettings
from nearcast.overlay.temporal.xcast import shares

SIZE = 9


@given(edges_of(SIZE), st.lists(st.integers(0, SIZE + 1), max_size=30), st.integers(0, SIZE - 1))
def test_every_trusted_node_gets_its_own_spans_over_links_that_carry_one_copy(
    edges: Sequence[tuple[int, int]], nodes: list[int], source: int
) -> None:
    names = [f"r{number}" for number in range(SIZE)]
    trees = {name: GivenTree(name, [(names[one], names[other]) for one, other in edges]) for name in names}
    spans = [Span(f"{number}@r{node}", 0, 1, 2) for number, node in enumerate(nodes)]
    arrived: dict[str, list[Span]] = {}
    copies: list[tuple[str, str]] = []
    waiting = [(names[source], spans)]
    while waiting:
        at, carried = waiting.pop()
        parts = shares(carried, at, trees[at].next_hop)
        assert sorted(span.vid for part in parts.values() for span in part) == sorted(span.vid for span in carried)
        for hop, part in parts.items():
            if hop == at:
                assert at not in arrived
                arrived[at] = part
            elif hop is not None:
                copies.append((at, hop))
                waiting.append((hop, part))
            else:
                assert {trusted_node_of(span.vid) for span in part} <= {"r9", "r10"}
    assert len(copies) == len(set(copies))
    assert {name: sorted(span.vid for span in found) for name, found in arrived.items()} == {
        name: found
        for name in names
        if (found := sorted(span.vid for span in spans if trusted_node_of(span.vid) == name))
    }


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_news_of_several_are_told_apart(parts: list[bytes]) -> None:
    assert unpacked(packed(parts)) == (parts if any(parts) else [b""])


@given(st.binary(max_size=60))
def test_news_that_nobody_could_have_said_do_no_harm(news: bytes) -> None:
    assert unpacked(news)


def test_what_is_lost_is_sent_again_and_taken_once() -> None:
    town = Town(2, [(0, 1)], TemporalSettings(tries=12, resend=1.0), seed=5)
    taken: list[str] = []
    failed: list[str] = []
    town.temporal["r001"].deposit = lambda deposit: taken.append(deposit.box)
    town.wires.loss = 0.5
    event = town.event("a = 1", TemporalPredicate("overlaps", town.now - 9, town.now))
    delivery = Delivery(routed(event, "r000"), ())
    for number in range(20):
        box = Deposit(box=f"b{number}", delivery=delivery)
        town.temporal["r000"].tell("r001", box, lambda: failed.append("!"))
    town.run(20)
    assert sorted(taken) == sorted(f"b{number}" for number in range(20))
    assert town.temporal["r000"].statistics().resent > 5
    town.world.hosts["r001"].fail()
    town.temporal["r000"].tell("r001", Deposit(box="x", delivery=delivery), lambda: failed.append("x"))
    town.run(30)
    assert failed[-1] == "x"


def test_spans_of_somebody_whom_no_tree_reaches_are_counted_and_dropped() -> None:
    town = Town(3, [(0, 1), (1, 2)], trusted=(0,))
    message = routed(town.event("a = 1", TemporalPredicate("overlaps", town.now - 9, town.now)), "r002")
    town.temporal["r002"].resolve(message, [Span("1@nowhere", 0, 1, 2), Span("1@r001", 0, 1, 2)], True)
    town.run(60)
    assert town.temporal["r002"].statistics().lost == 1  # nobody there
    assert town.temporal["r001"].statistics().lost == 1  # no trusted node there


def test_a_router_without_an_archive_refuses_messages_to_the_past() -> None:
    town = Town(2, [(0, 1)])
    town.routers["r000"].at_another_time = None
    with pytest.raises(InvalidEvent, match="archive"):
        town.publish(0, town.event("a = 1", TemporalPredicate("overlaps", 1, 2)))


def test_what_would_go_back_where_it_came_from_waits_a_moment_for_routers_to_agree_on_the_tree() -> None:
    town = Town(3, [(0, 1), (1, 2)], trusted=(0,))
    town.run(1)
    message = routed(town.event("a = 1", TemporalPredicate("overlaps", town.now - 9, town.now)), "r002")
    middle, last = town.temporal["r001"], town.temporal["r002"]
    ahead = GivenTree("r001", [("r000", "r002"), ("r002", "r001")])
    middle.tree_changed(ahead)  # to it, the way to the trusted node leads by the one that sends
    last.resolve(message, [Span("1@r000", 0, 1, 2)], True)
    town.run(1.5)
    assert (last.statistics().resolutions, middle.statistics().resolutions) == (1, 0)
    assert town.trusted["r000"].statistics().unknown == 0
    middle.tree_changed(GivenTree("r001", [("r000", "r001"), ("r001", "r002")]))
    town.run(5)
    assert (last.statistics().resolutions, middle.statistics().resolutions) == (1, 1)
    assert town.trusted["r000"].statistics().unknown == 1
