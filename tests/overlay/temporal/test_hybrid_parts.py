"""Which part of a message asks the past, and which waits; checked by enumeration on a small grid of whole numbers."""

from __future__ import annotations

from itertools import product

from tests.model.test_temporal import intervals, predicates

from nearcast.model.temporal import message_class
from nearcast.overlay.temporal.hybrid import parts, past_matters

GRID = range(-2, 11)
BOUNDS = range(4, 7)


def test_where_the_past_does_not_matter_it_makes_no_difference() -> None:
    seen = set()
    for when, now in product(predicates(BOUNDS), range(-2, 8)):
        matters = past_matters(when, now)
        seen.add(matters)
        if matters:
            continue
        assert not any(when.holds(t_r, t_d) for t_r, t_d in intervals(GRID) if t_d <= now)
        for t_d in range(now + 1, 12):
            assert len({when.holds(t_r, t_d) for t_r in GRID if t_r <= now}) <= 1
    assert seen == {True, False}


def test_the_parts_are_those_of_the_class_and_the_past_where_it_matters() -> None:
    # The classification speaks of now as of any instant after the beginning; the grid lies around zero.
    for when, now in product(predicates(BOUNDS), range(8)):
        found, named = parts(when, now), message_class(when, now)
        assert found.future == (named != "historical")
        if named == "historical" or named == "hybrid":
            assert found.past
