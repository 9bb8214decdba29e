"""A crowd that is counted without a list."""

from __future__ import annotations

import struct
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.crowdstore.census import BYTES, LARGEST, NUMBERS, Census, estimate, numbers_of


def smallest(names: range) -> tuple[int, ...]:
    return reduce(lambda one, other: tuple(map(max, one, other)), (numbers_of(f"n{name}") for name in names))


@pytest.mark.parametrize("size", [1, 10, 100, 1_000])
def test_the_size_is_estimated_without_bias_and_with_the_error_of_the_closed_form(size: int) -> None:
    crowds = 40
    relative = [estimate(smallest(range(at * size, (at + 1) * size))) / size for at in range(crowds)]
    deviation = (NUMBERS - 2) ** -0.5
    assert sum(relative) / crowds == pytest.approx(1.0, abs=4 * deviation / crowds**0.5)
    assert all(abs(each - 1.0) < 5 * deviation for each in relative)


def counted(crowds: list[range]) -> Census:
    """What host 0 knows after rounds with these hosts."""
    census = Census("n0")
    for number, crowd in enumerate(crowds):
        census.begin(number)
        for name in crowd:
            other = Census(f"n{name}")
            other.begin(number)
            census.hear(number, other.tell())
    return census


def test_a_crowd_that_stays_has_no_turnover_and_one_that_changes_has_its_share() -> None:
    count = counted([range(100), range(100)]).begin(2)
    assert count is not None
    assert count.turnover == 0.0
    # A quarter leaves: each number was held by one of them with that probability.
    count = counted([range(100), range(75)]).begin(2)
    assert count is not None
    assert count.turnover is not None
    assert count.turnover == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / NUMBERS) ** 0.5)


def test_who_was_away_for_a_round_knows_no_count_and_no_turnover() -> None:
    census = counted([range(10), range(10)])
    assert census.begin(3) is None
    count = census.begin(4)
    assert count is not None
    assert count.turnover is None


@given(number=st.integers(-3, 3), told=st.binary(max_size=2 * BYTES))
def test_whatever_somebody_says_only_a_count_of_this_round_matters(number: int, told: bytes) -> None:
    census = Census("n0")
    census.begin(0)
    before = census.tell()
    census.hear(number, told)
    assert census.changed == (census.tell() != before)
    if number or len(told) != BYTES:
        assert census.tell() == before


@pytest.mark.parametrize("share", [1, 2, 4])
def test_nobody_makes_a_crowd_of_more_hosts_than_can_be(share: int) -> None:
    census = Census("n0")
    census.begin(0)
    for liar in range(share):  # alone, or several who each make up some of the numbers
        numbers = [65_535 if number % share == liar else 0 for number in range(NUMBERS)]
        census.hear(0, struct.pack(f">{NUMBERS}H", *numbers))
    for name in range(1, 10):
        other = Census(f"n{name}")
        other.begin(0)
        census.hear(0, other.tell())
    count = census.begin(1)
    assert count is not None
    assert count.size <= LARGEST
    if share == 1:
        assert 5 < count.size < 20, "what is impossible is as if it had not been said"
