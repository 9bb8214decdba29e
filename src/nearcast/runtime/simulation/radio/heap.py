"""The events to come: a binary heap, earliest first, in one array.

Events of one instant come in the order of their kinds, then of the numbers of what they are about: so the order does not
depend on when they were scheduled, and what ends at an instant has ended for whatever starts at it.
"""

from __future__ import annotations

from typing import Final

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.radio.layout import Records, World

# Kinds of events
END: Final = 0  # of a transmission
RESPONSE: Final = 1  # due after SIFS
TIMEOUT: Final = 2  # no response came
NAV_RESET: Final = 3  # nothing followed an overheard RTS
ACCESS: Final = 4  # backoff is over
TICK: Final = 5  # of a native source

SUBJECT_BITS: Final = 32
SUBJECT: Final = (1 << SUBJECT_BITS) - 1


@inlined
def push(world: World, time: int, kind: int, subject: int, version: int) -> None:
    _insert(world.heap, world.control, time, (kind << SUBJECT_BITS) | subject, version)


@kernel
def _insert(heap: Records, control: Records, time: int, order: int, version: int) -> None:
    place = control[0].heap_size
    control[0].heap_size = place + 1
    while place > 0:
        parent = (place - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.order <= order):
            break
        here = heap[place]
        here.time = above.time
        here.order = above.order
        here.version = above.version
        place = parent
    here = heap[place]
    here.time = time
    here.order = order
    here.version = version


@inlined
def pop(world: World) -> None:
    """Drop the earliest event, which is in the first row."""
    heap = world.heap
    control = world.control[0]
    size = control.heap_size - 1
    control.heap_size = size
    last = heap[size]
    time, order, version = last.time, last.order, last.version
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        below = heap[child]
        if child + 1 < size:
            other = heap[child + 1]
            if other.time < below.time or (other.time == below.time and other.order < below.order):
                child += 1
                below = other
        if time < below.time or (time == below.time and order <= below.order):
            break
        here = heap[place]
        here.time = below.time
        here.order = below.order
        here.version = below.version
        place = child
    here = heap[place]
    here.time = time
    here.order = order
    here.version = version
