"""What may happen in an overlay: contexts come, change and go, and so do the edges of the tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from hypothesis import strategies as st
from tests.oracle.strategies import World, addressing, contexts
from tests.overlay.routing_worlds import Overlay

from nearcast.errors import InvalidEvent
from nearcast.model.event import Event
from nearcast.model.predicate import Predicate
from nearcast.overlay.routing.knowledge import Knowledge
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


ASKED = ("a = 0", "a = 1", "b = 2", "a = 1 AND b = 0", "a IS NULL", "a = 2 OR b = 1", "a > 0 AND b IS NULL", "TRUE")


def restless(knowledge: Callable[[], Knowledge], seed: int, *, loss: float, trees: bool) -> Overlay:
    """Senders like some messages for a while, so that composites for them grow, feed others, and are sent back."""
    random = Random(seed)
    size = random.randrange(3, 7)
    overlay = Overlay(size, knowledge, seed=seed, check_wire=False)
    overlay.wires.longest = 300_000

    def tree() -> list[tuple[int, int]]:
        order = random.sample(range(size), size)
        return [(order[child], order[random.randrange(child)]) for child in range(1, size)]

    def context() -> dict[str, int]:
        return {name: random.randrange(3) for name in "ab" if random.random() < 0.7}

    overlay.connect(tree())
    overlay.wires.loss = loss
    for _ in range(8):
        if trees and random.random() < 0.3:
            overlay.connect(tree())
        sender, liked = random.randrange(size), random.sample(ASKED, 2)
        often = random.choice([0.02, 0.6])
        for _ in range(random.randrange(5, 40)):
            known = list(overlay.contexts)
            what = random.random()
            if what < often / 3 or len(known) < 2:
                overlay.register(random.randrange(size), context())
            elif what < often / 2:
                overlay.remove(random.choice(known))
            elif what < often:
                overlay.update(random.choice(known), context())
            overlay.publish(sender, random.choice(liked))
            overlay.run(0.2)
    overlay.wires.loss = 0.0
    overlay.run(30)
    everybody_gets_it(overlay, [(sender, to) for to in ASKED for sender in range(size)])
    return overlay


def everybody_gets_it(overlay: Overlay, asked: Sequence[tuple[int, Predicate | str]]) -> None:
    overlay.run(30)
    for sender, to in asked:
        event = overlay.publish(sender, to)
        overlay.run(8)
        assert overlay.got(event) == overlay.expected(sender, event)
        assert set(overlay.copies(event).values()) <= {1}
