"""Similarities: the equations 4.1 to 4.7 of Contextcast, their gaps, and the prefilter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.strategies import names
from tests.overlay.contexts import any_values, plug_ins

from nearcast.model.area import Box
from nearcast.model.geometry import Point
from nearcast.model.values import OneOf, Path, Range, Subtree
from nearcast.overlay.values.coarse import Coarse, coarse
from nearcast.overlay.values.domains import Domains
from nearcast.overlay.values.hierarchies import HIERARCHIES
from nearcast.overlay.values.nominals import similarity as nominal_similarity
from nearcast.overlay.values.signatures import Signatures
from nearcast.overlay.values.similarity import Reading, of_intervals, of_values, similarity

LITERAL, POSITION_ONLY = Reading.LITERAL, Reading.POSITION_ONLY_FOR_POINTS
readings = st.sampled_from(Reading)


@pytest.fixture(autouse=True, scope="module")
def _plug_ins() -> Iterator[None]:
    with plug_ins():
        yield


def alike(a: dict[str, Any], b: dict[str, Any], reading: Reading = LITERAL, **domains: Any) -> float:
    return similarity(coarse(a), coarse(b), Domains(domains), reading)


@pytest.mark.parametrize("reading", Reading)
def test_the_example_of_two_intervals(reading: Reading) -> None:
    assert of_intervals((23, 26), (25, 30), 120, reading) == pytest.approx(713 / 1260)
    assert alike({"age": Range(23, 26)}, {"age": Range(25, 30)}, reading, age=Range(0, 120)) == pytest.approx(
        713 / 1260
    )


def test_points_have_neither_span_nor_content() -> None:
    assert of_intervals((30, 30), (36, 36), 120, LITERAL) == pytest.approx(0.95 / 3)
    assert of_intervals((30, 30), (36, 36), 120, POSITION_ONLY) == pytest.approx(0.95)
    assert of_intervals((30, 40), (36, 36), 120, LITERAL) == pytest.approx((0.95 + 0.5 + 0) / 3)
    assert of_intervals((30, 40), (36, 36), 120, POSITION_ONLY) == pytest.approx(0.95)
    assert of_intervals((30, 30), (30, 30), 120, LITERAL) == 1.0


def test_two_identical_pairs_are_as_alike_as_one_and_contexts_without_a_common_attribute_not_at_all() -> None:
    """Table 4.1: the mean over shared attributes, where Gowda's sum would grow with their number."""
    one, two = {"age": 30}, {"age": 30, "role": "guest"}
    assert alike(one, one) == alike(two, two) == 1.0
    assert alike({"age": 30}, {"role": "guest"}) == 0.0
    assert alike(one, two) == 0.5
    assert alike({}, {}) == 1.0
    assert alike({}, one) == 0.0


def test_nominal_values_are_alike_by_what_they_share() -> None:
    assert nominal_similarity("a", "b") == 0.25
    assert nominal_similarity(OneOf("ab"), OneOf("bc")) == pytest.approx((4 / 6 + 1 / 3) / 2)
    assert nominal_similarity(OneOf("ab"), OneOf("ab")) == 1.0


def test_paths_are_alike_by_their_common_ancestor() -> None:
    car, bus, foot = Path.parse("/v/car"), Path.parse("/v/bus"), Path.parse("/foot")

    def of(a: Any, b: Any, height: float) -> float:
        return of_values(a, b, HIERARCHIES, (height,), LITERAL)

    assert of(car, bus, 2) == 1 - 2 / 4
    assert of(car, bus, 5) == 1 - 2 / 10
    assert of(car, foot, 2) == 1 - 3 / 4
    assert of(car, car, 2) == 1.0
    assert of(OneOf([car, foot]), car, 2) == pytest.approx((1 + 0.25 + 1) / 3)
    assert of(Subtree(Path.parse("/v")), car, 2) == 0.75
    assert of(Path(()), Path(()), 0) == 1.0


def test_places_are_alike_axis_by_axis() -> None:
    city = Box(0, 0, 10, 10)
    here, there = Point(1, 1), Point(1, 3)
    assert alike({"p": here}, {"p": there}, POSITION_ONLY, p=city) == pytest.approx((0.8 + 1) / 2)
    assert alike({"p": Box(0, 0, 2, 2)}, {"p": Box(0, 0, 2, 2)}, p=city) == 1.0


def test_domains_are_given_or_learned() -> None:
    domains = Domains({"age": Range(0, 100)})
    kind = HIERARCHIES
    for attributes in ({"age": 500, "way": Path.parse("/a")}, {"way": Path.parse("/a/b/c")}):
        domains.see(attributes)
    assert domains.widths("way", kind) == (3.0,)
    assert domains.widths("unheard", kind) == ()
    a, b = coarse({"age": 10}), coarse({"age": 60})
    assert similarity(a, b, domains, POSITION_ONLY) == pytest.approx(0.5)
    far = coarse({"age": 500})
    assert similarity(a, far, domains, POSITION_ONLY) == 0.0, "beyond the domain it ends at nothing"


def structural(some: Iterable[str], others: Iterable[str]) -> float:
    """Eq. 4.1: shared attributes among all."""
    a, b = set(some), set(others)
    return len(a & b) / len(a | b) if a or b else 1.0


def common(a: int, b: int) -> float:
    """The same of two signatures."""
    union = (a | b).bit_count()
    return (a & b).bit_count() / union if union else 1.0


@given(st.dictionaries(names, any_values), st.dictionaries(names, any_values), readings, st.booleans())
def test_similarity_is_symmetric_between_nothing_and_everything_and_bounded_by_structure(
    a: dict[str, Any], b: dict[str, Any], reading: Reading, learned: bool
) -> None:
    domains = Domains()
    if learned:
        domains.see(a)
        domains.see(b)
    one, other = Coarse(a), Coarse(b)
    result = similarity(one, other, domains, reading)
    assert result == pytest.approx(similarity(other, one, domains, reading))
    assert 0.0 <= result <= structural(a, b)
    assert similarity(one, one, domains, reading) == pytest.approx(1.0)


@given(st.frozensets(st.sampled_from("abcdefgh")), st.frozensets(st.sampled_from("abcdefgh")))
def test_one_bit_for_each_name_is_exact(a: frozenset[str], b: frozenset[str]) -> None:
    signatures = Signatures()
    assert common(signatures.of(a), signatures.of(b)) == structural(a, b)


def test_shared_bits_would_not_be_an_upper_bound() -> None:
    """The document's claim, and what refutes it: x and y on one bit."""
    x = y = 1
    v = 2
    assert common(x | y, x | y | v) == 1 / 2 < structural("xy", "xyv") == 2 / 3
    signatures = Signatures()
    assert common(signatures.of("xy"), signatures.of("xyv")) == 2 / 3
