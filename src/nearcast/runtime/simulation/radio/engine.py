"""A crowd of radios, simulated event by event in compiled kernels and driven from Python.

Python hands frames in, lets time advance, and is told what was delivered.  The stations are the rows of the table of legs
(``motion``); where they are is looked up whenever one of them starts to send.

>>> from nearcast.runtime.simulation.motion import standing
>>> from nearcast.runtime.simulation.radio.profile import wifi_b
>>> engine = RadioEngine(wifi_b(), standing(2), seed=1)
>>> engine.send(0, BROADCAST, size=128, key=7, at_ns=0)
<Acceptance.ACCEPTED: 0>
>>> engine.advance(10_000_000)  # DIFS and 192 bytes at 1 Mbit/s
1778000
>>> engine.reports().delivered  # key, receiver, sender
[(7, 1, 0)]
"""

from __future__ import annotations

import operator
from typing import Final

import numpy as np

from nearcast.errors import InvalidInput, InvalidTime, UnknownName
from nearcast.runtime.simulation.motion import Legs
from nearcast.runtime.simulation.radio import layout, run, state
from nearcast.runtime.simulation.radio.layout import BROADCAST, COMPLETIONS, DELIVERIES
from nearcast.runtime.simulation.radio.packed import hand_in_packed, look_packed, outlook, packed, run_packed
from nearcast.runtime.simulation.radio.profile import RadioProfile
from nearcast.runtime.simulation.radio.reports import Acceptance, Loss, News, Outcome, Reports
from nearcast.runtime.simulation.radio.statistics import RadioStatistics

__all__ = ["BROADCAST", "Acceptance", "Loss", "Outcome", "RadioEngine", "Reports"]

_GROWING: Final = {
    run.FRAMES_FULL: state.with_more_frames,
    run.AIR_FULL: state.with_more_air,
    run.HEAP_FULL: state.with_more_heap,
    run.REPORTS_FULL: state.with_more_reports,
    run.ROWS_TOO_SHORT: state.with_wider_rows,
}
_ACCEPTANCES: Final = tuple(Acceptance)
_RECEIVER: Final = operator.itemgetter(1)
_NOTHING: Final = (0, 0, 0)


