"""A client that insists on a coarse scheme, in a town where everybody else is moved from scheme to scheme.

What its broker can know of it is what it was told: every message of the client is read as it is on the wire, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import few, many, moments, plans, schemes, stories
from tests.dissemination.transitions.story import CITY_RADII, RADIUS, Story
from tests.dissemination.transitions.town import BROKER, Fault, Options, Outcome, run
from tests.effort import campaign

from nearcast.dissemination.wire import EventMessage
from nearcast.filtering.parameters import Grid
from nearcast.filtering.registry import scheme_of
from nearcast.filtering.tessellation import Tessellation
from nearcast.model.geometry import Point
from nearcast.runtime.messages import encoded
from nearcast.transition.specification import MechanismSpec

HERMIT = "c1"
COARSE = (
    MechanismSpec.of("EGRID", factor=5, private=True, cover="circle"),
    MechanismSpec.of("EGRID", factor=8, private=True),
    MechanismSpec.of("EGRID", cells="hexagon", resolution=9, private=True, cover="circle"),
    MechanismSpec.of("GRID", factor=4, private=True),
)


def cells(story: Story, scheme: MechanismSpec) -> Tessellation:
    parameters = scheme_of(scheme)
    assert isinstance(parameters, Grid)
    return parameters.tessellation(story.territory())


def numbers(value: Any) -> Iterator[float]:
    """All fractions in a decoded message, wherever they stand: positions are nothing else."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from numbers(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from numbers(inner)


def elsewhere(story: Story) -> set[float]:
    """What the client publishes to other places says nothing of where it is; nor do the radii of its subscriptions."""
    known = {RADIUS, 2 * RADIUS, *CITY_RADII}
    for said in story.publications:
        if said.kind == "elsewhere":
            known |= {said.place.lat, said.place.lon}
    return known


def check(data: st.DataObject, *, faults: bool) -> None:
    made = data.draw(plans(1, 4, partial=True))
    story = data.draw(stories(moments(made)))
    scheme = data.draw(st.sampled_from(COARSE))
    options = Options(pinned={HERMIT: scheme})
    trouble = [
        Fault(15.0, HERMIT, "fail"),
        Fault(16.0, HERMIT, "join"),
        Fault(20.0, BROKER, "fail"),
        Fault(21.0, BROKER, "join"),
    ]
    outcome = run(story, data.draw(schemes), made, options, faults=trouble if faults else ())
    nothing_but_cells_is_said(story, scheme, outcome)
    assert not outcome.duplicates()
    assert outcome.schemes[HERMIT] == scheme
    assert {spec for name, spec in outcome.schemes.items() if name != HERMIT} != {scheme}


def nothing_but_cells_is_said(story: Story, scheme: MechanismSpec, outcome: Outcome) -> None:
    tessellation, harmless = cells(story, scheme), elsewhere(story)
    said = [message for _, sender, message in outcome.said if sender == HERMIT]
    assert len(said) > 5
    for message in said:
        plain = msgspec.msgpack.decode(encoded(message))
        if isinstance(message, EventMessage) and message.local:
            assert message.lat is not None
            assert message.lon is not None
            place = Point(message.lat, message.lon)
            assert place == tessellation.center(tessellation.cell_of(place))
            harmless |= {place.lat, place.lon}
        assert set(numbers(plain)) <= harmless
    # Nor can it be read from the records of the broker.
    assert all(row[2:] == (None, None) for row in outcome.rows["reports"] if row[1] == HERMIT)


@few(7)
@given(st.data())
def test_the_broker_learns_no_more_than_cells(data: st.DataObject) -> None:
    check(data, faults=False)


@few(5)
@given(st.data())
def test_nor_when_the_client_or_the_broker_fails_and_returns(data: st.DataObject) -> None:
    check(data, faults=True)


@few(4)
@given(st.data())
def test_a_private_client_gets_what_happens_in_its_cells_whatever_others_run(data: st.DataObject) -> None:
    """The same as in a town where all run its scheme: transitions of others do not concern it."""
    scheme = data.draw(st.sampled_from(COARSE))
    made = data.draw(plans(1, 4, partial=True))
    story = data.draw(stories(moments(made)))
    options = Options(pinned={HERMIT: scheme})
    switched, calm = run(story, data.draw(schemes), made, options), run(story, scheme, (), options)
    got = {pair for pair in switched.notified if pair[1] == HERMIT}
    assert got
    assert got == {pair for pair in calm.notified if pair[1] == HERMIT}


def test_a_client_that_is_not_private_would_be_found_out() -> None:
    """The test above can fail."""
    story, scheme = Story(5), MechanismSpec.of("EGRID", factor=5)
    with pytest.raises(AssertionError):
        nothing_but_cells_is_said(
            story, scheme, run(story, MechanismSpec("RADIAL"), (), Options(pinned={HERMIT: scheme}))
        )


@campaign
@many(60)
@given(st.data())
def test_many_private_clients(data: st.DataObject) -> None:
    check(data, faults=data.draw(st.booleans()))
