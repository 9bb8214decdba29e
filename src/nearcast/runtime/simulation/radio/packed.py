"""The kernels without the price of handing over eighteen arrays.

To take them apart on each call would cost more than to put one frame into a queue (``nearcast.compiled.Addresses``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearcast.compiled import (
    Addresses,
    addresses_for,
    cube,
    inlined_making_arrays,
    kernel_making_arrays,
    line,
    table,
    write_addresses,
)
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
    World,
)


def packed(world: World) -> Addresses:
    """Where all arrays of the world lie; good as long as it keeps them alive."""
    addresses = addresses_for(len(world))
    write_addresses(addresses, 0, world)
    return addresses


@inlined_making_arrays
def _world(a: Any) -> World:
    i32, i64, f64 = np.int32, np.int64, np.float64
    return World(
        line(a, 0, PARAMETERS),
        line(a, 1, CONTROL),
        table(a, 2, f64),
        line(a, 3, LEG),
        line(a, 4, NODE),
        table(a, 5, i64),
        line(a, 6, FRAME),
        line(a, 7, AIR),
        table(a, 8, HEARD),
        line(a, 9, EVENT),
        line(a, 10, SOURCE),
        line(a, 11, i32),
        line(a, 12, i32),
        line(a, 13, f64),
        line(a, 14, f64),
        cube(a, 15, i64),
        table(a, 16, i32),
        cube(a, 17, i64),
    )


@kernel_making_arrays
def run_packed(a: Any, until: int) -> int:
    return run.run(_world(a), until)


@kernel_making_arrays
def hand_in_packed(
    a: Any, node: int, to: int, size: int, airtime: int, key: int, copy: int, door: int, now: int
) -> int:
    return run.hand_in(_world(a), node, to, size, airtime, key, copy, door, now)