class RadioEngine:
    """Stations that share the medium.

    Times are nanoseconds since ``start_us``, in which the legs count.  Legs may change between calls of ``advance``.  As long
    as all frames are handed in at whole microseconds, everything happens at whole microseconds.
    """

    def __init__(
        self, profile: RadioProfile, legs: Legs, seed: int, *, start_us: int = 0, report_losses: bool = False
    ) -> None:
        self.profile: Final = profile
        self._become(state.new_world(profile, legs, seed, start_us, report_losses=report_losses))
        self._headers: Final = profile.frame_bytes(0)
        self._longest: Final = profile.longest_payload
        self._stations: Final = len(legs)
        self._now = 0
        self._counts = _NOTHING
        self._airtimes: dict[tuple[int, bool], int] = {}
        # Reading a field of a record array costs a microsecond, reading a view of it a tenth.
        self._reported: Final = self._world.control["reported"][0]
        self.next_ns: int
        """Nothing happens before; ``NEVER`` if nothing will happen by itself."""

        self.reporting: int
        """How much there is to report."""

        self._look()

    @property
    def now(self) -> int:
        """The time reached."""
        return self._now

    def power(self, node: int, on: bool, at_ns: int) -> None:
        """Switch a station on or off.

        Switching off cuts the frame that is being sent, loses the one that is being received, and drops the queue,
        frame by frame as ``Outcome.SWITCHED_OFF``.
        """
        self._check_station(node)
        self._check_time(at_ns)
        while (status := run.switch(self._world, node, int(on), at_ns)) < 0:
            self._grow(status, at_ns)
        self._look()

    def send(
        self, node: int, to: int, size: int, key: int, at_ns: int, *, copy: int = 0, group: int = 0, door: int = 0
    ) -> Acceptance:
        """Hand in ``size`` bytes for station ``to`` or ``BROADCAST``; ``key`` comes back in the reports.

        ``copy`` is the number of the message of which this is a copy (0: of none), ``group`` of what kind it is for those who need
        one copy only (``once``), ``door`` under what it is counted where it is known already.

        At the time that ``advance`` has reached, or later if nothing happens in between; of one instant, what is
        handed in comes before what happens by itself.
        """
        if to != BROADCAST:
            self._check_station(to)
            if to == node:
                raise InvalidInput(f"station {node} sends to itself: deliver that without a radio")
        airtime = self._airtimes.get((size, to == BROADCAST))
        if airtime is None or not 0 <= node < self._stations or at_ns < self._now:
            self._check_station(node)
            self._check_size(size)
            self._check_time(at_ns)
            airtime = self._airtime(size, broadcast=to == BROADCAST)
        frame_bytes = size + self._headers
        while (
            status := hand_in_packed(self._packed, node, to, frame_bytes, airtime, key, copy, group, door, at_ns)
        ) < 0:
            self._grow(status, at_ns)
        self._see()
        return _ACCEPTANCES[status]

    def known(self, node: int) -> layout.Int32s:
        """Messages of which the station needs no further copies: they are counted (``unread``), not reported.

        To be written to by whoever numbers messages: message ``n`` stands at ``n % KNOWN``, in place of an older one; 0 is none.
        """
        self._remember()
        row: layout.Int32s = self._world.known[node]
        return row

    def once(self, node: int, door: int, group: int) -> None:
        """Of messages of that group a station needs one copy each, from now on: with the first one, they are known; 0: of none."""
        self._remember()
        self._world.once[node, door] = group

    def _remember(self) -> None:
        if self._world.known.shape[1] == 1:
            self._become(state.with_memory(self._world))

    @property
    def unread(self) -> layout.Int64s:
        """By station and door, how many copies were only counted, and their bytes."""
        return self._world.unread

    def add_source(self, node: int, first_ns: int, period_ns: int, size: int) -> None:
        """Let a station broadcast ``size`` bytes at ``first_ns`` and every ``period_ns`` from then on.

        These frames never leave the kernels: their receptions are counted, not reported.
        """
        self._check_station(node)
        self._check_size(size)
        if period_ns <= 0:
            raise InvalidTime(f"a source with a period of {period_ns} ns: give a positive one")
        self._check_time(first_ns)
        airtime, frame_bytes = self._airtime(size, broadcast=True), self.profile.frame_bytes(size)
        source = np.array([(period_ns, airtime, node, frame_bytes)], layout.SOURCE)
        self._become(self._world._replace(sources=np.concatenate([self._world.sources, source])))
        while (status := run.add_tick(self._world, len(self._world.sources) - 1, first_ns)) < 0:
            self._grow(status, first_ns)
        self._look()

    def advance(self, until_ns: int) -> int:
        """Run to the first instant that has something to report, or through ``until_ns``; return the time reached."""
        self._check_time(until_ns)
        while (status := run_packed(self._packed, until_ns)) < 0:
            self._grow(status, until_ns)
        self._see()
        return self._now

    def reports(self) -> Reports:
        """Take what has been reported since the last call.

        There may be something after ``advance``, and, about frames that were waiting, after ``power`` and ``send``.
        """
        delivered, completed, lost = (self._rows(kind, count) for kind, count in enumerate(self._taken()))
        delivered.sort(key=_RECEIVER)
        lost.sort(key=_RECEIVER)
        return Reports(delivered, completed, lost)

    def news(self) -> News:
        """The same, for who takes it after every call and does not ask for losses."""
        deliveries, completions, _ = self._taken()
        reports = self._world.reports
        receivers: list[int] = reports[DELIVERIES, :deliveries, 1].tolist() if deliveries else []
        receivers.sort()
        completed: list[tuple[int, int, int]] = reports[COMPLETIONS, :completions].tolist() if completions else []
        return (int(reports[DELIVERIES, 0, 0]) if deliveries else 0), receivers, completed

    def _taken(self) -> tuple[int, int, int]:
        """How much there is of each kind, and from now on is not."""
        counts = self._counts
        if self.reporting:
            self._reported.fill(0)
            self.reporting, self._counts = 0, _NOTHING
        return counts

    def _look(self) -> None:
        look_packed(self._packed)
        self._see()

    def _see(self) -> None:
        """Take in what kernels have left."""
        self._now, self.next_ns, deliveries, completions, losses = self._outlook.tolist()
        self._counts = deliveries, completions, losses
        self.reporting = deliveries + completions + losses

    def _rows(self, kind: int, count: int) -> list[tuple[int, int, int]]:
        return list(map(tuple, self._world.reports[kind, :count].tolist())) if count else []

    def statistics(self, node: int | None = None) -> RadioStatistics:
        """Counts of one station, or of all together."""
        world = self._world
        chosen = slice(None)
        if node is not None:
            self._check_station(node)
            chosen = slice(node, node + 1)
        counts = world.counters[chosen].sum(axis=0).tolist()
        stations = world.nodes[chosen]
        return RadioStatistics(
            handed_in=counts[layout.HANDED_IN],
            outcomes={outcome: counts[layout.COMPLETED + outcome] for outcome in Outcome},
            queue_full=counts[layout.QUEUE_FULL],
            station_off=counts[layout.STATION_OFF],
            pending=int(stations["queued"].sum()),
            data_sent=counts[layout.ON_AIR + layout.DATA],
            rts_sent=counts[layout.ON_AIR + layout.RTS],
            cts_sent=counts[layout.ON_AIR + layout.CTS],
            ack_sent=counts[layout.ON_AIR + layout.ACK],
            bytes_sent=counts[layout.BYTES_SENT],
            potential_receptions=counts[layout.POTENTIAL],
            received=counts[layout.RECEIVED],
            losses={loss: counts[layout.LOST + loss] for loss in Loss},
            undecided=int(np.count_nonzero(stations["stage"])),
            bytes_received=counts[layout.BYTES_RECEIVED],
            delivered=counts[layout.DELIVERED],
            duplicates=counts[layout.DUPLICATES],
        )

    def _airtime(self, size: int, *, broadcast: bool) -> int:
        airtime = self._airtimes.get((size, broadcast))
        if airtime is None:
            airtime = self.profile.broadcast_ns(size) if broadcast else self.profile.unicast_ns(size)
            self._airtimes[size, broadcast] = airtime
        return airtime

    def _grow(self, status: int, time: int) -> None:
        if status == run.TOO_EARLY:
            raise InvalidTime(f"at {time} ns, but something happens at {self.next_ns} ns: advance to it first")
        self._become(_GROWING[status](self._world))

    def _become(self, world: layout.World) -> None:
        self._world = world
        self._packed = packed(world)
        self._outlook = outlook(self._packed)

    def _check_time(self, time: int) -> None:
        if time < self._now:
            raise InvalidTime(f"at {time} ns, but it is {self._now} ns already: time does not go back")

    def _check_station(self, node: int) -> None:
        if not 0 <= node < self._stations:
            raise UnknownName(f"no station {node}: the table of legs has {self._stations} rows")

    def _check_size(self, size: int) -> None:
        if not 0 <= size <= self._longest:
            raise InvalidInput(
                f"a frame of {size} bytes: one frame takes 0 to {self.profile.longest_payload}, cut longer messages up"
            )
