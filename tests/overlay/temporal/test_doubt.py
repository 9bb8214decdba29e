"""What a trusted node waits for before it believes what it was told of the present."""

from __future__ import annotations

from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.temporal.messages import Span
from nearcast.overlay.temporal.uniting import Spans, Verdict

SETTLING = 10
PUBLISHED = 50
NOT_YET = Verdict((), None)
YES = Verdict(("me",), None)


def event(relation: str, a: int, b: int) -> Event:
    return Event("e", "news", PUBLISHED, to="age > 3", when=TemporalPredicate(relation, a, b))


def told(*spans: tuple[str, int, int | None]) -> Spans:
    known = Spans()
    for vid, start, end in spans:
        known.add("me", Span(f"{vid}@t", 0, start, end))
    return known


def test_who_leaves_one_node_may_be_at_another_of_which_nothing_was_heard_yet() -> None:
    asked = event("ends_in", 60, 200)
    left = told(("1", 20, 100))
    assert left.judge(asked, 101, SETTLING) == Verdict((), 110)
    assert left.judge(asked, 110, SETTLING) == YES
    left.add("me", Span("2@t", 0, 100, None))
    assert left.judge(asked, 110, SETTLING) == NOT_YET


def test_who_is_still_there_at_an_instant_is_believed_when_word_of_the_contrary_would_have_come() -> None:
    asked = event("contains", 60, 80)
    there = told(("1", 20, None))
    assert there.judge(asked, 80, SETTLING) == Verdict((), 90)
    assert there.judge(asked, 90, SETTLING) == YES
    there.add("me", Span("1@t", 0, 20, 79))
    assert there.judge(asked, 90, SETTLING) == NOT_YET


def test_what_nothing_can_make_false_is_believed_at_once() -> None:
    asked = event("overlaps", 60, 200)
    assert told(("1", 70, None)).judge(asked, 70, SETTLING) == YES
    assert told(("1", 55, 61)).judge(asked, 61, SETTLING) == YES
    assert told(("1", 20, None)).judge(asked, 60, SETTLING) == Verdict((), 70)  # it may have ended before 60


def test_what_was_so_at_publication_is_believed_at_once() -> None:
    assert told(("1", 20, 40)).judge(event("during", 10, 45), 51, SETTLING) == YES


def test_what_was_taken_back_has_never_been() -> None:
    asked = event("overlaps", 60, 200)
    assert told(("1", 70, None), ("1", 70, 70)).judge(asked, 300, SETTLING) == NOT_YET
    assert told(("1", 70, None), ("1", 70, 70), ("1", 70, None)).judge(asked, 300, SETTLING) == YES


def test_what_was_told_of_under_a_later_start_ends_with_the_whole() -> None:
    asked = event("contains", 60, 80)
    for spans in (
        (("1", 20, None), ("1", 40, None), ("1", 20, 75)),
        (("1", 40, None), ("1", 20, 75)),
        (("1", 20, 75), ("1", 40, None)),
    ):
        assert told(*spans).judge(asked, 300, SETTLING) == NOT_YET


def test_what_was_taken_back_at_the_instant_at_which_it_began_was_not_whichever_word_comes_first() -> None:
    asked = event("overlaps", 60, 200)
    begun, taken_back = ("1", 70, None), ("1", 70, 70)
    assert told(begun, taken_back).judge(asked, 300, SETTLING) == NOT_YET
    assert told(taken_back, begun).judge(asked, 300, SETTLING) == NOT_YET
    assert told(taken_back, begun, begun).judge(asked, 300, SETTLING) == YES  # and has begun again
    # It is a mark for that one span alone.
    assert told(taken_back, ("1", 55, None)).judge(event("contains", 65, 80), 300, SETTLING) == YES
    assert told(taken_back, ("1", 75, None)).judge(asked, 300, SETTLING) == YES
