"""The aggregates of a link: always what their members make, and neighbours hear what changed and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.overlay.contexts import any_values, plug_ins

from nearcast.errors import InvalidValue, UnknownName
from nearcast.model.area import Box
from nearcast.model.cql2 import parse
from nearcast.model.geometry import Point
from nearcast.model.values import OneOf, Path, Range
from nearcast.overlay.aggregation import aggregates as module_of_aggregates
from nearcast.overlay.aggregation import joins
from nearcast.overlay.aggregation.aggregates import Aggregates, Aggregation, Change
from nearcast.overlay.aggregation.candidates import Candidates
from nearcast.overlay.aggregation.thresholds import ByDistance, Fixed, SelfTuning
from nearcast.overlay.values.coarse import Coarse, coarse, merged, merged_all
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.kinds import Limits
from nearcast.overlay.values.possible import possible
from nearcast.overlay.values.similarity import Reading, similarity


@pytest.fixture(autouse=True, scope="module")
def _plug_ins() -> Iterator[None]:
    with plug_ins():
        yield


def link(threshold: float = 0.6, domains: Domains | None = None, **more: Any) -> Aggregates:
    known = Domains({"age": Range(0, 100)}) if domains is None else domains
    return Aggregates("r1/r2", Aggregation(Fixed(threshold), **more), known, Random(7))


class Neighbour:
    """Hears changes, in whatever order, and believes the highest version."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.contexts: dict[str, Coarse] = {}

    def hear(self, changes: list[Change]) -> None:
        for change in changes:
            assert change.version > self.versions.get(change.handle, 0)
            self.versions[change.handle] = change.version
            if change.context is None:
                del self.contexts[change.handle]
            else:
                assert self.contexts.get(change.handle) != change.context, "nothing has changed"
                self.contexts[change.handle] = change.context


def check(aggregates: Aggregates, truth: dict[str, Coarse], neighbour: Neighbour, limits: Limits) -> None:
    held: dict[str, Coarse] = {}
    for change in aggregates.contexts():
        members = aggregates.members(change.handle)
        assert members
        assert change.context == merged_all(members.values(), limits)
        defining = aggregates.defining(change.handle)
        assert merged_all([members[member] for member in members if member in defining], limits) == change.context
        assert next(iter(members)) in defining
        assert all(aggregates.aggregate_of(member) == change.handle for member in members)
        held |= members
        assert neighbour.contexts[change.handle] == change.context
        assert neighbour.versions[change.handle] == change.version
    assert held == truth
    assert len(neighbour.contexts) == len(aggregates) == aggregates.statistics().aggregates
    assert aggregates.statistics().contexts == len(truth)


people = st.fixed_dictionaries(
    {},
    optional={
        "age": st.integers(20, 30) | st.sampled_from([25.5, Range(20, 24), OneOf([21, 29])]),
        "role": st.sampled_from(["guest", "driver", "clown", True]),
        "way": st.sampled_from(["/v/car", "/v/bus", "/foot"]).map(Path.parse),
        "position": st.sampled_from([Point(1, 1), Point(1, 2), Box(0, 0, 1, 1)]),
    },
)
who = st.sampled_from("abcdefg")
operations = st.one_of(
    st.tuples(st.just("put"), who, people),
    st.tuples(st.just("put"), who, people),
    st.tuples(st.just("remove"), who, st.none()),
    st.tuples(st.just("reaggregate"), who, st.none()),
)


@examples(200)
@given(
    st.lists(operations, min_size=5, max_size=40),
    st.sampled_from([0.0, 0.3, 0.6, 0.8]),
    st.sampled_from(Reading),
    st.integers(1, 3),
)
def test_whatever_happens_an_aggregate_is_what_its_members_make(
    script: list[tuple[str, str, Any]], threshold: float, reading: Reading, largest_set: int
) -> None:
    limits = Limits(largest_set)
    exact = link(threshold, Domains(), reading=reading, limits=limits, prefilter=False)
    aggregates = link(threshold, Domains(), reading=reading, limits=limits)
    neighbour, truth = Neighbour(), dict[str, Coarse]()
    for operation, member, context in script:
        both: list[list[Change]] = []
        for each in (aggregates, exact):
            if operation == "put":
                truth[member] = coarse(context)
                both.append(each.put(member, coarse(context)))
            elif member in truth and operation == "reaggregate":
                both.append(each.reaggregate(each.aggregate_of(member)))
            elif member in truth:
                both.append(each.remove(member))
        if operation == "remove":
            truth.pop(member, None)
        if both:
            assert both[0] == both[1], "the prefilter decides nothing"
            neighbour.hear(both[0])
        check(aggregates, truth, neighbour, limits)
    assert aggregates.statistics().compared <= exact.statistics().compared


