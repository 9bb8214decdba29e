"""Copies of messages on their way down to the clients of a cellular network: the kernels of ``cellular_foresight``.

A copy lies first among those that are on their way to a base station.  When it enters there, its arrival is certain; if whoever
it is for may be told later, it then lies *ahead*, until all that comes before some instant is taken out, in order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.cellular_queue import FULL, departure
from nearcast.runtime.simulation.kernel import NEVER

Int64s = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

DRAWN_AHEAD: Final = 64
"""Latencies that are drawn at a time, for each client."""

# Columns of downlinks
BUSY: Final = 0  # until then; nanoseconds since the start of the run
LATEST: Final = 1  # of the entries, where the order is kept
NEXT_ARRIVAL: Final = 2  # of what lies ahead
USED: Final = 3  # of the latencies, which are the columns from here on
LATENCIES: Final = 4

# Columns of copies
ENTRY: Final = 0  # when it reaches its base station
NUMBER: Final = 1  # in the order of scheduling
DOWNLINK: Final = 2
SIZE: Final = 3
SENT: Final = 4  # when it set out from the core
FIRST: Final = 5  # the number of the first copy of the same message
LATER: Final = 6  # whether it came for a door where it may be told later
ARRIVAL: Final = 7  # since the start of the run; or FULL, or OVERLOADED
COLUMNS: Final = 8
OVERLOADED: Final = -2

ARRIVED: Final = (ARRIVAL, ENTRY, NUMBER, DOWNLINK, FIRST)
"""Columns that are kept of what has arrived; the first three are the order in which things happen."""

# What changes, beside copies and queues
WAITING: Final = 0  # copies that are on their way to a base station
EARLIEST: Final = 1  # of their entries
CELL: Final = 2  # the shared channel is busy until then
AHEAD: Final = 3  # copies that lie ahead
NEXT: Final = 4  # of their arrivals
OLDEST: Final = 5  # the first copy of the oldest message of which there still are copies
STATE: Final = 6

_departure = inlined(departure)


@kernel
def send(
    receivers: Int64s,
    sent: int,
    now: int,
    first: int,
    size: int,
    later: bool,
    downlinks: Int64s,
    ordered: bool,
    copies: Int64s,
    state: Int64s,
) -> int:
    """Let copies set out, from number ``sent`` on; stops before one for which a latency must be drawn."""
    for index in range(sent, len(receivers)):
        downlink = downlinks[receivers[index]]
        if downlink[USED] == DRAWN_AHEAD:
            return index
        entry = now + downlink[LATENCIES + downlink[USED]]
        downlink[USED] += 1
        if ordered:
            entry = max(entry, downlink[LATEST])
            downlink[LATEST] = entry
        copy = copies[state[WAITING]]
        copy[ENTRY] = entry
        copy[NUMBER] = first + index
        copy[DOWNLINK] = receivers[index]
        copy[SIZE] = size
        copy[SENT] = now
        copy[FIRST] = first
        copy[LATER] = later
        state[WAITING] += 1
        state[EARLIEST] = min(state[EARLIEST], entry)
    return len(receivers)


@kernel
def enter(
    end: int,
    start: int,
    copies: Int64s,
    state: Int64s,
    entering: Int64s,
    order: Int64s,
    downlinks: Int64s,
    channel: tuple[float, float, float, float],
    patient: Booleans,
    ahead: Int64s,
) -> int:
    """Queue what reaches its base station before ``end``.

    How many of these copies must be told of as soon as something becomes of them; ``entering`` begins with these.
    """
    pace, limit, cell_pace, cell_limit = channel
    count = _taken_out(end, copies, state, entering)
    _sort(entering, count, ENTRY, order)
    for place in range(count):
        copy = entering[order[place]]
        size, downlink = copy[SIZE], copy[DOWNLINK]
        # A cell that is not shared takes no time.
        over = _departure(state[CELL], (copy[ENTRY] - start) * 1_000, size, cell_pace, cell_limit)
        if over == FULL:
            copy[ARRIVAL] = OVERLOADED
            continue
        state[CELL] = over
        over = _departure(downlinks[downlink, BUSY], over, size, pace, limit)
        if over == FULL:
            copy[ARRIVAL] = FULL
            continue
        downlinks[downlink, BUSY] = over
        copy[ARRIVAL] = (over + 999) // 1_000
    return _without_the_patient(start, entering, count, state, downlinks, patient, ahead)


@kernel
def arrive(
    time: int,
    since: int,
    number: int,
    ahead: Int64s,
    state: Int64s,
    downlinks: Int64s,
    arriving: Int64s,
    order: Int64s,
    arrived: Int64s,
) -> int:
    """Take out what lies ahead and comes before that, which happens now; how many copies those are.

    ``arrived`` has them in order, one row for each of the columns ``ARRIVED``.
    """
    count, kept, next_arrival = 0, 0, NEVER
    for index in range(state[AHEAD]):
        copy = ahead[index]
        arrival, entry = copy[ARRIVAL], copy[ENTRY]
        if arrival < time or (arrival == time and (entry < since or (entry == since and copy[NUMBER] < number))):
            _put(arriving, count, copy)
            downlinks[copy[DOWNLINK], NEXT_ARRIVAL] = NEVER
            count += 1
        else:
            _put(ahead, kept, copy)
            kept += 1
            next_arrival = min(next_arrival, arrival)
    state[AHEAD] = kept
    state[NEXT] = next_arrival
    for index in range(kept):
        downlink = downlinks[ahead[index, DOWNLINK]]
        downlink[NEXT_ARRIVAL] = min(downlink[NEXT_ARRIVAL], ahead[index, ARRIVAL])
    _sort(arriving, count, ARRIVAL, order)
    for place in range(count):
        copy = arriving[order[place]]
        arrived[0, place] = copy[ARRIVAL]
        arrived[1, place] = copy[ENTRY]
        arrived[2, place] = copy[NUMBER]
        arrived[3, place] = copy[DOWNLINK]
        arrived[4, place] = copy[FIRST]
    return count


@inlined
def _without_the_patient(
    start: int, entering: Int64s, count: int, state: Int64s, downlinks: Int64s, patient: Booleans, ahead: Int64s
) -> int:
    """Part those copies that may be told later, which lie ahead now, from the others."""
    at_once, oldest = 0, NEVER
    for index in range(count):
        copy = entering[index]
        if copy[ARRIVAL] >= 0 and copy[LATER] and patient[copy[DOWNLINK]]:
            arrival, downlink = start + copy[ARRIVAL], downlinks[copy[DOWNLINK]]
            _put(ahead, state[AHEAD], copy)
            ahead[state[AHEAD], ARRIVAL] = arrival
            state[AHEAD] += 1
            state[NEXT] = min(state[NEXT], arrival)
            downlink[NEXT_ARRIVAL] = min(downlink[NEXT_ARRIVAL], arrival)
        else:
            _put(entering, at_once, copy)
            oldest = min(oldest, copy[FIRST])
            at_once += 1
    for index in range(state[AHEAD]):
        oldest = min(oldest, ahead[index, FIRST])
    state[OLDEST] = min(state[OLDEST], oldest)
    return at_once


@inlined
def _taken_out(end: int, copies: Int64s, state: Int64s, entering: Int64s) -> int:
    """Part the copies that enter before ``end`` from the others."""
    count, kept, earliest, oldest = 0, 0, NEVER, NEVER
    for index in range(state[WAITING]):
        copy = copies[index]
        if copy[ENTRY] < end:
            _put(entering, count, copy)
            count += 1
        else:
            earliest, oldest = min(earliest, copy[ENTRY]), min(oldest, copy[FIRST])
            _put(copies, kept, copy)
            kept += 1
    state[WAITING] = kept
    state[EARLIEST] = earliest
    state[OLDEST] = oldest
    return count


@inlined
def _put(copies: Int64s, index: int, copy: Int64s) -> None:
    for column in range(COLUMNS):
        copies[index, column] = copy[column]


@inlined
def _sort(copies: Int64s, count: int, by: int, order: Int64s) -> None:
    """By that column, then by entry, and then by number: Shell's sort with gaps of 3 h + 1."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    for place in range(count):
        order[place] = place
    while gap > 1:
        gap //= 3
        for place in range(gap, count):
            copy, hole = order[place], place
            while hole >= gap and not _comes_before(copies[order[hole - gap]], copies[copy], by):
                order[hole] = order[hole - gap]
                hole -= gap
            order[hole] = copy


@inlined
def _comes_before(one: Int64s, other: Int64s, by: int) -> bool:
    if one[by] != other[by]:
        return bool(one[by] < other[by])
    if one[ENTRY] != other[ENTRY]:
        return bool(one[ENTRY] < other[ENTRY])
    return bool(one[NUMBER] < other[NUMBER])
