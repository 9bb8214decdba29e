"""The tree follows from link states alone: minimum spanning, the same for everybody, quick to ask."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.model.geometry import Point, distance
from nearcast.overlay.topology.given import given_topology
from nearcast.overlay.topology.link_state import KnownStates, LinkState, LinkStates, digest_of, flaw_in
from nearcast.overlay.topology.spanning_tree import Edge, Forest, tree_at

NAMES = "abcdefgh"
Weights = dict[Edge, int]


def states_of(weights: Weights, *, number: int = 1) -> list[LinkState]:
    links: dict[str, list[tuple[str, int]]] = {name: [] for name in NAMES}
    for (one, other), weight in weights.items():
        links[one].append((other, weight))
        links[other].append((one, weight))
    return [LinkState(name, 1, number, (0.0, 0.0), tuple(sorted(links[name]))) for name in NAMES]


def known(states: list[LinkState]) -> LinkStates:
    kept = LinkStates()
    for state in states:
        kept.take(state)
    return kept


def path(weights: Weights, edges: set[Edge], start: str, end: str) -> list[Edge] | None:
    """By trying: the edges between two routers."""
    if start == end:
        return []
    for edge in edges:
        if start in edge:
            there = edge[0] if edge[1] == start else edge[1]
            rest = path(weights, edges - {edge}, there, end)
            if rest is not None:
                return [edge, *rest]
    return None


GRAPHS = st.dictionaries(st.sampled_from(list(combinations(NAMES, 2))), st.integers(0, 4), max_size=20)


@given(GRAPHS)
def test_the_tree_spans_what_hangs_together_and_every_edge_left_out_is_the_heaviest_of_its_circle(
    weights: Weights,
) -> None:
    states = known(states_of(weights))
    for name in NAMES:
        tree = tree_at(name, states)
        edges = set(tree.spanning.edges)
        assert set(tree.routers) == {other for other in NAMES if path(weights, set(weights), name, other) is not None}
        assert len(edges) == len(tree.routers) - 1
        assert tree.root == min(tree.routers)
        for edge in set(weights) - edges:
            if edge[0] in tree:
                circle = path(weights, edges, *edge)
                assert circle is not None
                assert all((weights[step], step) < (weights[edge], edge) for step in circle)


@given(GRAPHS, st.randoms(use_true_random=False))
def test_whoever_knows_the_same_has_the_same_tree_whatever_order_it_came_in(weights: Weights, random: object) -> None:
    states = states_of(weights)
    mixed = list(states)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    for name in NAMES:
        one, other = Forest(states).tree_of(name), Forest(mixed).tree_of(name)
        assert one.edges == other.edges
        assert one.identity == other.identity
        assert one.digest == other.digest
        assert all(member in one for member in one.routers)
        assert {Forest(mixed).tree_of(member).identity for member in one.routers} == {one.identity}


@given(GRAPHS)
def test_the_next_hop_is_the_first_step_on_the_only_way(weights: Weights) -> None:
    states = known(states_of(weights))
    for name in NAMES:
        tree = tree_at(name, states)
        for other in NAMES:
            way = path(weights, set(tree.spanning.edges), name, other)
            if not way:  # itself, or out of reach
                assert tree.next_hop(other) is None
                assert (other in tree) == (other == name)
            else:
                first = way[0]
                assert tree.next_hop(other) == (first[0] if first[1] == name else first[1])
                assert tree.next_hop(other) in tree.neighbours


def test_a_link_counts_if_both_ends_speak_of_it_and_weighs_what_the_heavier_says() -> None:
    def state(router: str, *links: tuple[str, int]) -> LinkState:
        return LinkState(router, 1, 1, (0.0, 0.0), links)

    states = [
        state("a", ("b", 1), ("c", 1)),
        state("b", ("a", 5), ("c", 2)),
        state("c", ("b", 3)),
        state("d", ("e", 1)),
    ]
    tree = tree_at("a", known(states))
    assert tree.spanning.edges == (("a", "b"), ("b", "c"))
    both = [states[0], states[1], state("c", ("a", 4), ("b", 3))]
    assert tree_at("a", known(both)).spanning.edges == (("a", "c"), ("b", "c"))


def test_the_identity_is_that_of_routers_lives_and_edges_and_of_nothing_else() -> None:
    weights = {("a", "b"): 1, ("b", "c"): 2, ("a", "c"): 3}
    identity = tree_at("a", known(states_of(weights))).identity
    assert tree_at("c", known(states_of(weights, number=9))).identity == identity
    assert tree_at("a", known(states_of({**weights, ("a", "c"): 7}))).identity == identity
    assert tree_at("a", known(states_of({**weights, ("b", "c"): 4}))).identity != identity
    returned = [LinkState(s.router, 2 if s.router == "b" else 1, 2, s.place, s.links) for s in states_of(weights)]
    assert tree_at("a", known(returned)).identity != identity


def test_a_tree_as_deep_as_it_has_routers_is_no_trouble() -> None:
    names = [f"{number:05}" for number in range(5_000)]
    chain = given_topology(dict.fromkeys(names, Point(0, 0)), pairwise(names))
    tree = tree_at(names[2_500], LinkStates(chain))
    assert (tree.next_hop(names[0]), tree.next_hop(names[-1])) == (names[2_499], names[2_501])


CHANGES = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5), st.booleans()), max_size=30)


@given(st.sets(st.sampled_from(NAMES)), CHANGES)
def test_the_newest_link_state_stays_and_the_digest_is_that_of_what_is_known(
    given_names: set[str], changes: list[tuple[str, int, bool]]
) -> None:
    first = {name: LinkState(name, 0, 2, (0.0, 0.0), ()) for name in sorted(given_names)}
    digest = 0
    for state in first.values():
        digest ^= digest_of(state)
    states, expected = LinkStates(KnownStates(first, digest)), dict(first)
    for router, number, forget in changes:
        if forget:
            states.forget(router)
            expected.pop(router, None)
            continue
        state = LinkState(router, 0, number, (1.0, 1.0), ())
        newer = router not in expected or expected[router].number < number
        assert states.take(state) == newer
        if newer:
            expected[router] = state
    assert {state.router: state for state in states} == expected
    assert {name: states.get(name) for name in NAMES} == {name: expected.get(name) for name in NAMES}
    digest = 0
    for state in expected.values():
        digest ^= digest_of(state)
    assert states.digest == digest


@pytest.mark.parametrize(
    "wrong",
    [
        LinkState("", 0, 0, (0.0, 0.0), ()),
        LinkState("a", 0, -1, (0.0, 0.0), ()),
        LinkState("a", 0, 2**62, (0.0, 0.0), ()),
        LinkState("a", -1, 0, (0.0, 0.0), ()),
        LinkState("a", 0, 0, (91.0, 0.0), ()),
        LinkState("a", 0, 0, (0.0, float("nan")), ()),
        LinkState("a", 0, 0, (0.0, 0.0), (("a", 1),)),
        LinkState("a", 0, 0, (0.0, 0.0), (("b", 1), ("b", 2))),
        LinkState("a", 0, 0, (0.0, 0.0), (("c", 1), ("b", 2))),
        LinkState("a", 0, 0, (0.0, 0.0), (("b", -1),)),
    ],
)
def test_link_states_that_cannot_be_true_are_recognised(wrong: LinkState) -> None:
    assert flaw_in(wrong) is not None
    assert flaw_in(LinkState("a", 0, 0, (0.0, 0.0), (("b", 1), ("c", 2)))) is None


def test_a_given_topology_weighs_links_by_their_length() -> None:
    places = {"a": Point(0, 0), "b": Point(0, 1), "c": Point(1, 0)}
    states = given_topology(places, [("b", "a"), ("a", "c")], start=5)
    assert states.states["a"].links == (
        ("b", round(distance(places["a"], places["b"]))),
        ("c", round(distance(places["a"], places["c"]))),
    )
    assert all(state.life == state.number == 5 for state in states.states.values())


@pytest.mark.parametrize("link", [("a", "a"), ("a", "z"), ("z", "a")])
def test_a_given_link_needs_two_ends(link: Edge) -> None:
    with pytest.raises(InvalidInput, match="no link between"):
        given_topology({"a": Point(0, 0)}, [link])