@examples(100)
@given(
    st.lists(st.dictionaries(st.sampled_from("abc"), any_values), min_size=1, max_size=6),
    st.dictionaries(st.sampled_from("abc"), any_values),
    st.sampled_from(Reading),
    st.floats(0, 1),
    st.booleans(),
)
def test_candidates_are_as_similar_as_one_by_one(
    rows: list[dict[str, Any]], asked: dict[str, Any], reading: Reading, threshold: float, learned: bool
) -> None:
    domains = Domains()
    candidates = Candidates(domains, reading, prefilter=True)
    for row, attributes in enumerate([*rows, *rows]):
        candidates.set(row, coarse(attributes))
        if learned:
            domains.see(attributes)
    for row, attributes in enumerate(rows):
        candidates.set(row, coarse(asked))
        candidates.set(row, coarse(attributes))
        candidates.clear(len(rows) + row)
    context = coarse(asked)
    alike = {row: similarity(context, coarse(attributes), domains, reading) for row, attributes in enumerate(rows)}
    expected = [row for row in sorted(alike, key=lambda row: (-alike[row], row)) if alike[row] > threshold]
    assert candidates.similar(context, threshold) == expected


def test_who_is_alike_is_merged_and_who_is_not_stays_apart() -> None:
    aggregates = link()
    (first,) = aggregates.put("ada", coarse({"age": 20}))
    assert first == Change("r1/r2/1", 1, coarse({"age": 20}))
    assert aggregates.put("bob", coarse({"age": 25})) == [Change("r1/r2/1", 2, coarse({"age": OneOf([20, 25])}))]
    assert aggregates.put("cyd", coarse({"age": 25})) == [], "absorbed"
    assert aggregates.put("dot", coarse({"age": 90})) == [Change("r1/r2/2", 3, coarse({"age": 90}))]
    assert aggregates.defining("r1/r2/1") == {"ada", "bob"}


def test_a_member_that_defines_nothing_leaves_unheard_and_the_last_one_takes_the_aggregate_along() -> None:
    aggregates = link()
    for member, age in {"ada": 20, "bob": 25, "cyd": 25}.items():
        aggregates.put(member, coarse({"age": age}))
    assert aggregates.remove("cyd") == []
    assert aggregates.remove("ada") == [Change("r1/r2/1", 3, coarse({"age": 25}))]
    assert aggregates.remove("bob") == [Change("r1/r2/1", 4, None)]
    assert list(aggregates.contexts()) == []
    with pytest.raises(UnknownName, match="'bob'"):
        aggregates.remove("bob")


def test_a_defining_member_whose_part_another_takes_over_leaves_unheard() -> None:
    aggregates = link()
    for member, age in {"ada": 20, "bob": 25, "cyd": 20}.items():
        aggregates.put(member, coarse({"age": age}))
    assert aggregates.remove("ada") == []
    assert aggregates.defining("r1/r2/1") == {"bob", "cyd"}


