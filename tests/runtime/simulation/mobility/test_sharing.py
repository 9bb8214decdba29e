from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearcast.errors import InvalidInput
from nearcast.runtime.simulation.mobility.sharing import shared_out
from nearcast.runtime.simulation.mobility.standing import Standing

KINDS = [Standing(float(index), 0.0) for index in range(5)]


def test_sixty_per_cent_of_a_hundred_are_sixty() -> None:
    models = shared_out([(0.6, KINDS[0]), (0.4, KINDS[1])], 100, Random(1))
    assert Counter(models) == {KINDS[0]: 60, KINDS[1]: 40}
    assert models != [KINDS[0]] * 60 + [KINDS[1]] * 40


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=5).filter(any), st.integers(0, 50))
def test_everybody_gets_a_model_and_no_kind_is_off_by_one(shares: list[float], people: int) -> None:
    models = shared_out(list(zip(shares, KINDS, strict=False)), people, Random(2))
    assert len(models) == people
    for share, kind in zip(shares, KINDS, strict=False):
        assert abs(models.count(kind) - people * share / sum(shares)) < 1 + 1e-9


@pytest.mark.parametrize("shares", [[0.0], [-1.0, 2.0], []])
def test_impossible_shares_are_refused(shares: list[float]) -> None:
    with pytest.raises(InvalidInput, match="shares"):
        shared_out([(share, KINDS[0]) for share in shares], 10, Random(3))
