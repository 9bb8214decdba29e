"""Whoever lets messages wait is told of everybody for whom they could go on."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.oracle.strategies import WORLDS
from tests.overlay.routing_changes import ASKED, Change, changed, changes, edges_of, messages
from tests.overlay.routing_worlds import Overlay

from nearcast.model.cql2 import parse
from nearcast.model.event import Event
from nearcast.model.history import Context
from nearcast.model.predicate import Predicate
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference
from nearcast.overlay.routing.router import Router
from nearcast.overlay.routing.settings import AdaptiveSettings
from nearcast.overlay.routing.wire import addressing, event_in, routed

SIZE = 4
WORLD = WORLDS[0]


class Waiting:
    """One message at one router: where it would have been sent."""

    def __init__(self, router: Router, to: Predicate) -> None:
        self.router = router
        self.message = routed(Event("waits", "news", 0, to=to), "r")
        self.sent = set(self.wanted())

    def wanted(self) -> list[str]:
        return self.router.knowledge.towards(self.message, None)

    def learnt(self, neighbour: str, context: Context | None, optional: frozenset[str]) -> None:
        if context is None:
            self.sent.update({neighbour} & set(self.wanted()))
            return
        judge = self.router.knowledge.judge
        if any(
            all(judge(term, context, optional) for term in conjunct) for conjunct in addressing(event_in(self.message))
        ):
            self.sent.add(neighbour)


def eager() -> Adaptive:
    """Composites come soon, and go soon."""
    return Adaptive(AdaptiveSettings(window=2.0, propagate_above=0.3, invalidate_below=0.2))


def listened(overlay: Overlay, waiting: list[Waiting]) -> None:
    def tell(router: Router, *heard: object) -> None:
        for each in waiting:
            if each.router is router:
                each.learnt(*heard)  # type: ignore[arg-type]

    for router in overlay.routers:
        router.learnt = lambda *heard, router=router: tell(router, *heard)


@pytest.mark.parametrize("knowledge", [Reference, Aggregated])
@examples(25)
@given(data=st.data(), edges=edges_of(SIZE), asked=messages(SIZE, WORLD, most=3), seed=st.integers(0, 99))
def test_nobody_appears_behind_a_neighbour_unheard_of(
    knowledge: Callable[[], Knowledge],
    data: st.DataObject,
    edges: list[tuple[int, int]],
    asked: list[tuple[int, Predicate]],
    seed: int,
) -> None:
    overlay = Overlay(SIZE, knowledge, seed=seed, check_wire=False)
    overlay.connect(edges)
    overlay.run(8)
    waiting = [Waiting(router, to) for router in overlay.routers for _, to in asked]
    listened(overlay, waiting)
    some: list[Change] = data.draw(st.lists(changes(SIZE, WORLD, trees=False), max_size=12))
    for change in some:
        changed(overlay, change)
        overlay.run(data.draw(st.sampled_from([0.0, 0.5, 3.0])))
    overlay.run(12)
    for each in waiting:
        assert set(each.wanted()) <= each.sent


@examples(10)
@given(seed=st.integers(0, 1_000_000))
def test_nor_where_composites_come_and_go(seed: int) -> None:
    random = Random(seed)
    overlay = Overlay(SIZE, eager, seed=seed, check_wire=False)
    overlay.wires.longest = 200_000
    overlay.connect([(0, 1), (1, 2), (2, 3)])
    waiting: list[Waiting] = []
    listened(overlay, waiting)
    held_back = 0
    for _ in range(6):
        liked, often = random.sample(ASKED[:-1], 2), random.choice([0.02, 0.6])
        for _ in range(30):
            known = list(overlay.contexts)
            if random.random() < often or not known:
                context = {name: random.randrange(3) for name in "ab" if random.random() < 0.7}
                if known and random.random() < 0.7:
                    overlay.update(random.choice(known), context)
                else:
                    overlay.register(random.randrange(SIZE), context)
            overlay.publish(random.randrange(SIZE), random.choice(liked))
            overlay.run(0.3)
        fresh = [Waiting(router, parse(to)) for router in overlay.routers for to in ASKED]
        held_back += sum(len(each.sent) < len(list(each.router._tree.neighbours)) for each in fresh)
        waiting += fresh
        for each in waiting:
            assert set(each.wanted()) <= each.sent
    assert held_back