def test_whoever_leaves_first_costs_a_few_merges_however_many_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each one is defining, at both ends of the range, and each one leaves."""
    merges = 0

    def counted(a: Coarse, b: Coarse, limits: Limits) -> Coarse | None:
        nonlocal merges
        merges += 1
        return merged(a, b, limits)

    for module in (joins, module_of_aggregates):
        monkeypatch.setattr(module, "merged", counted)
    aggregates, size = link(0.0, Domains({"age": Range(0, 100_000)})), 512
    for number in range(size):
        aggregates.put(f"m{number}", coarse({"age": number}))
    assert len(aggregates) == 1
    for number in range(size - 1):
        (change,) = aggregates.remove(f"m{number}")
        left = range(number + 1, size)
        expected = OneOf(left) if 1 < len(left) <= Limits().largest_set else Range(left[0], left[-1])
        assert change.context == coarse({"age": left[0] if len(left) == 1 else expected})
    assert merges < 2 * size * size.bit_length()


def test_a_context_that_changes_is_told_once() -> None:
    aggregates = link()
    aggregates.put("ada", coarse({"age": 20}))
    assert aggregates.put("ada", coarse({"age": 20})) == []
    assert aggregates.put("ada", coarse({"age": 90})) == [Change("r1/r2/1", 2, coarse({"age": 90}))]
    aggregates.put("bob", coarse({"age": 20}))
    moved = aggregates.put("ada", coarse({"age": 21}))
    assert moved == [Change("r1/r2/1", 4, None), Change("r1/r2/2", 5, coarse({"age": OneOf([20, 21])}))]


def test_truth_that_becomes_a_number_is_told() -> None:
    aggregates = link()
    aggregates.put("ada", coarse({"active": True}))
    assert aggregates.put("ada", coarse({"active": 1})) == [Change("r1/r2/1", 2, coarse({"active": 1}))]


def test_what_cannot_be_merged_stays_apart_however_alike_it_is() -> None:
    aggregates = link(0.0, limits=Limits(2))
    for name in ("x", "y", "z"):
        aggregates.put(name, coarse({"role": name}))
    assert [change.context for change in aggregates.contexts()] == [
        coarse({"role": OneOf("xy")}),
        coarse({"role": "z"}),
    ]


def test_a_degenerate_aggregate_is_dissolved_into_better_ones() -> None:
    """Alg. 4.5: a bridge that is gone has left two groups in one aggregate, which matches what nobody is."""
    aggregates = link(0.6, limits=Limits(1))
    for member, age in {"b": 40, "c": 70, "a": 10, "d": 12}.items():
        aggregates.put(member, coarse({"age": age}))
    (whole,) = aggregates.contexts()
    assert whole.context == coarse({"age": Range(10, 70)})
    aggregates.remove("b")
    nobody = parse("age = 40")
    assert any(possible(nobody, change.context) for change in aggregates.contexts() if change.context)
    changes = aggregates.reaggregate(whole.handle)
    assert [change.handle for change in changes if change.context is None] == [whole.handle]
    assert not any(possible(nobody, change.context) for change in aggregates.contexts() if change.context)
    assert len(aggregates) == 2
    with pytest.raises(UnknownName, match="no aggregate"):
        aggregates.reaggregate(whole.handle)


def test_what_is_farther_away_is_merged_sooner() -> None:
    here = ByDistance(Point(0, 0), reach=1_000_000, near=0.9, far=0.5)
    assert here.of(coarse({})) == 0.9
    assert here.of(coarse({"position": Point(0, 0)})) == 0.9
    assert here.of(coarse({"position": Box(-1, -1, 1, 1)})) == 0.9
    assert here.of(coarse({"position": OneOf([Point(0, 20), Point(0, 30)])})) == 0.5
    assert 0.5 < here.of(coarse({"position": Point(0, 4)})) < 0.9
    strict = ByDistance(Point(0, 0), reach=1_000_000, near=1.0, far=0.5)
    aggregates = Aggregates("r", Aggregation(strict), Domains({"position": Box(0, -1, 4, 1)}), Random(1))
    for name, lon in {"a": 0.1, "b": 0.9, "c": 15.0, "d": 15.8}.items():
        aggregates.put(name, coarse({"position": Point(0, lon)}))
    assert aggregates.aggregate_of("a") != aggregates.aggregate_of("b")
    assert aggregates.aggregate_of("c") == aggregates.aggregate_of("d")


def test_a_threshold_tunes_itself_within_its_bounds() -> None:
    tuning = SelfTuning(0.6, 0.5, 0.7, step=0.1)
    tuning.counted(false_positives=10, updates_saved=5)
    assert tuning.of(coarse({})) == pytest.approx(0.7)
    tuning.counted(10, 5)
    assert tuning.value == pytest.approx(0.7)
    tuning.counted(4, 5)
    assert tuning.value == pytest.approx(0.7), "neither too many nor few"
    for _ in range(5):
        tuning.counted(0, 5)
    assert tuning.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Fixed(1.5),
        lambda: ByDistance(Point(0, 0), 0),
        lambda: ByDistance(Point(0, 0), 5, near=-1),
        lambda: SelfTuning(0.3),
        lambda: SelfTuning(step=0),
    ],
)
def test_thresholds_that_cannot_be_are_refused(make: Any) -> None:
    with pytest.raises(InvalidValue):
        make()
