"""How the work of a round is shared."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.dissemination.gateways.shares import relative_batteries, shared

weights = st.lists(st.floats(0, 10), min_size=1, max_size=20)


@given(weights, st.data())
def test_all_turns_are_given_and_nobody_has_more_than_one(some: list[float], data: st.DataObject) -> None:
    turns = data.draw(st.integers(0, len(some)))
    found = shared(turns, some)
    assert math.fsum(found) == pytest.approx(turns)
    assert all(0.0 <= each <= 1.0 + 1e-9 for each in found)
    for one in range(len(some)):
        for other in range(len(some)):
            if some[one] >= some[other]:
                assert found[one] >= found[other] - 1e-9


def test_in_proportion_and_what_is_too_much_for_one_falls_to_the_others() -> None:
    assert shared(2, [1.0, 1.0, 2.0]) == pytest.approx([0.5, 0.5, 1.0])
    assert shared(2, [1.0, 1.0, 18.0]) == pytest.approx([0.5, 0.5, 1.0])
    assert shared(2, [0.0, 0.0, 1.0]) == pytest.approx([0.5, 0.5, 1.0])
    assert shared(2, [0.0, 5e-324]) == [1.0, 1.0]


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=20), st.sampled_from([0.0, 1.0, 2.0]))
def test_batteries_weigh_one_on_average(batteries: list[float | None], strength: float) -> None:
    found = relative_batteries(batteries, strength)
    assert math.fsum(found) / len(found) == pytest.approx(1.0)
    if strength == 0.0:
        assert set(found) == {1.0}


def test_what_is_not_known_is_average_and_all_empty_are_equal() -> None:
    assert relative_batteries([0.2, None, 0.6], 1.0) == pytest.approx([0.5, 1.0, 1.5])
    assert relative_batteries([0.0, 0.0], 2.0) == [1.0, 1.0]
    assert relative_batteries([None, None], 2.0) == [1.0, 1.0]
