"""The kernels without the price of handing over eighteen arrays.

numba takes every array of an argument apart anew on each call, which costs more than to put one frame into a queue.  So the
addresses of the arrays are kept in one small array, and the kernels put the world together again from there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from nearcast.compiled import inlined_making_arrays, kernel_making_arrays, pointer
from nearcast.runtime.simulation.motion import LEG
from nearcast.runtime.simulation.radio import run
from nearcast.runtime.simulation.radio.layout import (
    AIR,
    CONTROL,
    EVENT,
    FRAME,
    HEARD,
    NODE,
    PARAMETERS,
    SOURCE,
    Int64s,
    World,
)


def packed(world: World) -> Int64s:
    """Addresses and shapes of all arrays; good as long as the world keeps them alive."""
    addresses = np.zeros((len(world), 4), np.int64)
    for row, array in enumerate(world):
        assert array.flags.c_contiguous
        addresses[row, 0] = array.__array_interface__["data"][0]
        addresses[row, 1 : 1 + array.ndim] = array.shape
    return addresses


@inlined_making_arrays
def _line(a: Any, row: int, dtype: Any) -> Any:
    return carray(pointer(a[row, 0]), (a[row, 1],), dtype)


@inlined_making_arrays
def _table(a: Any, row: int, dtype: Any) -> Any:
    return carray(pointer(a[row, 0]), (a[row, 1], a[row, 2]), dtype)


@inlined_making_arrays
def _cube(a: Any, row: int, dtype: Any) -> Any:
    return carray(pointer(a[row, 0]), (a[row, 1], a[row, 2], a[row, 3]), dtype)


@inlined_making_arrays
def _world(a: Any) -> World:
    i32, i64, f64 = np.int32, np.int64, np.float64
    return World(
        _line(a, 0, PARAMETERS),
        _line(a, 1, CONTROL),
        _table(a, 2, f64),
        _line(a, 3, LEG),
        _line(a, 4, NODE),
        _table(a, 5, i64),
        _line(a, 6, FRAME),
        _line(a, 7, AIR),
        _table(a, 8, HEARD),
        _line(a, 9, EVENT),
        _line(a, 10, SOURCE),
        _line(a, 11, i32),
        _line(a, 12, i32),
        _line(a, 13, f64),
        _line(a, 14, f64),
        _cube(a, 15, i64),
        _table(a, 16, i32),
        _cube(a, 17, i64),
    )


@kernel_making_arrays
def run_packed(a: Any, until: int) -> int:
    return run.run(_world(a), until)


@kernel_making_arrays
def hand_in_packed(
    a: Any, node: int, to: int, size: int, airtime: int, key: int, copy: int, door: int, now: int
) -> int:
    return run.hand_in(_world(a), node, to, size, airtime, key, copy, door, now)
