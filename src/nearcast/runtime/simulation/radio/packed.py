"""The kernels without the price of handing over nineteen arrays.

To take them apart on each call would cost more than to put one frame into a queue (``nearcast.compiled.Addresses``).  Below
the addresses the kernels leave what Python wants to know after each call: one look instead of five.
"""

from __future__ import annotations

from typing import Any, Final

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
from nearcast.runtime.simulation.kernel import NEVER
from nearcast.runtime.simulation.motion import LEG
from nearcast.runtime.simulation.radio import run
from nearcast.runtime.simulation.radio.layout import (
    AIR,
    COMPLETIONS,
    CONTROL,
    DELIVERIES,
    EVENT,
    FRAME,
    HEARD,
    LOSSES,
    NODE,
    PARAMETERS,
    SOURCE,
    Int64s,
    World,
)

_OUTLOOK: Final = 2
"""Rows below the addresses: now, next, deliveries and completions in one, losses in the other."""


def packed(world: World) -> Addresses:
    """Where all arrays of the world lie; good as long as it keeps them alive."""
    addresses = addresses_for(len(world) + _OUTLOOK)
    write_addresses(addresses, 0, world)
    look_packed(addresses)
    return addresses


def outlook(packed: Addresses) -> Int64s:
    """What the last call has left: the time, when something happens next, and how much of each kind there is to report."""
    left: Int64s = packed[-_OUTLOOK:].reshape(-1)[:5]
    return left


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
        table(a, 18, i32),
    )


@inlined_making_arrays
def _look(a: Any, world: World) -> None:
    control = world.control[0]
    row = len(a) - _OUTLOOK
    a[row, 0] = control.now
    a[row, 1] = world.heap[0].time if control.heap_size > 0 else NEVER
    a[row, 2] = control.reported[DELIVERIES]
    a[row, 3] = control.reported[COMPLETIONS]
    a[row + 1, 0] = control.reported[LOSSES]


@kernel_making_arrays
def look_packed(a: Any) -> None:
    _look(a, _world(a))


@kernel_making_arrays
def run_packed(a: Any, until: int) -> int:
    world = _world(a)
    status = run.run(world, until)
    _look(a, world)
    return status


@kernel_making_arrays
def hand_in_packed(
    a: Any, node: int, to: int, size: int, airtime: int, key: int, copy: int, group: int, door: int, now: int
) -> int:
    world = _world(a)
    status = run.hand_in(world, node, to, size, airtime, key, copy, group, door, now)
    _look(a, world)
    return status
