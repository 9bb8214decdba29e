"""Messages that wait: which of them a context may concern, and since when somebody is there."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS, contexts
from tests.overlay.routing_changes import messages

from nearcast.matching.entries import surely
from nearcast.model.event import Event
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.routing.wire import routed
from nearcast.overlay.temporal.held import Held, HeldMessages
from nearcast.overlay.temporal.messages import Span

WHEN = TemporalPredicate("overlaps", 0, 1_000)
WORLD = WORLDS[0]


def held_of(name: str, to: Predicate | str, **more: Any) -> Held:
    return Held(routed(Event(name, "news", 0, to=to, when=WHEN, **more), "r"))


@given(messages(1, WORLD, most=6), st.lists(contexts(WORLD), min_size=1, max_size=4), st.data())
def test_the_index_leaves_nobody_out(sent: list[tuple[int, Predicate]], there: list[Any], data: st.DataObject) -> None:
    messages_held = HeldMessages()
    kept = [held_of(f"e{number}", to) for number, (_, to) in enumerate(sent)]
    for held in kept:
        messages_held.add(held)
    gone = data.draw(st.sets(st.sampled_from(range(len(kept)))))
    for number in gone:
        messages_held.remove(kept[number])
    for context in there:
        concerned = {held.id for held in messages_held.concerning(context)}
        meeting = {
            held.id
            for number, held in enumerate(kept)
            if number not in gone and held.meets(context, frozenset(), surely)
        }
        assert meeting <= concerned <= {held.id for number, held in enumerate(kept) if number not in gone}


def test_a_message_is_looked_at_only_if_somebody_has_what_it_needs() -> None:
    waiting = HeldMessages()
    for name, to in (("e1", "age > 3 AND a IS NULL"), ("e2", "a IS NULL"), ("e3", "NOT a IS NULL OR age = 1")):
        waiting.add(held_of(name, to))
    assert [held.id for held in waiting.concerning({"b": 1})] == ["e2"]
    assert {held.id for held in waiting.concerning({"age": 1})} == {"e1", "e2", "e3"}


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
