"""The kernels that Python calls: run the events, hand in a frame, switch a station."""

from __future__ import annotations

from typing import Final

from nearcast.compiled import inlined, kernel
from nearcast.runtime.simulation.radio.access import granted
from nearcast.runtime.simulation.radio.exchange import (
    begin,
    end,
    expire,
    protection,
    switch_off,
    transmit,
)
from nearcast.runtime.simulation.radio.heap import (
    ACCESS,
    END,
    RESPONSE,
    SUBJECT,
    SUBJECT_BITS,
    TICK,
    pop,
    push,
)
from nearcast.runtime.simulation.radio.layout import BROADCAST, COMPLETIONS, DELIVERIES, LOSSES, World
from nearcast.runtime.simulation.radio.neighbours import refresh
from nearcast.runtime.simulation.radio.queueing import enqueue

# What ``run`` and ``hand_in`` answer, beside what they are for
REACHED: Final = 0
REPORTED: Final = 1
FRAMES_FULL: Final = -1
AIR_FULL: Final = -2
HEAP_FULL: Final = -3
REPORTS_FULL: Final = -4
ROWS_TOO_SHORT: Final = -5
TOO_EARLY: Final = -6


@inlined
def _shortage(world: World) -> int:
    """What could run out during the next event, or 0.

    Every hearer may cause two events and two losses; every frame may expire.
    """
    control = world.control[0]
    hearers = world.heard.shape[1]
    most_reports = max(control.reported[DELIVERIES], control.reported[COMPLETIONS], control.reported[LOSSES])
    if control.free_frame < 0:
        return FRAMES_FULL
    if control.free_air < 0:
        return AIR_FULL
    if control.heap_size + 2 * hearers + 8 > len(world.heap):
        return HEAP_FULL
    if most_reports + 2 * hearers + len(world.frames) + 8 > world.reports.shape[1]:
        return REPORTS_FULL
    return 0


@inlined
def _reports(world: World) -> int:
    reported = world.control[0].reported
    return int(reported[DELIVERIES] + reported[COMPLETIONS] + reported[LOSSES])


@kernel
def run(world: World, until: int) -> int:
    """Work off the events up to ``until``, but stop after one that has something to report."""
    control = world.control[0]
    control.unchecked = 1
    while True:
        if control.heap_size == 0 or world.heap[0].time > until:
            control.now = max(control.now, until)
            return REACHED
        shortage = _shortage(world)
        if shortage:
            return shortage
        event = world.heap[0]
        time = event.time
        version = event.version
        kind = event.order >> SUBJECT_BITS
        subject = event.order & SUBJECT
        if kind in (ACCESS, RESPONSE):
            refresh(world, time)
            if control.crowd > world.heard.shape[1]:
                return ROWS_TOO_SHORT
        pop(world)
        control.now = time
        reports = _reports(world)
        if kind == END:
            if world.air[subject].version == version:
                end(world, subject, time, 0)
        elif kind in (ACCESS, RESPONSE):
            _go_on_air(world, kind, subject, version, time)
        elif kind == TICK:
            source = world.sources[subject]
            push(world, time + source.period, TICK, subject, 0)
            enqueue(world, source.node, BROADCAST, source.bytes, source.airtime, subject, 0, 0, 0, 1, time)
        else:
            expire(world, subject, kind, version, time)
        if _reports(world) != reports:
            return REPORTED


@inlined
def _go_on_air(world: World, event: int, node: int, version: int, now: int) -> None:
    """Start what the station wants to send, if the event is still meant."""
    station = world.nodes[node]
    if event == ACCESS:
        if not granted(world, node, now):
            return
        kind = begin(world, node, now)
        if kind < 0:
            return
        to = world.frames[station.head].to
        nav = protection(world, node, kind)
    else:
        if station.response != version:
            return
        kind = station.response_kind
        to = station.response_to
        nav = station.response_nav
    transmit(world, node, kind, to, nav, now)


@inlined
def _move_to(world: World, now: int) -> bool:
    """Let time pass, if nothing happens before ``now``."""
    control = world.control[0]
    if now > control.now:
        if control.heap_size > 0 and world.heap[0].time < now:
            return False
        control.now = now
    return True


@kernel
def hand_in(
    world: World, node: int, to: int, size: int, airtime: int, key: int, copy: int, group: int, door: int, now: int
) -> int:
    """Put a frame into the queue of a station."""
    shortage = _shortage(world)
    if shortage:
        return shortage
    if not _move_to(world, now):
        return TOO_EARLY
    return enqueue(world, node, to, size, airtime, key, copy, group, door, 0, now)


@kernel
def add_tick(world: World, source: int, first: int) -> int:
    """Start a native source."""
    shortage = _shortage(world)
    if shortage:
        return shortage
    push(world, first, TICK, source, 0)
    return 0


@kernel
def switch(world: World, node: int, on: int, now: int) -> int:
    """Switch a station on or off."""
    shortage = _shortage(world)
    if shortage:
        return shortage
    if not _move_to(world, now):
        return TOO_EARLY
    if on:
        world.nodes[node].on = 1
    elif world.nodes[node].on:
        switch_off(world, node, now)
    return 0
