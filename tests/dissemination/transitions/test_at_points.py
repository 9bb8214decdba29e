"""MULTI, and what it does from inside done from outside: RADIAL and ATTRACT, exchanged for whoever comes to a point (BYPASS.KOM 6.2.4)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.transitions.cases import (
    few,
    many,
    stories,
)
from tests.dissemination.transitions.story import Story
from tests.dissemination.transitions.town import Options, Outcome, run
from tests.effort import campaign

from nearcast.planning.at_points import TransitionsAtPoints
from nearcast.transition.specification import MechanismSpec

RADIAL = MechanismSpec("RADIAL")


def at_points(story: Story, extension: float) -> Outcome:
    inside = MechanismSpec.of("ATTRACT", catch_all=False, extension=extension)
    zones = story.zones()
    options = Options(overlap=False, more_at_broker=lambda: [TransitionsAtPoints(zones, inside, RADIAL)])
    return run(story, RADIAL, (), options)


def check(data: st.DataObject) -> None:
    story = replace(data.draw(stories(seconds=120.0)), side=700.0, speed=10.0)
    extension = data.draw(st.sampled_from((0.0, 60.0)))
    partial, multi = at_points(story, extension), run(story, MechanismSpec.of("MULTI", extension=extension))
    assert partial.copies == multi.copies
    assert not partial.duplicates()
    # Of both kinds, or it says nothing.
    exchanged = [row[4] for row in partial.rows["transitions"] if row[1] != "broker" and row[7] is not None]
    assert len(exchanged) > 4
    assert {name.partition("(")[0] for name in exchanged} == {"RADIAL", "ATTRACT"}


@few(4)
@given(st.data())
def test_both_agree_event_by_event(data: st.DataObject) -> None:
    check(data)


@campaign
@many(60)
@given(st.data())
def test_both_agree_on_many_walks(data: st.DataObject) -> None:
    check(data)
