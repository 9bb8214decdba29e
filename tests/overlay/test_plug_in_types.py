"""Values of plug-in types between routers: they travel, are merged where their plug-in can, and nobody is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.overlay.contexts import Release, Shade, plug_ins
from tests.overlay.routing_changes import everybody_gets_it
from tests.overlay.routing_worlds import Overlay

from nearcast.model.values import OneOf, unregister_type
from nearcast.overlay.aggregation.aggregates import Aggregation
from nearcast.overlay.aggregation.thresholds import Fixed
from nearcast.overlay.routing.absences import AbsenceSettings
from nearcast.overlay.routing.adaptive import Adaptive
from nearcast.overlay.routing.aggregated import Aggregated
from nearcast.overlay.routing.knowledge import Knowledge
from nearcast.overlay.routing.reference import Reference


@pytest.fixture(autouse=True, scope="module")
def _plug_ins() -> Iterator[None]:
    with plug_ins():
        yield


def aggregated() -> Aggregated:
    return Aggregated(Aggregation(threshold=Fixed(0.1)), absences=AbsenceSettings(after=1))


ASKED = ["darker(shade, 1)", "NOT darker(shade, 2)", "comes_before(build, 2)", "build = 3", "shade IS NULL"]
contexts = st.fixed_dictionaries(
    {},
    optional={
        "shade": st.one_of(
            st.integers(0, 3).map(Shade), st.sets(st.integers(0, 3), min_size=2).map(lambda of: OneOf(map(Shade, of)))
        ),
        "build": st.integers(0, 4).map(lambda number: Release(number, number)),
    },
)


@pytest.mark.parametrize("knowledge", [Reference, Adaptive, aggregated])
@given(st.lists(st.tuples(st.integers(0, 2), contexts), max_size=12))
@settings(max_examples=15)
def test_they_are_found_by_what_their_plug_in_knows(
    knowledge: Callable[[], Knowledge], people: list[tuple[int, dict[str, object]]]
) -> None:
    overlay = Overlay(3, knowledge)  # what is sent is written and read again
    overlay.connect([(0, 1), (1, 2)])
    handles = [overlay.register(router, context) for router, context in people]
    everybody_gets_it(overlay, [(sender, to) for to in ASKED for sender in (0, 2)])
    if handles:
        overlay.update(handles[0], {"shade": Shade(3), "build": Release(1, 1)})
        everybody_gets_it(overlay, [(0, to) for to in ASKED])


def test_a_router_that_does_not_know_the_type_asks_now_and_then_and_not_without_end() -> None:
    overlay = Overlay(2, aggregated, heartbeat=5.0)
    overlay.connect([(0, 1)])
    overlay.register(1, {"shade": Shade(1), "age": 3})
    with plug_ins_gone():
        overlay.run(100)
        assert 1 <= overlay.routers[0].statistics().malformed <= 25
        event = overlay.publish(0, "age = 3")  # nobody knows, so it goes there
        overlay.run(5)
        assert overlay.got(event) == overlay.expected(0, event) != []
    everybody_gets_it(overlay, [(0, "darker(shade, 0)"), (0, "darker(shade, 1)")])


class plug_ins_gone:  # noqa: N801 - used as one of contextlib's is
    """As on a machine without that plug-in, on which messages are read."""

    def __enter__(self) -> None:
        from nearcast.model.values import attribute_type

        self.shade = attribute_type("shade")
        unregister_type("shade")

    def __exit__(self, *_: object) -> None:
        from nearcast.model.values import register_type

        register_type(self.shade)
