"""Error rates against closed forms, their order, and values of ns-3's own models."""

import math
from itertools import pairwise

import numpy as np
import pytest

from nearcast.runtime.simulation.radio.modulation import (
    TABLE_START_DB,
    TABLE_STEPS_PER_DB,
    log_success_per_bit,
    success_probability,
    table,
)
from nearcast.runtime.simulation.radio.profile import DSSS_RATES, OFDM_RATES, Family

ALL_RATES = [(Family.DSSS, rate) for rate in DSSS_RATES] + [(Family.OFDM, rate) for rate in OFDM_RATES]


def ratio(decibels: float) -> float:
    return float(10 ** (decibels / 10))


def test_differential_bpsk_halves_an_exponential_of_the_energy_per_bit() -> None:
    sinr = ratio(-5)
    assert math.exp(log_success_per_bit(Family.DSSS, 1_000_000, sinr)) == pytest.approx(1 - 0.5 * math.exp(-22 * sinr))


# Chunk error rates of 1536 bits, printed by ns-3 3.37 (NistErrorRateModel, which asks DsssErrorRateModel for DSSS).
@pytest.mark.parametrize(
    ("family", "rate", "decibels", "error"),
    [
        (Family.DSSS, 1_000_000, -4, 0.113691),
        (Family.DSSS, 2_000_000, 0, 0.257942),
        (Family.DSSS, 5_500_000, 4, 0.0189068),
        (Family.DSSS, 11_000_000, 6, 0.151406),
        (Family.OFDM, 6_000_000, 4, 0.0116365),
        (Family.OFDM, 9_000_000, 6, 0.200703),
        (Family.OFDM, 12_000_000, 6, 0.322083),
        (Family.OFDM, 24_000_000, 12, 0.770277),
        (Family.OFDM, 36_000_000, 16, 0.0871977),
        (Family.OFDM, 48_000_000, 20, 0.576393),
        (Family.OFDM, 54_000_000, 22, 0.0819338),
    ],
)
def test_error_rates_are_those_of_ns3(family: Family, rate: int, decibels: float, error: float) -> None:
    assert 1 - success_probability(family, rate, ratio(decibels), 1536) == pytest.approx(error, rel=1e-5)


@pytest.mark.parametrize(("family", "rate"), ALL_RATES)
def test_more_signal_means_fewer_errors(family: Family, rate: int) -> None:
    values = table(family, rate)
    assert (np.diff(values) >= -1e-15).all()
    assert values[0] < -0.1
    assert values[-1] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("family", "rates"), [(Family.DSSS, DSSS_RATES), (Family.OFDM, OFDM_RATES)])
def test_slower_rates_reach_farther(family: Family, rates: tuple[int, ...]) -> None:
    def needed(rate: int) -> int:
        """Steps of the table up to 99 % of frames of 192 bytes."""
        return int(np.argmax(table(family, rate) * 1536 > math.log(0.99)))

    reaches = [needed(rate) for rate in rates]
    # 9 Mbit/s (BPSK 3/4) needs as much as 12 Mbit/s (QPSK 1/2): the known oddity of 802.11a.
    assert all(slower <= faster + 10 for slower, faster in pairwise(reaches))
    assert reaches[0] < reaches[-1]


@pytest.mark.parametrize(("family", "rate"), ALL_RATES)
def test_the_table_between_its_steps_is_exact_enough(family: Family, rate: int) -> None:
    values = table(family, rate)
    for index in range(0, len(values) - 1, 97):
        between = TABLE_START_DB + (index + 0.5) / TABLE_STEPS_PER_DB
        exact = success_probability(family, rate, ratio(between), 12_000)
        assert math.exp(12_000 * 0.5 * (values[index] + values[index + 1])) == pytest.approx(exact, abs=1e-3)


def test_no_signal_no_bit() -> None:
    assert log_success_per_bit(Family.OFDM, 6_000_000, 0.0) == -math.inf
