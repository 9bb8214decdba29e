"""From the core of a cellular network down to its clients, worked out ahead, many copies at a time.

Where nothing gets lost on air, the way of a copy is certain as soon as it reaches its base station: it waits behind what came
before it.  And no latency is shorter than a *stride*: when a stride begins, whatever reaches a base station during it is on its
way already.  So the arrivals that follow from one stride are computed in one kernel, and most copies cost Python nothing before
they arrive.  What comes of it is what ``SteppedDownlinks`` does, copy by copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

import numpy as np
import numpy.typing as npt

from nearcast.compiled import inlined, kernel
from nearcast.runtime.links import QUEUE_FULL
from nearcast.runtime.simulation.cellular_bearer import CELL_OVERLOADED
from nearcast.runtime.simulation.cellular_downlinks import Downlinks, Receiver
from nearcast.runtime.simulation.cellular_outages import Coverage
from nearcast.runtime.simulation.cellular_profile import CellularProfile
from nearcast.runtime.simulation.cellular_queue import FULL, departure, pace_of
from nearcast.runtime.simulation.kernel import NEVER, Simulation
from nearcast.runtime.simulation.network import Parcel

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SHORTEST_STRIDE: Final = 9
LONGEST_STRIDE: Final = 14
"""As powers of two, in microseconds: less than half a millisecond is not worth it, more than sixteen save nothing more."""

DRAWN_AHEAD: Final = 64
"""Latencies that are drawn at a time, for each client."""

LONGEST_LATENCY: Final = 2.0**53
"""Microseconds, three hundred years: more than that kernels need not tell apart."""

# Columns of downlinks
BUSY: Final = 0  # until then; nanoseconds since the start of the run
LATEST: Final = 1  # of the entries, where the order is kept
USED: Final = 2  # of the latencies, which are the columns from here on
LATENCIES: Final = 3

# Columns of copies
ENTRY: Final = 0  # when it reaches its base station
NUMBER: Final = 1  # in the order of scheduling
DOWNLINK: Final = 2
SIZE: Final = 3
SENT: Final = 4  # when it set out from the core
ARRIVAL: Final = 5  # since the start of the run; or FULL, or OVERLOADED
OVERLOADED: Final = -2
REASONS: Final = {FULL: QUEUE_FULL, OVERLOADED: CELL_OVERLOADED}

# What changes, beside copies and queues
WAITING: Final = 0  # copies that are on their way to a base station
EARLIEST: Final = 1  # of their entries
CELL: Final = 2  # the shared channel is busy until then

_departure = inlined(departure)


def stride_of(profile: CellularProfile) -> int:
    """Of the downlinks, as a power of two; 0 where they cannot be foreseen, or not far enough."""
    if profile.downlink.loss > 0 or profile.outages or profile.intermittence is not None:
        return 0
    bits = int(profile.downlink.latency.least * 1e6).bit_length() - 1
    return min(bits, LONGEST_STRIDE) if bits >= SHORTEST_STRIDE else 0


class ForeseenDownlinks(Downlinks):
    """Those of a network that has a stride."""

    def __init__(self, simulation: Simulation, profile: CellularProfile) -> None:
        downlink = profile.downlink
        pace, cell_pace = pace_of(downlink.bandwidth), pace_of(downlink.cell_bandwidth)
        cell_limit = np.inf if downlink.cell_bandwidth is None else downlink.cell_queue_bytes * cell_pace
        self._simulation: Final = simulation
        self._stride: Final = stride_of(profile)
        self._latency: Final = downlink.latency
        self._ordered: Final = profile.ordered
        self._channel: Final = (pace, downlink.queue_bytes * pace, cell_pace, cell_limit)
        self._receivers: Final[list[Receiver]] = []
        self._streams: Final[list[Random]] = []
        self._downlinks = np.empty((0, LATENCIES + DRAWN_AHEAD), np.int64)
        self._copies = np.empty((0, ARRIVAL), np.int64)
        self._entering = np.empty((0, ARRIVAL + 1), np.int64)
        self._order = np.empty(0, np.int64)
        self._now: Final = np.array([0, NEVER, 0], np.int64)
        self._parcels: Final[dict[int, Parcel]] = {}
        """Those of the copies that are on their way to a base station, by the number of the copy."""

        self._strides: Final[set[int]] = set()
        """For which there is a callback."""

        simulation.count_as_waiting(lambda: len(self._parcels) - len(self._strides))

    def add(self, receiver: Receiver, coverage: Coverage | None, random: Random) -> int:
        assert coverage is None
        number = len(self._receivers)
        self._receivers.append(receiver)
        self._streams.append(random)
        if number == len(self._downlinks):
            self._downlinks = _longer(self._downlinks)
        self._downlinks[number, :LATENCIES] = 0, self._simulation.start, DRAWN_AHEAD
        return number

    def send(self, numbers: Sequence[int], parcel: Parcel) -> None:
        count, simulation = len(numbers), self._simulation
        first = simulation.reserve(count)
        self._parcels.update(dict.fromkeys(range(first, first + count), parcel))
        while len(self._parcels) > len(self._copies):
            self._copies, self._entering = _longer(self._copies), _longer(self._entering)
            self._order = _longer(self._order)
        receivers, sent = np.array(numbers, np.int64), 0
        while True:
            sent = _send(
                receivers,
                sent,
                simulation.time,
                first,
                parcel.size,
                self._downlinks,
                self._ordered,
                self._copies,
                self._now,
            )
            if sent == count:
                break
            self._draw(numbers[sent])
        self._call()

    def _draw(self, number: int) -> None:
        drawn = np.array(self._latency.samples(self._streams[number], DRAWN_AHEAD))
        self._downlinks[number, LATENCIES:] = np.minimum(drawn * 1e6, LONGEST_LATENCY)
        self._downlinks[number, USED] = 0

    def _call(self) -> None:
        """See to it that the stride of the earliest entry is worked out when it begins."""
        stride = self._now.item(EARLIEST) >> self._stride
        if self._parcels and stride not in self._strides:
            self._strides.add(stride)
            self._simulation.at(stride << self._stride, self._work_out, stride)

    def _work_out(self, stride: int) -> None:
        """What comes of all that reaches a base station in this stride, which begins now."""
        self._strides.remove(stride)
        end, start = (stride + 1) << self._stride, self._simulation.start
        count = _enter(end, start, self._copies, self._now, self._entering, self._order, self._downlinks, self._channel)
        receivers, parcel_of = self._receivers, self._parcels.pop
        self._simulation.foreseen(
            [
                (start + arrival, entry, number, receivers[downlink].arrive, parcel_of(number))
                if arrival >= 0
                else (entry, sent, number, receivers[downlink].fail, (parcel_of(number), REASONS[arrival]))
                for entry, number, downlink, _, sent, arrival in self._entering[:count].tolist()
            ]
        )
        self._call()


def _longer(array: Int64s) -> Int64s:
    longer = np.empty((max(64, 2 * len(array)), *array.shape[1:]), np.int64)
    longer[: len(array)] = array
    return longer


@kernel
def _send(
    receivers: Int64s,
    sent: int,
    now: int,
    first: int,
    size: int,
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
        state[WAITING] += 1
        state[EARLIEST] = min(state[EARLIEST], entry)
    return len(receivers)


@kernel
def _enter(
    end: int,
    start: int,
    copies: Int64s,
    state: Int64s,
    entering: Int64s,
    order: Int64s,
    downlinks: Int64s,
    channel: tuple[float, float, float, float],
) -> int:
    """Queue what reaches its base station before ``end``; how many copies those are, by which ``entering`` begins."""
    pace, limit, cell_pace, cell_limit = channel
    count = _taken_out(end, copies, state, entering)
    _sort(entering, count, order)
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
    return count


@inlined
def _taken_out(end: int, copies: Int64s, state: Int64s, entering: Int64s) -> int:
    """Part the copies that enter before ``end`` from the others."""
    count, kept, earliest = 0, 0, NEVER
    for index in range(state[WAITING]):
        entry = copies[index, ENTRY]
        if entry < end:
            for column in range(ARRIVAL):
                entering[count, column] = copies[index, column]
            count += 1
        else:
            for column in range(ARRIVAL):
                copies[kept, column] = copies[index, column]
            kept += 1
            earliest = min(earliest, entry)
    state[WAITING] = kept
    state[EARLIEST] = earliest
    return count


@inlined
def _sort(copies: Int64s, count: int, order: Int64s) -> None:
    """By entry, and then by number, which is the order that they have: Shell's sort with gaps of 3 h + 1."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    for place in range(count):
        order[place] = place
    while gap > 1:
        gap //= 3
        for place in range(gap, count):
            copy, hole = order[place], place
            entry = copies[copy, ENTRY]
            while hole >= gap:
                above = order[hole - gap]
                if copies[above, ENTRY] < entry or (copies[above, ENTRY] == entry and above < copy):
                    break
                order[hole] = above
                hole -= gap
            order[hole] = copy
