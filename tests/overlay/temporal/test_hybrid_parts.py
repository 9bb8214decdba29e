"""Which part of a message asks the past, and which waits; checked by enumeration on a small grid of whole numbers."""

from __future__ import annotations

from itertools import product

from tests.model.test_temporal import intervals, predicates

from nearcast.model.temporal import TemporalPredicate, message_class
from nearcast.overlay.temporal.hybrid import Parts, parts, past_matters

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
        # What is hybrid only because of those who are there now has no need of archives.
        assert found.past or named != "historical"


def test_where_it_matters_it_does_make_one() -> None:
    for when, now in product(predicates(BOUNDS), range(-2, 8)):
        if past_matters(when, now):
            ended = any(when.holds(t_r, t_d) for t_r, t_d in intervals(range(-9, 12)) if t_d <= now)
            begun = any(len({when.holds(t_r, t_d) for t_r in range(-9, now + 1)}) > 1 for t_d in range(now + 1, 12))
            assert ended or begun


def test_whom_somebody_meets_from_now_on_the_past_need_not_be_asked() -> None:
    assert parts(TemporalPredicate("overlaps", 100, 200), 100) == Parts(past=False, future=True)
    assert parts(TemporalPredicate("overlaps", 99, 200), 100) == Parts(past=True, future=True)
    assert parts(TemporalPredicate("contains", 100, 200), 100) == Parts(past=False, future=True)
    assert parts(TemporalPredicate("starts_in", 99, 200), 100) == Parts(past=True, future=True)
    assert parts(TemporalPredicate("overlaps", 50, 99), 100) == Parts(past=True, future=False)
