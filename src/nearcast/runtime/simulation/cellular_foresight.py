"""From the core of a cellular network down to its clients, worked out ahead, many copies at a time.

Where nothing gets lost on air, the way of a copy is certain as soon as it reaches its base station: it waits behind what came
before it.  And no latency is shorter than a *stride*: when a stride begins, whatever reaches a base station during it is on its
way already.  So the arrivals that follow from one stride are computed in one kernel, and most copies cost Python nothing before
they arrive.  Clients that may be told later are told of many arrivals at a time.  What comes of it is what ``SteppedDownlinks``
does, copy by copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from nearcast.model.time import Instant
from nearcast.runtime.links import QUEUE_FULL, Door
from nearcast.runtime.ports import Address
from nearcast.runtime.simulation import cellular_copies
from nearcast.runtime.simulation.backlog import Backlog
from nearcast.runtime.simulation.cellular_bearer import CELL_OVERLOADED
from nearcast.runtime.simulation.cellular_copies import (
    AHEAD,
    ARRIVAL,
    ARRIVED,
    COLUMNS,
    DOWNLINK,
    DRAWN_AHEAD,
    EARLIEST,
    LATENCIES,
    NEXT,
    NEXT_ARRIVAL,
    OLDEST,
    OVERLOADED,
    STATE,
    USED,
    WAITING,
)
from nearcast.runtime.simulation.cellular_downlinks import Downlinks, Receiver
from nearcast.runtime.simulation.cellular_outages import Coverage
from nearcast.runtime.simulation.cellular_profile import CellularProfile
from nearcast.runtime.simulation.cellular_queue import FULL, pace_of
from nearcast.runtime.simulation.kernel import NEVER, Entry, Simulation
from nearcast.runtime.simulation.network import Parcel

A = TypeVar("A", bound=np.generic)

SHORTEST_STRIDE: Final = 9
LONGEST_STRIDE: Final = 14
"""As powers of two, in microseconds: less than half a millisecond is not worth it, more than sixteen save nothing more."""

LONGEST_LATENCY: Final = 2.0**53
"""Microseconds, three hundred years: more than that kernels need not tell apart."""

REASONS: Final = {FULL: QUEUE_FULL, OVERLOADED: CELL_OVERLOADED}


class Arrivals(NamedTuple):
    """What has arrived at clients that were not told yet: in the order in which it did, column by column."""

    times: list[Instant]
    entries: list[Instant]
    numbers: list[int]
    """Together the order in which things happen (``Simulation.present``)."""

    downlinks: list[int]
    parcels: list[Parcel]


def stride_of(profile: CellularProfile) -> int:
    """Of the downlinks, as a power of two; 0 where they cannot be foreseen, or not far enough."""
    if profile.downlink.loss > 0 or profile.outages or profile.intermittence is not None:
        return 0
    bits = int(profile.downlink.latency.least * 1e6).bit_length() - 1
    return min(bits, LONGEST_STRIDE) if bits >= SHORTEST_STRIDE else 0


class ForeseenDownlinks(Downlinks, Backlog):
    """Those of a network that has a stride."""

    def __init__(self, simulation: Simulation, profile: CellularProfile, tell: Callable[[Arrivals], None]) -> None:
        """``tell`` is called with what clients may be told later."""
        downlink = profile.downlink
        pace, cell_pace = pace_of(downlink.bandwidth), pace_of(downlink.cell_bandwidth)
        cell_limit = np.inf if downlink.cell_bandwidth is None else downlink.cell_queue_bytes * cell_pace
        self._simulation: Final = simulation
        self._tell: Final = tell
        self._stride: Final = stride_of(profile)
        self._latency: Final = downlink.latency
        self._ordered: Final = profile.ordered
        self._channel: Final = (pace, downlink.queue_bytes * pace, cell_pace, cell_limit)
        self._receivers: Final[list[Receiver]] = []
        self._numbers: Final[dict[Address, int]] = {}
        self._streams: Final[list[Random]] = []
        self._downlinks = np.empty((0, LATENCIES + DRAWN_AHEAD), np.int64)
        self._patient = np.zeros(0, np.bool_)
        self._copies = np.empty((0, COLUMNS), np.int64)
        self._entering = np.empty((0, COLUMNS), np.int64)
        self._ahead = np.empty((0, COLUMNS), np.int64)
        self._arrived = np.empty((len(ARRIVED), 0), np.int64)
        self._order = np.empty(0, np.int64)
        self._state: Final = np.zeros(STATE, np.int64)
        self._state[[EARLIEST, NEXT]] = NEVER
        self._next: Instant = NEVER
        """The next arrival of what lies ahead."""

        self._door: Door | None = None
        """Where things may be told later: one door will do, that of most messages."""

        self._parcels: Final[dict[int, Parcel]] = {}
        """Of which there are copies on their way, by the number of the first copy."""

        self._strides: Final[set[int]] = set()
        """For which there is a callback."""

        simulation.count_as_waiting(lambda: int(self._state[WAITING] + self._state[AHEAD]) - len(self._strides))
        if type(simulation.backlog) is Backlog:
            simulation.backlog = self

    def add(self, receiver: Receiver, coverage: Coverage | None, random: Random) -> int:
        assert coverage is None
        number = len(self._receivers)
        self._receivers.append(receiver)
        self._numbers[receiver.address] = number
        self._streams.append(random)
        if number == len(self._downlinks):
            self._downlinks, self._patient = _longer(self._downlinks), _longer(self._patient)
        self._downlinks[number, :LATENCIES] = 0, self._simulation.start, NEVER, DRAWN_AHEAD
        self._patient[number] = False
        return number

    def send(self, numbers: Sequence[int], parcel: Parcel) -> None:
        count, simulation = len(numbers), self._simulation
        first = simulation.reserve(count)
        self._parcels[first] = parcel
        while self._state.item(WAITING) + count > len(self._copies):
            self._copies = _longer(self._copies)
        receivers, sent, later = np.array(numbers, np.int64), 0, parcel.door == self._door
        while True:
            sent = cellular_copies.send(
                receivers,
                sent,
                simulation.time,
                first,
                parcel.size,
                later,
                self._downlinks,
                self._ordered,
                self._copies,
                self._state,
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
        stride = self._state.item(EARLIEST) >> self._stride
        if self._state.item(WAITING) and stride not in self._strides:
            self._strides.add(stride)
            self._simulation.at(stride << self._stride, self._work_out, stride, apart=True)

    def _work_out(self, stride: int) -> None:
        """What comes of all that reaches a base station in this stride, which begins now."""
        self._strides.remove(stride)
        if not self._may_lag():
            for number in np.flatnonzero(self._patient).tolist():
                self.later(number, None)
        while len(self._ahead) < self._state.item(WAITING) + self._state.item(AHEAD):
            self._ahead, self._entering, self._order = map(_longer, (self._ahead, self._entering, self._order))
            self._arrived = np.empty((len(ARRIVED), len(self._ahead)), np.int64)
        end, start = (stride + 1) << self._stride, self._simulation.start
        count = cellular_copies.enter(
            end,
            start,
            self._copies,
            self._state,
            self._entering,
            self._order,
            self._downlinks,
            self._channel,
            self._patient,
            self._ahead,
        )
        self._next = self._state.item(NEXT)
        receivers, parcels = self._receivers, self._parcels
        self._simulation.foreseen(
            [
                (start + arrival, entry, number, receivers[downlink].arrive, parcels[first], True)
                if arrival >= 0
                else (entry, sent, number, receivers[downlink].fail, (parcels[first], REASONS[arrival]), True)
                for entry, number, downlink, _, sent, first, _, arrival in self._entering[:count].tolist()
            ]
        )
        self._forget_parcels()
        self._call()

    def _forget_parcels(self) -> None:
        """Those of which no copies are on their way any more, but for some that were sent after one of which there are."""
        oldest = self._state.item(OLDEST)
        done = []
        for first in self._parcels:
            if first >= oldest:
                break
            done.append(first)
        for first in done:
            del self._parcels[first]

    # Clients that are told later

    def later(self, number: int, door: Door | None) -> None:
        self.catch_up()
        if self._door is None:
            self._door = door
        patient = door is not None and door == self._door and self._may_lag()
        if self._patient[number] and not patient:
            self._simulation.foreseen(self._taken_back(number))
        self._patient[number] = patient

    def _may_lag(self) -> bool:
        """Who analyses is told when things happen; and what engines tell comes in no order with what happens here."""
        simulation = self._simulation
        return simulation.backlog is self and not simulation.observers.analyzing and not simulation.engines

    def _taken_back(self, number: int) -> list[Entry]:
        """What lies ahead for a client that is no longer patient."""
        ahead, state = self._ahead[: self._state.item(AHEAD)], self._state
        its = ahead[:, DOWNLINK] == number
        taken, kept = ahead[its].tolist(), ahead[~its]
        self._ahead[: len(kept)] = kept
        state[AHEAD], state[NEXT] = len(kept), min(kept[:, ARRIVAL].tolist(), default=NEVER)
        self._next = state.item(NEXT)
        self._downlinks[number, NEXT_ARRIVAL] = NEVER
        arrive = self._receivers[number].arrive
        return [
            (arrival, entry, copy, arrive, self._parcels[first], True)
            for entry, copy, _, _, _, first, _, arrival in taken
        ]

    def behind(self) -> bool:
        """Whether something came before what happens now and was not told yet."""
        if self._next == self._simulation.time:
            self.catch_up()
        return self._next < self._simulation.time

    def catch_up_for(self, host: Address) -> None:
        if self._next <= self._simulation.time:
            number = self._numbers.get(host)
            if number is not None and self._downlinks.item(number, NEXT_ARRIVAL) <= self._simulation.time:
                self.catch_up()

    def catch_up(self) -> None:
        if self._next > self._simulation.time:
            return
        count = cellular_copies.arrive(
            *self._simulation.present,
            self._ahead,
            self._state,
            self._downlinks,
            self._entering,
            self._order,
            self._arrived,
        )
        self._next = self._state.item(NEXT)
        if count:
            times, entries, numbers, downlinks, firsts = self._arrived[:, :count].tolist()
            parcels = self._parcels
            self._tell(Arrivals(times, entries, numbers, downlinks, [parcels[first] for first in firsts]))


def _longer(array: npt.NDArray[A]) -> npt.NDArray[A]:
    longer = np.zeros((max(64, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
