"""How evenly a burden is shared (BYPASS.KOM 6.1.4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nearcast.errors import InvalidInput


def jain_index(shares: npt.ArrayLike) -> float | None:
    """``(sum x)^2 / (n * sum x^2)``: 1 if all shares are equal, 1/n if one has all.

    Who could have been chosen but never was belongs in it, with 0.  None if there is nobody or nothing to share.
    """
    values = np.asarray(shares, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any():
        raise InvalidInput("shares are a list of numbers, none of them negative or missing")
    largest = values.max(initial=0.0)
    if largest == 0.0:
        return None
    scaled = values / largest  # squares of what is very large or very small would leave the range of numbers
    return float(scaled.sum() ** 2 / (len(scaled) * (scaled**2).sum()))
