"""How often a bit gets lost at a given ratio of signal to noise and interference (SINR).

Closed forms from the literature, the ones that ns-3's ``DsssErrorRateModel`` and ``NistErrorRateModel`` use, so that both
simulators can be compared:

- DSSS: differential BPSK and QPSK after despreading over 22 MHz; CCK as biorthogonal signalling (Proakis, Digital
  Communications, 4th ed., 5.2; Pursley and Royster, 2009).
- OFDM: uncoded error rates of Gray-coded QAM, then the union bound of the convolutional code with hard decisions
  (Pei and Henderson, Validation of OFDM error rate model in ns-3, 2010).

Kernels read them from a table in steps of a hundredth of a decibel.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from nearcast.runtime.simulation.radio.profile import Family

Floats = npt.NDArray[np.float64]

TABLE_START_DB: Final = -20.0
TABLE_STEPS_PER_DB: Final = 100
TABLE_LENGTH: Final = 60 * TABLE_STEPS_PER_DB

# Number of wrong bits over all paths of the convolutional code (133, 171), by the distance of the path: rate 1/2 from
# distance 10 on (even ones only), punctured 2/3 from 6 on, punctured 3/4 from 5 on (Haccoun and Begin, 1989).
_PATHS: Final[dict[int, tuple[int, int, tuple[int, ...]]]] = {
    1: (10, 2, (36, 211, 1404, 11633, 77433, 502690, 3322763, 21292910, 134365911)),
    2: (6, 1, (3, 70, 285, 1276, 6160, 27128, 117019, 498860, 2103891, 8784123)),
    3: (5, 1, (42, 201, 1492, 10469, 62935, 379644, 2253373, 13073811, 75152755, 428005675)),
}

# Rate in Mbit/s: points of the constellation, bits into the encoder per step (1: 1/2, 2: 2/3, 3: 3/4).
_OFDM: Final = {
    6_000_000: (2, 1),
    9_000_000: (2, 3),
    12_000_000: (4, 1),
    18_000_000: (4, 3),
    24_000_000: (16, 1),
    36_000_000: (16, 3),
    48_000_000: (64, 2),
    54_000_000: (64, 3),
}


def log_success_per_bit(family: Family, rate: int, sinr: float) -> float:
    """The natural logarithm of the probability that one bit at ``rate`` survives; ``sinr`` is a ratio, not decibels."""
    if sinr <= 0.0:
        return -math.inf
    error, bits = _dsss(rate, sinr) if family is Family.DSSS else (_ofdm(rate, sinr), 1)
    return math.log1p(-error) / bits if error < 1.0 else -math.inf


def success_probability(family: Family, rate: int, sinr: float, bits: float) -> float:
    return math.exp(bits * log_success_per_bit(family, rate, sinr))


def _dsss(rate: int, sinr: float) -> tuple[float, int]:
    """Error probability of a symbol, and the bits that it stands for."""
    chips = sinr * 22.0
    if rate == 1_000_000:
        return 0.5 * math.exp(-chips), 1
    if rate == 2_000_000:
        root = math.sqrt(2.0)
        scale = (root + 1.0) / math.sqrt(8.0 * math.pi * root)
        return scale / math.sqrt(chips / 2.0) * math.exp(-(2.0 - root) * chips / 2.0), 1
    energy = sinr * 16.0 / 2.0  # 22 MHz over 1.375 million symbols a second, half of it in each dimension
    if rate == 5_500_000:
        return _biorthogonal_error(energy), 4
    correct = 1.0 - _biorthogonal_error(energy / 2.0)
    return 1.0 - correct * correct, 8


def _biorthogonal_error(energy: float) -> float:
    """Error probability of one symbol out of 16 biorthogonal ones (Proakis, 5.2-36), by Gauss-Legendre quadrature."""
    beta = math.sqrt(2.0 * energy)
    low, high = max(-beta, -9.0), 9.0
    nodes, weights = _quadrature()
    v = 0.5 * (high - low) * nodes + 0.5 * (high + low)
    density = np.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi)
    others = np.array([math.erfc((value + beta) / math.sqrt(2.0)) for value in v])  # 1 - (2 Phi - 1)
    # What is lost, not what is right: the complement keeps its digits when errors are rare.
    wrong = density * -np.expm1(7.0 * np.log1p(-np.minimum(others, 1.0)))
    tail = 0.5 * math.erfc(beta / math.sqrt(2.0)) + 0.5 * math.erfc(high / math.sqrt(2.0))
    return min(1.0, float(0.5 * (high - low) * np.sum(weights * wrong)) + tail)


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    polynomial: Any = np.polynomial.legendre
    nodes, weights = polynomial.leggauss(96)
    return nodes, weights


def _ofdm(rate: int, sinr: float) -> float:
    points, step = _OFDM[rate]
    if points == 2:
        raw = 0.5 * math.erfc(math.sqrt(sinr))
    elif points == 4:
        raw = 0.5 * math.erfc(math.sqrt(sinr / 2.0))
    elif points == 16:
        raw = 0.375 * math.erfc(math.sqrt(sinr / 10.0))
    else:
        raw = 7.0 / 24.0 * math.erfc(math.sqrt(sinr / 42.0))
    distance = math.sqrt(4.0 * raw * (1.0 - raw))
    shortest, stride, paths = _PATHS[step]
    bound = sum(count * distance ** (shortest + stride * index) for index, count in enumerate(paths))
    return min(1.0, bound / (2.0 * step))


@lru_cache(maxsize=16)
def table(family: Family, rate: int) -> Floats:
    """``log_success_per_bit`` from ``TABLE_START_DB`` on, one more than ``TABLE_LENGTH`` so that kernels may interpolate.

    Hopeless bits are written as a large finite number, for a kernel to multiply by a duration of zero.
    """
    decibels = TABLE_START_DB + np.arange(TABLE_LENGTH + 1) / TABLE_STEPS_PER_DB
    values = np.array([log_success_per_bit(family, rate, 10.0 ** (db / 10.0)) for db in decibels])
    bounded: Floats = np.maximum(values, -1e6)
    bounded.setflags(write=False)
    return bounded
