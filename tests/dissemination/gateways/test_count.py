"""How many gateways: the document's share, and what the density asks for."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dissemination.gateways.crowds import candidate, covered, crowd, crowds, made

from nearcast.dissemination.gateways.candidate import Candidate
from nearcast.dissemination.gateways.count import MULTI_HOP, SINGLE_HOP, Density, Share
from nearcast.errors import InvalidInput


@given(st.integers(1, 500), st.sampled_from([SINGLE_HOP, MULTI_HOP]))
def test_a_share_of_the_receivers_is_rounded_up(number: int, share: float) -> None:
    fifths = round(share * 5)
    assert Share(share)(crowd(Random(1), number)) == -(-number * fifths // 5)


@pytest.mark.parametrize("width", [100.0, 300.0, 600.0, 1_200.0])
@pytest.mark.parametrize("number", [10, 40, 80])
def test_so_many_by_lot_reach_as_many_as_was_expected(number: int, width: float) -> None:
    random, wanted, metres = Random(f"{number}/{width}"), 0.9, 88.0
    found = []
    for _ in range(4):
        candidates = crowd(random, number, width)
        k = Density(wanted, metres)(candidates)
        names = [each.address for each in candidates]
        share = fmean(covered(candidates, random.sample(names, k), metres) for _ in range(40))
        assert share >= wanted - 0.05
        if k > 1:
            fewer = fmean(covered(candidates, random.sample(names, k - 1), metres) for _ in range(40))
            assert fewer <= wanted + 0.05
        found.append(k)
    assert max(found) <= number


def test_leach_reaches_them_too_while_it_rotates() -> None:
    random = Random(3)
    # Where their number is left to chance, a few too many do not make up for a few too few.
    for name, least in (("DKC-LEACH", 0.93), ("SKC-LEACH", 0.9)):
        shares = []
        for _ in range(10):
            selection, candidates = made(name), crowd(random, 60, 300.0)
            k = Density(0.95)(candidates)
            assert k < 0.4 * len(candidates)
            shares += [covered(candidates, list(selection.select(candidates, k)), 88.0) for _ in range(20)]
        assert fmean(shares) >= least


def test_where_people_stand_closer_fewer_are_needed() -> None:
    counts = [Density()(crowd(Random(1), 80, width)) for width in (1_000.0, 500.0, 250.0, 100.0, 20.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    assert counts[0] > 20


@given(crowds(), st.floats(0.01, 1.0))
def test_there_are_enough_and_never_more_than_all(candidates: list[Candidate], coverage: float) -> None:
    k = Density(coverage)(candidates)
    assert 1 <= k <= len(candidates)
    if coverage == 1.0:
        # Certain only if too few are left who could all be out of range of the loneliest.
        loneliest = min(round(covered(candidates, [each.address], 88.0) * len(candidates)) for each in candidates)
        assert k >= len(candidates) - loneliest + 1 - 1e-9


def test_all_of_those_who_stand_alone_are_needed_for_all() -> None:
    apart = [candidate(number, 1_000.0 * number, 0.0) for number in range(10)]
    assert Density(1.0)(apart) == 10
    assert Density(0.95)(apart) == 10
    assert Density(0.5)(apart) == 5


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, math.nan])
def test_shares_are_shares(share: float) -> None:
    with pytest.raises(InvalidInput, match="share"):
        Share(share)
    with pytest.raises(InvalidInput, match="coverage"):
        Density(share)
