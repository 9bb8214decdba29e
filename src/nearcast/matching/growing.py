"""Arrays that grow."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = TypeVar("Array", bound=npt.NDArray[Any])


def grown(array: Array, size: int, fill: float | None = None) -> Array:
    """The array with room for at least ``size`` rows; what it holds stays, what is new is ``fill`` if given.

    Grows by half: memory that was reserved and not yet written costs no page.
    """
    if size <= len(array):
        return array
    larger = np.empty((max(size, len(array) + len(array) // 2 + 16), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    if fill is not None:
        larger[len(array) :] = fill
    return larger  # type: ignore[return-value]
