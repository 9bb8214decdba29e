"""Messages that wait, and since when somebody is there."""

from __future__ import annotations

from typing import Any

from nearcast.matching.entries import surely
from nearcast.model.event import Event
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.temporal.held import Held, HeldMessages
from nearcast.overlay.temporal.messages import Span

WHEN = TemporalPredicate("overlaps", 0, 1_000)


def held_of(name: str, to: str, **more: Any) -> Held:
    return Held(routed(Event(name, "news", 0, to=to, when=WHEN, **more), "r"))


def spans_of(found: list[tuple[Held, list[Span]]]) -> list[tuple[str, Span]]:
    return [(held.id, span) for held, spans in found for span in spans]


def test_what_holds_is_told_when_it_begins_and_when_it_ends_and_not_in_between() -> None:
    waiting = HeldMessages()
    waiting.add(held_of("e", "age > 3 OR age = 1"))
    steps = [
        waiting.recorded("1@t", at, None if age is None else {"age": age})
        for at, age in enumerate((2, 4, 5, 1, None, None, 7))
    ]
    assert [spans_of(step) for step in steps] == [
        [],
        [("e", Span("1@t", 0, 1, None))],
        [],
        [("e", Span("1@t", 0, 1, 3)), ("e", Span("1@t", 1, 3, None))],
        [("e", Span("1@t", 1, 3, 4))],
        [],
        [("e", Span("1@t", 0, 6, None))],
    ]


def test_what_had_begun_before_the_message_came_ends_as_well() -> None:
    waiting = HeldMessages()
    held = held_of("e", "age > 3")
    waiting.add(held)
    waiting.began(held, [Span("1@t", 0, -50, None), Span("2@t", 0, -50, -10)])
    assert spans_of(waiting.recorded("1@t", 5, None)) == [("e", Span("1@t", 0, -50, 5))]
    assert spans_of(waiting.recorded("2@t", 6, None)) == []


def test_of_two_reports_at_one_instant_the_second_counts() -> None:
    waiting = HeldMessages()
    waiting.add(held_of("e", "age > 3"))
    waiting.recorded("1@t", 5, {"age": 4})
    assert spans_of(waiting.recorded("1@t", 5, {"age": 1})) == [("e", Span("1@t", 0, 5, 5))]


def test_a_message_that_is_gone_follows_nobody() -> None:
    waiting = HeldMessages()
    held = held_of("e", "age > 3")
    waiting.add(held)
    waiting.recorded("1@t", 5, {"age": 4})
    waiting.remove(held)
    assert waiting.recorded("1@t", 6, None) == []
    assert len(waiting) == waiting.full == 0


def test_without_its_payload_a_message_takes_no_room_and_still_knows_whom_it_is_for() -> None:
    waiting = HeldMessages()
    held = held_of("e", "age > 3", payload=b"long")
    waiting.add(held)
    whole = held.message
    waiting.slim(held)
    waiting.slim(held)
    assert (len(waiting), waiting.full, held.message.payload) == (1, 0, b"")
    assert held.meets({"age": 4}, frozenset(), surely)
    assert spans_of(waiting.recorded("1@t", 5, {"age": 4})) == [("e", Span("1@t", 0, 5, None))]
    waiting.restore(held, whole)
    assert (waiting.full, held.message.payload) == (1, b"long")


def test_what_was_told_of_is_told_again_under_the_same_start() -> None:
    waiting = HeldMessages()
    held = held_of("e", "age > 3")
    waiting.add(held)
    waiting.recorded("1@t", 5, {"age": 4})
    assert held.known(Span("1@t", 0, 8, None)) == Span("1@t", 0, 5, None)
    assert held.known(Span("1@t", 0, 2, 4)) == Span("1@t", 0, 2, 4)
    assert held.known(Span("2@t", 0, 8, None)) == Span("2@t", 0, 8, None)
