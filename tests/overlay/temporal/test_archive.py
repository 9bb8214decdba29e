"""The archive of one node against the definition: when did which conjunct hold of whom?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.strategies import WORLDS, addressing, contexts, fixed_areas

from nearcast.model.area import Area
from nearcast.model.delivery import validities
from nearcast.model.event import Event
from nearcast.model.geometry import Point
from nearcast.model.history import History
from nearcast.model.predicate import Predicate
from nearcast.model.temporal import TemporalPredicate
from nearcast.overlay.temporal.archive import Archive, Piece
from nearcast.overlay.temporal.messages import Span

NEIGHBOURHOOD = WORLDS[0]
Change = tuple[int, str, Mapping[str, Any] | None]


def changes() -> st.SearchStrategy[list[Change]]:
    """Steps of time, identities, and what their context is from then on."""
    positions = st.sampled_from(NEIGHBOURHOOD.points[:4])
    context = st.tuples(contexts(NEIGHBOURHOOD), positions).map(lambda drawn: {**drawn[0], "position": drawn[1]})
    return st.lists(
        st.tuples(st.sampled_from([0, 1, 1, 5]), st.sampled_from(["1@t", "2@t", "3@t"]), st.none() | context),
        max_size=12,
    )


def told(changes: list[Change]) -> tuple[Archive, History, int]:
    """An archive and a history in which each identity is a client."""
    archive, history, now = Archive(), History(), 100
    for step, vid, context in changes:
        now += step
        archive.record(vid, now, context)
        there = history.client(vid).present.at(now)
        if context is not None:
            history.connected(vid, now)
            history.moved(vid, now, context["position"])
            history.registered(vid, now, "c", context)
        elif there:
            history.disconnected(vid, now)
    return archive, history, now


def by_definition(history: History, event: Event, as_of: int) -> set[tuple[str, int, int | None]]:
    return {
        (vid, each.start, each.end)
        for vid in history.clients()
        for each in validities(event, history.client(vid), as_of)
    }


@given(changes(), addressing(NEIGHBOURHOOD), st.none() | st.sampled_from(fixed_areas(NEIGHBOURHOOD)))
def test_spans_are_the_longest_intervals_during_which_a_conjunct_and_the_reach_held(
    changes: list[Change], to: Predicate, reach: Area | None
) -> None:
    archive, history, now = told(changes)
    event = Event("e", "news", now, to=to, reach=reach)
    spans = archive.spans(event)
    found = [(span.vid, span.start, span.end) for span in spans]
    assert set(found) == by_definition(history, event, now + 10)
    assert len({(span.conjunct, span.vid, span.start) for span in spans}) == len(spans)


@given(
    changes(), st.integers(95, 130), st.integers(0, 20), st.sampled_from(["overlaps", "during", "ends_in", "contains"])
)
def test_what_the_predicate_cannot_tell_apart_may_be_left_out_and_nothing_else(
    changes: list[Change], a: int, length: int, relation: str
) -> None:
    archive, history, now = told(changes)
    when = TemporalPredicate(relation, a, a + length)
    event = Event("e", "news", now, to="TRUE", when=when)

    def true_of(spans: set[tuple[str, int, int | None]]) -> set[str]:
        return {vid for vid, start, end in spans if when.decided_at(start, end) is not None}

    found = {(span.vid, span.start, span.end) for span in archive.spans(event)}
    assert true_of(found) == true_of(by_definition(history, event, now + 10))


def test_pieces_are_written_as_they_were_registered_with_their_exact_times() -> None:
    archive, here, there = Archive(), Point(0.0, 0.0), Point(0.0, 1.0)
    archive.record("1@t", 100, {"position": here, "age": 30})
    archive.record("1@t", 150, {"position": there, "age": 30})
    archive.record("1@t", 170, None)
    assert sorted(archive.pieces(), key=lambda piece: piece.start) == [
        Piece("1@t", 100, 150, {"position": here, "age": 30}),
        Piece("1@t", 150, 170, {"position": there, "age": 30}),
    ]

    def spans(to: str) -> list[Span]:
        return archive.spans(Event("e", "news", 200, to=to))

    assert spans("S_WITHIN(position, BBOX(-0.1, -0.1, 0.1, 0.1))") == [Span("1@t", 0, 100, 150)]
    assert spans("S_WITHIN(position, BBOX(0.9, -0.1, 1.1, 0.1))") == [Span("1@t", 0, 150, 170)]
    assert spans("age = 30") == [Span("1@t", 0, 100, 170)]
    assert spans("age = 31 OR age < 40") == [Span("1@t", 1, 100, 170)]
    assert spans("age = 31") == []


def test_what_is_older_than_the_horizon_is_forgotten_and_its_room_used_again() -> None:
    archive = Archive()
    for number in range(100):
        archive.record(f"{number}@t", number, {"a": number})
        if number != 7:
            archive.record(f"{number}@t", number + 1, None)
    assert archive.forget(51) == 49
    assert (archive.statistics().pieces, archive.statistics().identities, archive.statistics().open) == (51, 51, 1)
    archive.record("new@t", 200, {"a": 3})
    found = archive.spans(Event("e", "news", 300, to="a < 8"))
    assert sorted((span.vid, span.start, span.end) for span in found) == [("7@t", 7, None), ("new@t", 200, None)]


def test_a_word_that_came_late_of_what_is_known_already_changes_nothing() -> None:
    archive = Archive()
    archive.record("1@t", 100, {"a": 1})
    archive.record("1@t", 100, {"a": 1})
    archive.record("1@t", 120, {"a": 1})
    assert archive.spans(Event("e", "news", 300, to="a = 1")) == [Span("1@t", 0, 100, None)]
    assert len(archive) == 1
    archive.record("1@t", 100, None)
    archive.record("1@t", 110, None)
    assert len(archive) == 0
