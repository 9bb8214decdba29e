"""What may happen in an overlay: contexts come, change and go, and so do the edges of the tree."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.oracle.strategies import World, addressing, contexts
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidEvent
from nearcast.model.event import Event
from nearcast.model.predicate import Predicate
from nearcast.overlay.routing.wire import routed

Change = tuple[Any, ...]


def edges_of(size: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """A random tree: each router hangs on one before it, in some order."""
    parents = st.tuples(*(st.integers(0, number - 1) for number in range(1, size)))
    order = st.permutations(range(size))
    return st.tuples(order, parents).map(
        lambda drawn: [(drawn[0][child + 1], drawn[0][parent]) for child, parent in enumerate(drawn[1])]
    )


def changes(size: int, world: World, *, trees: bool = True) -> st.SearchStrategy[Change]:
    kinds: list[st.SearchStrategy[Change]] = [
        st.tuples(st.just("register"), st.integers(0, size - 1), contexts(world)),
        st.tuples(st.just("register"), st.integers(0, size - 1), contexts(world)),
        st.tuples(st.just("update"), st.integers(0, 99), contexts(world)),
        st.tuples(st.just("update"), st.integers(0, 99), contexts(world)),
        st.tuples(st.just("remove"), st.integers(0, 99)),
        st.tuples(st.just("run"), st.sampled_from([0.1, 0.5, 2.0])),
    ]
    if trees:
        kinds.append(st.tuples(st.just("tree"), edges_of(size)))
    return st.one_of(kinds)


def changed(overlay: Overlay, change: Change) -> None:
    known = list(overlay.contexts)
    match change:
        case ("register", router, context):
            overlay.register(router, context)
        case ("update", number, context) if known:
            overlay.update(known[number % len(known)], context)
        case ("remove", number) if known:
            overlay.remove(known[number % len(known)])
        case ("run", seconds):
            overlay.run(seconds)
        case ("tree", edges):
            overlay.connect(edges)


def messages(size: int, world: World, most: int = 4) -> st.SearchStrategy[list[tuple[int, Predicate]]]:
    """Senders, and whom they address: what can be written on the wire."""
    return st.lists(st.tuples(st.integers(0, size - 1), addressing(world).filter(_sendable)), min_size=1, max_size=most)


def _sendable(predicate: Predicate) -> bool:
    try:
        routed(Event("e", "t", 0, to=predicate), "r")
    except InvalidEvent:
        return False
    return True
