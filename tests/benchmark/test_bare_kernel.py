"""The bound is a bound for the right answers."""

import itertools

import numpy as np
import pytest

from nearcast.benchmark.bare_kernel import BareKernel
from nearcast.benchmark.plane import Floats

RADIUS = 150.0
ROUNDING = 0.05  # metres; single precision over some kilometres


def receivers(kernel: BareKernel, x: Floats, y: Floats, *, scalar: bool) -> list[set[int]]:
    offsets, found = kernel.room(len(x))
    match = kernel.match_scalar if scalar else kernel.match
    total = match(*kernel.locate(x, y), offsets, found)
    assert total == offsets[-1]
    answers = [found[first:last].tolist() for first, last in itertools.pairwise(offsets)]
    assert all(len(set(answer)) == len(answer) for answer in answers)
    return [set(answer) for answer in answers]


@pytest.mark.parametrize("scalar", [False, True], ids=["vector", "scalar"])
@pytest.mark.parametrize("clients", [1, 15, 16, 17, 3_000])
def test_the_kernel_finds_whom_brute_force_finds(clients: int, scalar: bool) -> None:
    random = np.random.default_rng(clients)
    x, y = random.uniform(-2_000, 2_000, (2, clients))
    # Also far outside, where nobody is.
    event_x, event_y = random.uniform(-4_000, 4_000, (2, 500))
    found = receivers(BareKernel.build(x, y, RADIUS), event_x, event_y, scalar=scalar)
    distance = np.hypot(x - event_x[:, None], y - event_y[:, None])
    for event, answer in enumerate(found):
        surely = set(np.flatnonzero(distance[event] <= RADIUS - ROUNDING).tolist())
        possibly = set(np.flatnonzero(distance[event] <= RADIUS + ROUNDING).tolist())
        assert surely <= answer <= possibly


@pytest.mark.parametrize("scalar", [False, True], ids=["vector", "scalar"])
def test_a_hot_spot_in_one_place_and_corners_of_cells(scalar: bool) -> None:
    x = np.concatenate((np.zeros(1_000), np.arange(-5, 6) * RADIUS))
    y = np.concatenate((np.zeros(1_000), np.arange(-5, 6) * RADIUS))
    answer = receivers(BareKernel.build(x, y, RADIUS), np.zeros(3), np.zeros(3), scalar=scalar)
    assert answer == [{*range(1_000), 1_005}] * 3
