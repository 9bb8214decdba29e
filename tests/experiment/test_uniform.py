"""Areas that cells and circles share, against closed forms."""

from __future__ import annotations

import math

import pytest

from nearcast.experiment.uniform import egrid_precision, grid_recall


@pytest.mark.parametrize(("factor", "expected"), [(5, 0.22), (10, 0.36), (20, 0.52)])
def test_precision_of_egrid_is_that_of_the_monte_carlo_in_the_digest(factor: int, expected: float) -> None:
    # The digest gives two digits, of random places; ours are on a lattice of 5 m.
    assert egrid_precision(1300.0, 125.0, factor) == pytest.approx(expected, abs=0.015)


@pytest.mark.parametrize("factor", [5, 10])
def test_far_from_borders_precision_of_egrid_is_the_ratio_of_areas(factor: int) -> None:
    side, radius = 13_000.0, 250.0
    exact = math.pi * radius**2 / (2 * radius + side / factor) ** 2
    # Borders touch a share of about 2 * radius / side of the events, and cut at most half of the areas.
    assert egrid_precision(side, radius, factor) == pytest.approx(exact, rel=4 * radius / side + 0.05)


@pytest.mark.parametrize(("factor", "expected"), [(2, 0.93), (5, 0.70), (10, 0.37)])
def test_recall_of_grid_is_that_of_the_monte_carlo_in_the_digest(factor: int, expected: float) -> None:
    assert grid_recall(1300.0, 125.0, factor) == pytest.approx(expected, abs=0.015)


def test_one_cell_misses_nobody_and_tells_everybody() -> None:
    assert grid_recall(1300.0, 125.0, 1) == 1.0
    assert egrid_precision(1300.0, 125.0, 1) < 0.03
