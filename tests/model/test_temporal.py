"""The temporal predicates, checked by enumeration on a small grid of whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import pytest

from nearcast.errors import InvalidTime
from nearcast.model.cql2 import parse_addressing
from nearcast.model.temporal import (
    CONTEXTCAST_RELATIONS,
    CQL2_RELATIONS,
    RELATIONS,
    WIDENING,
    WITH_TOLERANCE,
    TemporalPredicate,
    first_that_matters,
    last_that_matters,
    message_class,
)

GRID = range(9)
# A long way after everything that the predicates below mention.
LATER = 40


def predicates(grid: range = range(2, 7)) -> Iterator[TemporalPredicate]:
    bounds: list[tuple[int | None, int | None]] = list(combinations_with_replacement(grid, 2))
    for a, b in [*bounds, (None, 4), (4, None), (None, None)]:
        for relation in RELATIONS:
            tolerances = (1, 2) if relation in WITH_TOLERANCE else (0,)
            for z in (0, *tolerances) if relation == "met_by" else tolerances:
                yield TemporalPredicate(relation, a, b, z)


def intervals(grid: range = GRID) -> Iterator[tuple[int, int]]:
    return ((t_r, t_d) for t_r, t_d in product(grid, grid) if t_r < t_d)


def test_the_table_of_contextcast() -> None:
    """Table 6.1, written once more as it stands in the document."""
    for (a, b), (r, d), z in product(combinations_with_replacement(range(6), 2), intervals(range(7)), (1, 2)):
        expected = {
            "before": d <= a,
            "after": b < r,
            "equals": abs(r - a) <= z and abs(d - b) < z,
            "meets": abs(d - a) < z,
            "met_by": abs(b - r) <= z,
            "ends_in": r < a < d <= b,
            "starts_in": a <= r <= b < d,
            "overlaps": r <= b and a < d,
            "excludes": d <= a or b < r,
            "during": a <= r and d <= b,
            "contains": r <= a and b < d,
        }
        for relation, answer in expected.items():
            predicate = TemporalPredicate(relation, a, b, z if relation in WITH_TOLERANCE else 0)
            assert predicate.holds(r, d) is answer, (predicate, r, d)


def test_overlaps_is_the_negation_of_excludes() -> None:
    for (a, b), (r, d) in product(combinations_with_replacement(GRID, 2), intervals()):
        assert TemporalPredicate("overlaps", a, b).holds(r, d) != TemporalPredicate("excludes", a, b).holds(r, d)


def test_six_predicates_cover_all_cases_with_one_double_hit() -> None:
    six = ("before", "after", "ends_in", "starts_in", "during", "contains")
    for (a, b), (r, d) in product(combinations_with_replacement(GRID, 2), intervals()):
        hits = [relation for relation in six if TemporalPredicate(relation, a, b).holds(r, d)]
        if r == a and d > b:
            assert hits == ["starts_in", "contains"]
        else:
            assert len(hits) == 1, (a, b, r, d, hits)


def test_thirteen_of_the_relations_of_cql2_are_allens_and_exclude_each_other() -> None:
    allen = [name for name in CQL2_RELATIONS if name not in ("t_disjoint", "t_intersects")]
    for (a, b), (r, d) in product(combinations_with_replacement(GRID, 2), intervals()):
        if a < b:
            assert len([name for name in allen if TemporalPredicate(name, a, b).holds(r, d)]) == 1
        assert TemporalPredicate("t_disjoint", a, b).holds(r, d) != TemporalPredicate("t_intersects", a, b).holds(r, d)


@pytest.mark.parametrize("relation", RELATIONS)
def test_an_open_interval_is_judged_by_all_the_ends_it_may_have(relation: str) -> None:
    for predicate in predicates():
        if predicate.relation != relation:
            continue
        for t_r in GRID:
            for now in range(t_r, 12):
                answers = {predicate.holds(t_r, t_d) for t_d in range(now + 1, LATER)}
                expected = answers.pop() if len(answers) == 1 else None
                assert predicate.judge(t_r, None, now) is expected, (predicate, t_r, now)
                # An end that has not come yet is not known yet.
                assert predicate.judge(t_r, now + 3, now) is expected
                if now > t_r:
                    assert predicate.judge(t_r, now, now) is predicate.holds(t_r, now)


@pytest.mark.parametrize("relation", RELATIONS)
def test_decided_at_is_the_first_instant_at_which_the_judgement_is_true(relation: str) -> None:
    for predicate in predicates():
        if predicate.relation != relation:
            continue
        for t_r, t_d in intervals(range(12)):
            true_at = [now for now in range(t_r, t_d + 1) if predicate.judge(t_r, t_d, now) is True]
            assert predicate.decided_at(t_r, t_d) == (true_at[0] if true_at else None), (predicate, t_r, t_d)
            for as_of in range(t_r, t_d):
                expected = next((now for now in true_at if now <= as_of), None)
                assert predicate.decided_at(t_r, t_d, as_of) == expected
                assert predicate.decided_at(t_r, None, as_of) == expected, "not ended so far says as much"


def test_an_interval_that_never_ends_is_decided_when_every_end_would_do() -> None:
    assert TemporalPredicate("contains", 3, 5).decided_at(1, None) == 5
    assert TemporalPredicate("contains", 3, 5).decided_at(4, None) is None
    assert TemporalPredicate("after", 3, 5).decided_at(6, None) == 6
    assert TemporalPredicate("overlaps", 3, 5).decided_at(0, None) == 3
    assert TemporalPredicate("before", 3, 5).decided_at(0, None) is None


def test_the_judgement_never_changes_once_it_is_made() -> None:
    for predicate in predicates(range(3, 6)):
        for t_r, t_d in intervals():
            judgements = [predicate.judge(t_r, t_d, now) for now in range(t_r, t_d + 3)]
            made = [judgement for judgement in judgements if judgement is not None]
            assert len(set(made)) == 1
            assert judgements[-1] is predicate.holds(t_r, t_d)
            assert judgements == [None] * (len(judgements) - len(made)) + made


def test_message_classes_by_enumeration() -> None:
    wide = list(intervals(range(-6, 18)))
    for predicate in predicates():
        decisions = [predicate.decided_at(t_r, t_d) for t_r, t_d in wide if predicate.holds(t_r, t_d)]
        for now in range(10):
            past = [at for at in decisions if at is not None and at <= now]
            expected = "historical" if len(past) == len(decisions) else "hybrid" if past else "future"
            assert message_class(predicate, now) == expected, (predicate, now)
        latest = max((at for at in decisions if at is not None), default=None)
        if latest is not None:
            assert predicate.expires_at() == (latest if latest < 14 else None), predicate


@pytest.mark.parametrize(
    ("relation", "a", "b", "now", "expected"),
    [
        ("before", 3, 5, 3, "historical"),
        ("before", 3, 5, 2, "hybrid"),
        ("after", 3, 5, 5, "future"),
        ("after", 3, 5, 6, "hybrid"),
        ("overlaps", 1015, 1115, 1045, "hybrid"),  # the example of the document
        ("contains", 3, 5, 4, "future"),  # nobody has stayed until 5 yet
        ("contains", 3, 5, 5, "historical"),
        ("during", 3, 5, 3, "future"),
        ("during", 3, 5, 4, "hybrid"),
        ("during", 3, 5, 5, "historical"),
        ("excludes", 3, 5, 4, "hybrid"),
        ("ends_in", 3, 3, 1, "historical"),  # nothing satisfies it: nothing to wait for
    ],
)
def test_message_classes(relation: str, a: int, b: int, now: int, expected: str) -> None:
    assert message_class(TemporalPredicate(relation, a, b), now) == expected


def test_a_predicate_that_nothing_satisfies_has_expired() -> None:
    expired = TemporalPredicate("ends_in", 3, 3).expires_at()
    assert expired is not None
    assert expired < -(10**15)


@pytest.mark.parametrize("relation", CONTEXTCAST_RELATIONS)
def test_an_interval_that_ends_before_it_starts_is_refused(relation: str) -> None:
    with pytest.raises(
        InvalidTime, match=f"{relation}: the interval ends at 1970-01-01T00:00:00.000003Z, before its start"
    ):
        TemporalPredicate(relation, 5, 3, 1 if relation in WITH_TOLERANCE else 0)


def test_a_negative_tolerance_is_refused() -> None:
    with pytest.raises(InvalidTime, match="equals: the tolerance is not negative, but it is -1"):
        TemporalPredicate("equals", 1, 2, -1)


@pytest.mark.parametrize("relation", ["equals", "meets"])
def test_equals_and_meets_without_tolerance_are_refused_because_they_never_hold(relation: str) -> None:
    with pytest.raises(InvalidTime, match=f"{relation} needs a tolerance of at least one microsecond, such as '5m'"):
        TemporalPredicate(relation, 1, 2)


def test_met_by_without_tolerance_is_exact() -> None:
    assert TemporalPredicate("met_by", 1, 2).holds(2, 3)
    assert not TemporalPredicate("met_by", 1, 2).holds(3, 4)


def test_a_tolerance_where_there_is_none_is_refused() -> None:
    with pytest.raises(InvalidTime, match="before takes no tolerance; only equals, meets, met_by do"):
        TemporalPredicate("before", 1, 2, 3)


def test_an_unknown_relation_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidTime, match="unknown temporal predicate 'near'; known: before, after, equals"):
        TemporalPredicate("near", 1, 2)


def test_bounds_beyond_time_are_refused() -> None:
    with pytest.raises(InvalidTime, match="beyond the year 9999"):
        TemporalPredicate("before", 10**30, 10**30)


def test_its_text_reads_back_as_itself() -> None:
    for predicate in predicates():
        assert parse_addressing(str(predicate)) == (None, predicate)


@pytest.mark.parametrize("relation", RELATIONS)
def test_only_widening_relations_stay_true_of_longer_intervals(relation: str) -> None:
    z = 2 if relation in WITH_TOLERANCE else 0
    when = TemporalPredicate(relation, 20, 30, z)
    points = range(14, 37)
    falsified = any(
        when.holds(s, e) and not when.holds(longer_s, longer_e)
        for s in points
        for e in range(s + 1, 37)
        for longer_s in range(14, s + 1)
        for longer_e in range(e, 37)
    )
    assert falsified is (relation not in WIDENING)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bounds", [(20, 24), (20, 20), (None, 20), (20, None), (None, None)])
def test_what_lies_before_the_first_or_after_the_last_that_matters_makes_no_difference(
    relation: str, bounds: tuple[int | None, int | None]
) -> None:
    when = TemporalPredicate(relation, *bounds, 1 if relation in WITH_TOLERANCE else 0)
    first, last = first_that_matters(when), last_that_matters(when)
    times = range(8, 36)
    for start in times:
        for end in range(start + 1, 36):
            if first is not None and start < first:
                assert when.holds(start, end) == when.holds(start - 5, end)
                assert end >= first or not when.holds(start, end)
            if last is not None and end > last:
                assert when.holds(start, end) == when.holds(start, end + 5)
                assert start <= last or not when.holds(start, end)
