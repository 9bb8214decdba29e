"""Jain's index by its closed forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.metrics import jain_index

shares = st.lists(st.floats(0.0, 1e300), min_size=1, max_size=20)


@given(st.integers(1, 50), st.floats(1e-300, 1e300))
def test_equal_shares_are_fair(number: int, share: float) -> None:
    assert jain_index([share] * number) == pytest.approx(1.0)


@given(st.integers(1, 50), st.floats(1e-300, 1e300))
def test_one_who_has_all_is_one_of_n(number: int, share: float) -> None:
    assert jain_index([share] + [0.0] * (number - 1)) == pytest.approx(1 / number)


@given(st.integers(1, 20), st.integers(0, 20))
def test_equal_shares_among_k_of_n_are_k_of_n(some: int, others: int) -> None:
    assert jain_index([3.0] * some + [0.0] * others) == pytest.approx(some / (some + others))


@given(shares)
def test_it_lies_between_one_of_n_and_one(some: list[float]) -> None:
    index = jain_index(some)
    if index is None:
        assert not any(some)
    else:
        assert 1 / len(some) - 1e-9 <= index <= 1 + 1e-9


def test_nothing_to_share_has_no_index() -> None:
    assert jain_index([]) is None
    assert jain_index([0.0, 0.0]) is None


@pytest.mark.parametrize("wrong", [[-1.0], [float("nan")], [[1.0]]])
def test_shares_are_not_negative(wrong: list[float]) -> None:
    with pytest.raises(InvalidInput, match="shares"):
        jain_index(wrong)
