"""Random numbers that depend only on the seed and on what they are for, not on the order in which they are asked for.

The finaliser of splitmix64 (Steele, Lea and Flood, 2014), applied to the seed and two numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from nearcast.compiled import inlined

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@inlined
def _mixed(value: Any) -> Any:
    value = (value ^ (value >> np.uint64(30))) * _FIRST
    value = (value ^ (value >> np.uint64(27))) * _SECOND
    return value ^ (value >> np.uint64(31))


@inlined
def uniform(seed: Any, first: int, second: int) -> float:
    """At least 0 and below 1."""
    value = _mixed(np.uint64(seed) + np.uint64(first) * _GOLDEN)
    value = _mixed(value + np.uint64(second) * _GOLDEN)
    return float(value >> np.uint64(11)) * 2.0**-53
